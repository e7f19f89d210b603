// SPDX-License-Identifier: BSD-3-Clause
#include "forwarder.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_prefetch.h>
#include <rte_udp.h>

#include <cstring>

#include "tag_queue.h"

namespace tagwire::testpmd {
namespace {

// RFC 2544, appendix C: addresses of a network under test; the port is discard (9).
constexpr uint32_t kSource = RTE_IPV4(198, 18, 0, 1);
constexpr uint32_t kDestination = RTE_IPV4(198, 18, 0, 2);
constexpr uint16_t kUdpPort = 9;
constexpr uint16_t kFromRing = 32;

struct UdpFrame {
    rte_ether_hdr ethernet;
    rte_ipv4_hdr ip;
    rte_udp_hdr udp;
} __rte_packed __rte_aligned(2);
static_assert(sizeof(UdpFrame) == 42);

void readdress(const Stream& stream, rte_mbuf** packets, uint16_t count) noexcept {
    for (uint16_t i = 0; i < count; ++i) {
        if (i + 1 < count) {
            rte_prefetch0(rte_pktmbuf_mtod(packets[i + 1], void*));
        }
        auto* header = rte_pktmbuf_mtod(packets[i], rte_ether_hdr*);
        header->dst_addr = stream.peer;
        header->src_addr = stream.tx_mac;
        packets[i]->ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
    }
}

void send(Stream& stream, rte_mbuf** packets, uint16_t count) noexcept {
    const uint16_t sent = rte_eth_tx_burst(stream.tx_port, stream.tx_queue, packets, count);
    stream.tx_packets.add(sent);
    if (sent < count) [[unlikely]] {
        stream.dropped.add(count - sent);
        rte_pktmbuf_free_bulk(packets + sent, count - sent);
    }
}

}  // namespace

Forwarder::Forwarder(const Options& options, PlainMode mode, rte_mempool* pool)
    : mode_(mode),
      burst_(options.burst),
      length_(options.tx_length),
      multi_flow_(options.multi_flow),
      pool_(pool) {}

uint32_t Forwarder::turn(Stream& stream) const noexcept {
    rte_mbuf* packets[kMaxBurst + kFromRing];
    TagQueue* messages = stream.messages;
    const uint64_t start = rte_rdtsc();
    uint16_t count = 0;
    if (mode_ != PlainMode::kTxonly || messages != nullptr) {
        count = rte_eth_rx_burst(stream.rx_port, stream.rx_queue, packets, burst_);
    }
    uint64_t plain_cycles = 0;
    uint64_t after = start;
    uint32_t work = count;
    if (messages != nullptr) {
        const uint64_t received = rte_rdtsc();
        const uint16_t arrived = count;
        count = messages->input(packets, count);
        const uint32_t taken = arrived - count;
        count =
            static_cast<uint16_t>(count + messages->input_from_ring(packets + count, kFromRing));
        const uint32_t events = messages->turn();
        after = rte_rdtsc();
        work += events;
        // A burst of both kinds: its receiving counts for the kind that had more of it.
        const bool mostly_messages = 2 * taken > arrived;
        if (taken + events > 0) {
            stream.tag_frames.add(taken);
            stream.tag_cycles.add(after - (mostly_messages ? start : received));
        }
        plain_cycles = mostly_messages ? 0 : received - start;
    }
    if (count > 0) {
        stream.rx_packets.add(count);
        forward(stream, packets, count);
    }
    const uint16_t made = mode_ == PlainMode::kTxonly ? transmit(stream) : uint16_t{0};
    if (count + made > 0) {
        stream.cycles.add(plain_cycles + rte_rdtsc() - after);
    }
    return work + made;
}

void Forwarder::forward(Stream& stream, rte_mbuf** packets, uint16_t count) const noexcept {
    switch (mode_) {
        case PlainMode::kMac:
            readdress(stream, packets, count);
            [[fallthrough]];
        case PlainMode::kIo:
            send(stream, packets, count);
            break;
        case PlainMode::kRxonly:
        case PlainMode::kTxonly:
            rte_pktmbuf_free_bulk(packets, count);
            break;
    }
}

uint16_t Forwarder::transmit(Stream& stream) const noexcept {
    rte_mbuf* packets[kMaxBurst];
    uint16_t count = 0;
    if (rte_pktmbuf_alloc_bulk(pool_, packets, burst_) != 0) {
        return 0;
    }
    while (count < burst_ && fill(stream, packets[count])) {
        ++count;
    }
    rte_pktmbuf_free_bulk(packets + count, burst_ - count);
    send(stream, packets, count);
    return count;
}

bool Forwarder::fill(Stream& stream, rte_mbuf* packet) const noexcept {
    auto* frame = reinterpret_cast<UdpFrame*>(rte_pktmbuf_append(packet, length_));
    if (frame == nullptr) {
        return false;
    }
    std::memset(static_cast<void*>(frame + 1), 0, length_ - sizeof(*frame));
    frame->ethernet = {stream.peer, stream.tx_mac, rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4)};
    const auto udp_length =
        static_cast<uint16_t>(length_ - sizeof(rte_ether_hdr) - sizeof(rte_ipv4_hdr));
    rte_ipv4_hdr& ip = frame->ip;
    ip = {};
    ip.version_ihl = RTE_IPV4_VHL_DEF;
    ip.total_length = rte_cpu_to_be_16(static_cast<uint16_t>(udp_length + sizeof(ip)));
    ip.time_to_live = 64;
    ip.next_proto_id = IPPROTO_UDP;
    const uint32_t flow = multi_flow_ ? (stream.flow++ & 0xff) << 8 | (stream.tx_queue & 0xff) : 0;
    ip.src_addr = rte_cpu_to_be_32(multi_flow_ ? kDestination + flow : kSource);
    ip.dst_addr = rte_cpu_to_be_32(kDestination);
    ip.hdr_checksum = rte_ipv4_cksum(&ip);
    frame->udp = {rte_cpu_to_be_16(kUdpPort), rte_cpu_to_be_16(kUdpPort),
                  rte_cpu_to_be_16(udp_length), 0};
    return true;
}

}  // namespace tagwire::testpmd
