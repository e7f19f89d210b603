// SPDX-License-Identifier: BSD-3-Clause
#include "test/sim/simulator.h"

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>

#include "test/sim/pools.h"

namespace sim {
namespace {

constexpr uint64_t kNever = UINT64_MAX;
constexpr uint64_t kFramingBytes = 24;  // preamble, FCS and gap

}  // namespace

Node::Node(Simulator& simulator, uint32_t index)
    : simulator_(simulator),
      index_(index),
      tx_pool_(sim::pool(2 * index)),
      rx_pool_(sim::pool(2 * index + 1)) {}

Node::~Node() {
    stop();
    EXPECT_EQ(rte_mempool_in_use_count(tx_pool_), 0u)
        << "node " << index_ << " leaks frames to send";
    EXPECT_EQ(rte_mempool_in_use_count(rx_pool_), 0u)
        << "node " << index_ << " leaks received frames";
}

tagwire::wire::Mac Node::mac() const {
    return {0x02, 0, 0, 0, 0, static_cast<uint8_t>(index_ + 1)};
}

tagwire::transport::EndpointAddress Node::address(uint16_t udp_port, uint16_t endpoint) const {
    tagwire::transport::EndpointAddress address;
    const tagwire::wire::be32 wire_ip = ip();
    std::memcpy(address.ip.data(), &wire_ip, sizeof(wire_ip));
    address.udp_port = udp_port;
    address.endpoint = endpoint;
    return address;
}

uint64_t Node::now_ns() noexcept {
    return simulator_.now();
}

uint16_t Node::rx_burst(rte_mbuf** packets, uint16_t count) noexcept {
    uint16_t taken = 0;
    for (; taken < count && !arrived_.empty(); ++taken) {
        packets[taken] = arrived_.front();
        arrived_.pop_front();
    }
    return taken;
}

uint16_t Node::tx_burst(rte_mbuf** packets, uint16_t count) noexcept {
    for (uint16_t i = 0; i < count; ++i) {
        Frame frame(packets[i]->pkt_len);
        uint32_t at = 0;
        for (const rte_mbuf* segment = packets[i]; segment != nullptr; segment = segment->next) {
            std::memcpy(frame.data() + at, rte_pktmbuf_mtod(segment, const uint8_t*),
                        segment->data_len);
            at += segment->data_len;
        }
        rte_pktmbuf_free(packets[i]);
        simulator_.send(*this, std::move(frame));
    }
    return count;
}

void Node::run(std::function<uint64_t()> program) {
    program_ = std::move(program);
    wake();
}

void Node::stop() {
    program_ = nullptr;
    deadline_ = kNever;
    for (rte_mbuf* packet : arrived_) {
        rte_pktmbuf_free(packet);
    }
    arrived_.clear();
}

void Node::wake() {
    deadline_ = std::min(deadline_, simulator_.now());
}

void Node::deliver(const Frame& frame) {
    if (!running()) {
        return;
    }
    rte_mbuf* packet = rte_pktmbuf_alloc(rx_pool_);
    if (packet == nullptr) {
        ++no_buffer;
        return;
    }
    char* data = rte_pktmbuf_append(packet, static_cast<uint16_t>(frame.size()));
    if (data == nullptr) {  // longer than the receive buffers: a NIC drops it too
        rte_pktmbuf_free(packet);
        return;
    }
    std::memcpy(data, frame.data(), frame.size());
    arrived_.push_back(packet);
}

uint64_t Node::due() const {
    if (!running()) {
        return kNever;
    }
    const uint64_t wanted = arrived_.empty() ? deadline_ : 0;
    return wanted == kNever ? kNever : std::max(wanted, last_turn_ + simulator_.turn_ns);
}

void Node::turn() {
    last_turn_ = simulator_.now();
    deadline_ = kNever;
    const uint64_t next = program_();
    deadline_ = std::min(deadline_, next);
}

Simulator::Simulator(uint64_t seed) : random_(seed) {}

Simulator::~Simulator() = default;

Node& Simulator::add_node() {
    nodes_.push_back(std::make_unique<Node>(*this, static_cast<uint32_t>(nodes_.size())));
    return *nodes_.back();
}

void Simulator::send(Node& from, Frame frame) {
    if (filter && !filter(from, frame)) {
        return;
    }
    pcap_.write(now_, frame);
    const uint64_t bits =
        (std::max<uint64_t>(frame.size(), tagwire::wire::kMinFrame) + kFramingBytes) * 8;
    from.link_free_ =
        std::max(from.link_free_, now_) + bits * 1'000'000'000 / faults.bits_per_second;
    tagwire::wire::Mac destination;
    std::copy_n(frame.begin(), destination.size(), destination.begin());
    for (const auto& to : nodes_) {
        if (to.get() != &from &&
            (destination == to->mac() || destination == tagwire::wire::kBroadcastMac)) {
            schedule(from, *to, frame, from.link_free_);
        }
    }
}

void Simulator::schedule(Node& from, Node& to, const Frame& frame, uint64_t leaves) {
    (void)from;
    const uint32_t copies = chance(faults.duplication) ? 2 : 1;
    for (uint32_t copy = 0; copy < copies; ++copy) {
        if (chance(faults.loss)) {
            continue;
        }
        uint64_t time = leaves + faults.delay_ns;
        if (faults.jitter_ns > 0) {
            time += below(faults.jitter_ns);
        }
        if (chance(faults.reordering)) {
            const uint64_t packet_ns = 1500ull * 8 * 1'000'000'000 / faults.bits_per_second;
            time += below(faults.reorder_packets * packet_ns);
        }
        auto bytes = std::make_shared<Frame>(frame);
        if (chance(faults.corruption)) {
            (*bytes)[below(bytes->size())] ^= static_cast<uint8_t>(1u << below(8));
        }
        deliveries_.push({time, order_++, to.index(), std::move(bytes)});
    }
}

// The next thing that happens, if it is not after `limit`.
bool Simulator::step(uint64_t limit) {
    uint64_t next = deliveries_.empty() ? kNever : deliveries_.top().time;
    for (const auto& node : nodes_) {
        next = std::min(next, node->due());
    }
    if (next > limit) {
        return false;
    }
    now_ = std::max(now_, next);
    while (!deliveries_.empty() && deliveries_.top().time <= now_) {
        const Delivery delivery = deliveries_.top();
        deliveries_.pop();
        nodes_[delivery.node]->deliver(*delivery.frame);
    }
    for (const auto& node : nodes_) {
        if (node->due() <= now_) {
            node->turn();
        }
    }
    return true;
}

bool Simulator::run_until(const std::function<bool()>& done, uint64_t limit_ns) {
    const uint64_t limit = now_ + limit_ns;
    while (!done()) {
        if (!step(limit)) {
            return false;
        }
    }
    return true;
}

void Simulator::run_for(uint64_t duration_ns) {
    const uint64_t limit = now_ + duration_ns;
    while (step(limit)) {
    }
    now_ = limit;
}

}  // namespace sim
