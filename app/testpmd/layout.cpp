// SPDX-License-Identifier: BSD-3-Clause
#include "layout.h"

#include <fmt/format.h>
#include <rte_lcore.h>

#include <algorithm>

#include "app/perf/failure.h"

namespace tagwire::testpmd {

using perf::Failure;

namespace {

std::vector<Port*> forwarding_ports(const Options& options, const Ports& ports) {
    std::vector<Port*> list;
    for (const auto& port : ports) {
        if (port->id() < 64 && (options.portmask >> port->id() & 1) != 0) {
            list.push_back(port.get());
        }
    }
    return list;
}

// The index of the port where frames of port `index` leave.
size_t counterpart(Topology topology, size_t index, size_t ports) {
    switch (topology) {
        case Topology::kPaired:
            return (index ^ 1) < ports ? index ^ 1 : index;
        case Topology::kChained:
            return (index + 1) % ports;
        case Topology::kLoop:
            break;
    }
    return index;
}

// Ports that exchange frames: one lcore has a queue of all of them.
size_t group_of(Topology topology, size_t index) {
    switch (topology) {
        case Topology::kPaired:
            return index / 2;
        case Topology::kChained:
            return 0;
        case Topology::kLoop:
            break;
    }
    return index;
}

rte_ether_addr peer_of(const Options& options, uint16_t port) {
    const auto found = options.peers.find(port);
    if (found != options.peers.end()) {
        return found->second;
    }
    return {{RTE_ETHER_LOCAL_ADMIN_ADDR, 0, 0, 0, 0, static_cast<uint8_t>(port)}};
}

std::string format_mac(const rte_ether_addr& mac) {
    char text[RTE_ETHER_ADDR_FMT_SIZE] = {};
    rte_ether_format_addr(text, sizeof(text), &mac);
    return text;
}

}  // namespace

std::vector<unsigned> forwarding_lcores() {
    std::vector<unsigned> list;
    unsigned id;
    RTE_LCORE_FOREACH_WORKER(id) {
        list.push_back(id);
    }
    return list;
}

uint32_t lcores_wanted(const Options& options, size_t ports) {
    const size_t groups = ports == 0 ? 1 : group_of(options.topology, ports - 1) + 1;
    const auto queues = static_cast<uint32_t>(groups * options.rx_queues);
    const auto available = static_cast<uint32_t>(forwarding_lcores().size());
    if (available == 0) {
        throw Failure("No cores defined for forwarding: the main lcore runs the commands",
                      "give EAL one more for each queue: -l 0-" + std::to_string(queues));
    }
    if (options.cores > available) {
        throw Failure(
            fmt::format("nb-cores should be > 0 and <= {}, not {}", available, options.cores),
            fmt::format("EAL's -l names {} lcores, the main one among them", available + 1));
    }
    if (options.cores == 0 && queues > available) {
        throw Failure(
            fmt::format("{} forwarding lcores for {} queues: one for each queue is wanted",
                        available, queues),
            fmt::format("give EAL {} lcores (-l 0-{}), or let lcores share: --nb-cores={}",
                        queues + 1, queues, available));
    }
    return options.cores == 0 ? queues : std::min(options.cores, queues);
}

Layout make_layout(const Options& options, const Ports& all) {
    Layout layout;
    layout.ports = forwarding_ports(options, all);
    const size_t ports = layout.ports.size();
    if (ports == 0) {
        throw Failure("no port forwards", "give EAL a port (--vdev, -a), and check --portmask");
    }
    if (options.topology == Topology::kPaired && ports % 2 != 0 && ports > 1) {
        fmt::print(stderr,
                   "\nWarning! port-topology=paired and odd forward ports number, the last "
                   "port will pair with itself.\n\n");
    }
    const std::vector<unsigned> ids = forwarding_lcores();
    const uint32_t wanted = lcores_wanted(options, ports);
    for (uint32_t i = 0; i < wanted; ++i) {
        layout.lcores.push_back(std::make_unique<Lcore>());
        layout.lcores.back()->id = ids[i];
    }
    for (size_t index = 0; index < ports; ++index) {
        const Port& rx = *layout.ports[index];
        const Port& tx = *layout.ports[counterpart(options.topology, index, ports)];
        for (uint16_t queue = 0; queue < options.rx_queues; ++queue) {
            auto stream = std::make_unique<Stream>();
            stream->rx_port = rx.id();
            stream->tx_port = tx.id();
            stream->rx_queue = stream->tx_queue = queue;
            stream->tx_mac = tx.mac();
            stream->peer = peer_of(options, tx.id());
            const size_t slot = group_of(options.topology, index) * options.rx_queues + queue;
            layout.lcores[slot % wanted]->streams.push_back(stream.get());
            layout.streams.push_back(std::move(stream));
        }
    }
    return layout;
}

void Layout::print(const ForwardMode& mode) const {
    fmt::print(
        "{} packet forwarding - ports={} - cores={} - streams={} - NUMA support enabled, MP "
        "allocation mode: native\n",
        mode.name(), ports.size(), lcores.size(), streams.size());
    for (const auto& lcore : lcores) {
        fmt::print("Logical Core {} (socket {}) forwards packets on {} streams:", lcore->id,
                   rte_lcore_to_socket_id(lcore->id), lcore->streams.size());
        for (const Stream* stream : lcore->streams) {
            const auto socket = [](uint16_t port) {
                return std::max(0, rte_eth_dev_socket_id(port));
            };
            fmt::print("\n  RX P={}/Q={} (socket {}) -> TX P={}/Q={} (socket {}) peer={}",
                       stream->rx_port, stream->rx_queue, socket(stream->rx_port), stream->tx_port,
                       stream->tx_queue, socket(stream->tx_port), format_mac(stream->peer));
        }
        fmt::print("\n");
    }
    fmt::print("\n");
}

}  // namespace tagwire::testpmd
