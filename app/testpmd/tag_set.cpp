// SPDX-License-Identifier: BSD-3-Clause
#include "tag_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "app/perf/addresses.h"
#include "app/perf/failure.h"

namespace tagwire::testpmd {

using perf::Failure;

namespace {

// The first port has the address that was given, the next one the next.
tw_address address_of(const TagOptions& options, const Port& port, size_t index) {
    tw_address address = perf::parse_address(
        options.ip.empty() ? perf::default_ip(port.mac()) : options.ip, options.udp_port);
    if (!options.ip.empty()) {
        rte_be32_t ip;
        std::memcpy(&ip, address.ip, sizeof(ip));
        ip = rte_cpu_to_be_32(rte_be_to_cpu_32(ip) + static_cast<uint32_t>(index));
        std::memcpy(address.ip, &ip, sizeof(ip));
    }
    return address;
}

std::vector<tw_address> peers_of(const TagOptions& options, const tw_address& own, uint16_t queue,
                                 uint16_t queues) {
    std::vector<tw_address> list;
    const uint16_t theirs = options.peer_queues != 0 ? options.peer_queues : queues;
    for (const std::string& text : options.peers) {
        tw_address peer = perf::parse_address(text, options.udp_port);
        if (std::memcmp(peer.ip, own.ip, sizeof(peer.ip)) == 0) {
            throw Failure(fmt::format("--tag-peer={} is this side's own address", text),
                          "give the two sides different ones with --tag-ip");
        }
        const uint16_t base = peer.udp_port;
        if (base + theirs > 65536) {
            throw Failure(
                fmt::format("--tag-peer={}: {} queues need as many UDP ports", text, theirs));
        }
        for (uint16_t i = 0; i < theirs; ++i) {
            peer.udp_port = static_cast<uint16_t>(base + i);
            if (options.pairing == Pairing::kAll || i == queue % theirs) {
                list.push_back(peer);
            }
        }
    }
    if (list.empty()) {
        throw Failure("taggen has nobody to send to", "name peers: --tag-peer=10.0.0.1");
    }
    return list;
}

}  // namespace

TagSet::TagSet(const Options& options, TagMode mode, Layout& layout, rte_mempool* pool)
    : layout_(layout) {
    try {
        size_t index = 0;
        for (Port* port : layout.ports) {
            if (port->id() < 64 && (options.tag.portmask >> port->id() & 1) != 0) {
                open_port(options, mode, *port, index++, layout, pool);
            }
        }
    } catch (...) {
        for (auto& stream : layout.streams) {
            stream->messages = nullptr;
        }
        throw;
    }
    if (queues_.empty()) {
        throw Failure("no port has messages", "check --tag-portmask and --portmask");
    }
}

TagSet::~TagSet() {
    for (auto& stream : layout_.streams) {
        stream->messages = nullptr;
    }
}

void TagSet::open_port(const Options& options, TagMode mode, Port& port, size_t index,
                       Layout& layout, rte_mempool* pool) {
    const tw_address base = address_of(options.tag, port, index);
    if (base.udp_port + options.rx_queues > 65536) {
        throw Failure(fmt::format("{} queues need as many UDP ports from {} on", options.rx_queues,
                                  base.udp_port));
    }
    TagAddresses addresses;
    std::memcpy(&addresses.ip, base.ip, sizeof(addresses.ip));
    addresses.base = base.udp_port;
    addresses.queues = options.rx_queues;
    std::vector<TagQueue*> siblings;
    for (uint16_t queue = 0; queue < options.rx_queues; ++queue) {
        TagQueueConfig config{port.id(), queue, mode, addresses, base, {}, pool};
        config.address.udp_port = static_cast<uint16_t>(base.udp_port + queue);
        if (mode == TagMode::kGenerate) {
            config.peers = peers_of(options.tag, base, queue, options.rx_queues);
        }
        queues_.push_back(std::make_unique<TagQueue>(config, options.tag));
        siblings.push_back(queues_.back().get());
        for (auto& stream : layout.streams) {
            if (stream->rx_port == port.id() && stream->rx_queue == queue) {
                stream->messages = siblings.back();
            }
        }
    }
    for (TagQueue* queue : siblings) {
        queue->set_siblings(siblings);
    }
    fmt::print("{} on port {} at {}, {} queue(s) with one UDP port each\n", name_of(mode),
               port.id(), address_text(base), options.rx_queues);
    steer(options, port, addresses);
}

void TagSet::steer(const Options& options, const Port& port, const TagAddresses& addresses) {
    if (options.tag.steering == Steering::kRing || options.rx_queues == 1) {
        return;
    }
    std::string why;
    std::vector<SteeringRule> rules(options.rx_queues);
    for (uint16_t queue = 0; queue < options.rx_queues; ++queue) {
        if (!rules[queue].create(port.id(), queue, addresses, &why)) {
            if (options.tag.steering == Steering::kFlow) {
                throw Failure(fmt::format("port {} takes no flow rule: {}", port.id(), why),
                              "leave --tag-steering=flow out");
            }
            fmt::print(
                "  port {} takes no flow rules ({}): frames that arrive on another queue "
                "than their worker's are handed over by ring\n",
                port.id(), why);
            return;
        }
    }
    fmt::print("  port {}: a flow rule brings the frames of each worker to its queue\n", port.id());
    for (SteeringRule& rule : rules) {
        rules_.push_back(std::move(rule));
    }
}

bool TagSet::is_done() const {
    return std::all_of(queues_.begin(), queues_.end(),
                       [](const auto& queue) { return queue->is_done(); });
}

size_t TagSet::index_of(const Stream& stream) const {
    const auto found = std::find_if(queues_.begin(), queues_.end(), [&](const auto& queue) {
        return queue.get() == stream.messages;
    });
    return static_cast<size_t>(found - queues_.begin());
}

}  // namespace tagwire::testpmd
