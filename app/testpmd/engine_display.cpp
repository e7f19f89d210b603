// SPDX-License-Identifier: BSD-3-Clause
// What start, stop and "show fwd stats" print, in the shape of testpmd's.
#include <fmt/format.h>
#include <rte_cycles.h>

#include "engine.h"

namespace tagwire::testpmd {
namespace {

constexpr const char* kBorder = "----------------------";
constexpr const char* kTotalBorder = "+++++++++++++++";

void print_cycles(const char* unit, uint64_t cycles, const std::string& mode, uint64_t count) {
    if (count > 0) {
        fmt::print("\n  CPU cycles/{}={:.2f} (total cycles={} / total {} {}s={}) at {} MHz Clock\n",
                   unit, static_cast<double>(cycles) / static_cast<double>(count), cycles, mode,
                   unit, count, rte_get_tsc_hz() / 1'000'000);
    }
}

}  // namespace

void Engine::show_config() const {
    make_layout(options_, ports_).print(options_.mode);
}

void Engine::show_configuration_of_ports() const {
    fmt::print("  {} packet forwarding packets/burst={}\n", mode_.name(), options_.burst);
    if (mode_.plain == PlainMode::kTxonly) {
        fmt::print("  packet len={} - nb packet segments=1\n", options_.tx_length);
    }
    fmt::print("  nb forwarding cores={} - nb forwarding ports={}\n", layout_.lcores.size(),
               layout_.ports.size());
    for (const auto& port : ports_) {
        fmt::print("  port {}: RX queue number: {} Tx queue number: {}\n", port->id(),
                   options_.rx_queues, options_.tx_queues);
        fmt::print("    Rx offloads={:#x} Tx offloads={:#x}\n",
                   port->configuration().rxmode.offloads, port->configuration().txmode.offloads);
        fmt::print("    RX queue: 0\n      RX desc={}\n", port->rx_descriptors());
        fmt::print("    TX queue: 0\n      TX desc={}\n", port->tx_descriptors());
    }
}

void Engine::clear_statistics() {
    for (Port* port : layout_.ports) {
        port->note_statistics();
    }
    for (const auto& stream : layout_.streams) {
        stream->clear();
    }
}

void Engine::show_statistics() const {
    if (layout_.streams.size() > layout_.ports.size()) {
        show_streams();
    }
    show_ports_statistics();
    show_cycles();
}

void Engine::show_streams() const {
    for (const auto& stream : layout_.streams) {
        const uint64_t frames = stream->tag_frames.get();
        if (stream->rx_packets.get() + stream->tx_packets.get() + stream->dropped.get() + frames ==
            0) {
            continue;
        }
        fmt::print(
            "\n  ------- Forward Stats for RX Port={:2}/Queue={:2} -> TX Port={:2}/Queue={:2} "
            "-------\n",
            stream->rx_port, stream->rx_queue, stream->tx_port, stream->tx_queue);
        fmt::print("  RX-packets: {:<14} TX-packets: {:<14} TX-dropped: {:<14}\n",
                   stream->rx_packets.get(), stream->tx_packets.get(), stream->dropped.get());
        if (mode_.tag != TagMode::kNone) {
            fmt::print("  Message-frames: {:<14}\n", frames);
        }
    }
}

void Engine::show_ports_statistics() const {
    rte_eth_stats total{};
    uint64_t total_dropped = 0;
    const auto print = [](const rte_eth_stats& stats, uint64_t dropped) {
        fmt::print("  RX-packets: {:<14} RX-dropped: {:<14}RX-total: {}\n", stats.ipackets,
                   stats.imissed, stats.ipackets + stats.imissed);
        if (stats.ierrors + stats.rx_nombuf > 0) {
            fmt::print("  RX-error: {}\n  RX-nombufs: {:<14}\n", stats.ierrors, stats.rx_nombuf);
        }
        fmt::print("  TX-packets: {:<14} TX-dropped: {:<14}TX-total: {}\n", stats.opackets, dropped,
                   stats.opackets + dropped);
    };
    for (const Port* port : layout_.ports) {
        uint64_t dropped = 0;
        for (const auto& stream : layout_.streams) {
            dropped += stream->tx_port == port->id() ? stream->dropped.get() : 0;
        }
        const rte_eth_stats stats = port->statistics();
        fmt::print("\n  {} Forward statistics for port {:<2} {}\n", kBorder, port->id(), kBorder);
        print(stats, dropped);
        fmt::print("  {}--------------------------------{}\n", kBorder, kBorder);
        total.ipackets += stats.ipackets;
        total.imissed += stats.imissed;
        total.opackets += stats.opackets;
        total_dropped += dropped + stats.oerrors;
    }
    fmt::print("\n  {} Accumulated forward statistics for all ports{}\n", kTotalBorder,
               kTotalBorder);
    print(total, total_dropped);
    fmt::print("  {}++++++++++++++++++++++++++++++++++++++++++++++{}\n", kTotalBorder,
               kTotalBorder);
}

void Engine::show_cycles() const {
    uint64_t cycles = 0, packets = 0, tag_cycles = 0, frames = 0;
    for (const auto& stream : layout_.streams) {
        cycles += stream->cycles.get();
        packets +=
            mode_.plain == PlainMode::kTxonly ? stream->tx_packets.get() : stream->rx_packets.get();
        tag_cycles += stream->tag_cycles.get();
        frames += stream->tag_frames.get();
    }
    print_cycles("packet", cycles, name_of(mode_.plain), packets);
    if (mode_.tag != TagMode::kNone) {
        print_cycles("message-frame", tag_cycles, name_of(mode_.tag), frames);
    }
}

}  // namespace tagwire::testpmd
