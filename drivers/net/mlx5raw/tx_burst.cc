// SPDX-License-Identifier: BSD-3-Clause
// The burst functions: reap, write WQEs, ring one doorbell.
#include <rte_ethdev.h>

#include "drivers/net/mlx5raw/tx_session.h"
#include "drivers/net/mlx5raw/txq.h"
#include "drivers/net/mlx5raw/wqe.h"

namespace tagwire::mlx5raw {
namespace {

// Needs more than one data segment or a longer Ethernet segment.
bool is_plain(const rte_mbuf& packet) {
    return packet.nb_segs == 1 && (packet.ol_flags & kMpwAloneFlags) == 0;
}

}  // namespace

inline __attribute__((always_inline)) bool TxQueue::begin_burst() {
    reap();
    memory_.refresh();
    return likely(running_);  // not when a recovery failed
}

inline __attribute__((always_inline)) uint16_t TxQueue::end_burst(const Written& written,
                                                                  uint32_t done, uint16_t count) {
    if (unlikely(done < count)) {
        ++counters_.ring_full;
    }
    if (likely(written.packets != 0)) {
        counters_.packets += written.packets;
        counters_.bytes += written.bytes;
        post(written.last_block);
    }
    return static_cast<uint16_t>(done);
}

template <bool kOffloads, bool kInline>
uint16_t TxQueue::burst_multi_packet(void* queue, rte_mbuf** packets, uint16_t count) {
    TxQueue& q = *static_cast<TxQueue*>(queue);
    if (!q.begin_burst()) {
        return 0;
    }
    Written written;
    uint32_t done = 0;
    while (done != count) {
        if (kOffloads && !is_plain(*packets[done])) {
            if (q.send_alone(packets[done], written) == Outcome::kFull) {
                break;
            }
            ++done;
            continue;
        }
        const uint32_t sent =
            kInline ? q.write_inline_session<kOffloads>(packets + done, count - done, written)
                    : q.write_session<kOffloads>(packets + done, count - done, written);
        done += sent;
        if (unlikely(sent == 0)) {
            if (q.refuse(packets[done]) == Outcome::kFull) {
                break;
            }
            ++done;
        }
    }
    return q.end_burst(written, done, count);
}

template <bool kInlineHeader>
inline __attribute__((always_inline)) TxQueue::Outcome TxQueue::send_single(rte_mbuf* packet,
                                                                            uint8_t checksum,
                                                                            Written& written) {
    constexpr uint32_t kInlined = kInlineHeader ? kInlineL2 : 0;
    constexpr uint32_t kHeader = 1 + ethernet_octowords(kInlined);
    if (unlikely(free_blocks() == 0 || free_segments() == 0)) {
        return Outcome::kFull;
    }
    const uint32_t block = producer_;
    const uint32_t length = packet->data_len;
    uintptr_t address = rte_pktmbuf_mtod(packet, uintptr_t);
    // A data segment of length zero would mean 2 GiB.
    if (unlikely(length <= RTE_MAX(kShortestPacket - 1, kInlined))) {
        return send_alone(packet, written);
    }
    const Be32 key = memory_.lkey(*packet, address);
    if (unlikely(key.raw == kNoLkey.raw)) {
        return drop(packet, &TxCounters::no_key);
    }
    uint8_t* const wqe = wqes_[block & mask_].bytes;
    write_control(*reinterpret_cast<ControlSegment*>(wqe), kOpcodeSend,
                  static_cast<uint16_t>(block), qpn_shifted_, kHeader + 1);
    auto& ethernet = *reinterpret_cast<EthernetSegment*>(wqe + kOctoword);
    write_ethernet(ethernet, checksum);
    if constexpr (kInlineHeader) {
        ethernet.inline_size = Be16::of(kInlineL2);
        memcpy(ethernet.inline_start, reinterpret_cast<const void*>(address), kInlineL2);
        address += kInlineL2;
    }
    write_data(*reinterpret_cast<DataSegment*>(wqe + kHeader * kOctoword), length - kInlined, key,
               address);
    mbufs_[segment_producer_++ & segment_mask_] = packet;
    producer_ = block + 1;
    written.last_block = block;
    ++written.packets;
    written.bytes += length;
    return Outcome::kSent;
}

template <bool kOffloads, bool kInlineHeader>
uint16_t TxQueue::burst_send(void* queue, rte_mbuf** packets, uint16_t count) {
    TxQueue& q = *static_cast<TxQueue*>(queue);
    if (!q.begin_burst()) {
        return 0;
    }
    Written written;
    uint32_t done = 0;
    for (; done != count; ++done) {
        rte_mbuf* const packet = packets[done];
        const Outcome outcome =
            kOffloads && !is_plain(*packet)
                ? q.send_alone(packet, written)
                : q.send_single<kInlineHeader>(
                      packet, kOffloads ? tx_checksum_flags(packet->ol_flags) : 0, written);
        if (unlikely(outcome == Outcome::kFull)) {
            break;
        }
    }
    return q.end_burst(written, done, count);
}

uint16_t TxQueue::burst_send_inline(void* queue, rte_mbuf** packets, uint16_t count) {
    TxQueue& q = *static_cast<TxQueue*>(queue);
    if (!q.begin_burst()) {
        return 0;
    }
    Written written;
    uint32_t done = 0;
    while (done != count && q.send_alone(packets[done], written) != Outcome::kFull) {
        ++done;
    }
    return q.end_burst(written, done, count);
}

TxBurst TxQueue::burst_of(TxPath path) {
    switch (path) {
        case TxPath::kSend:
            return burst_send<false, false>;
        case TxPath::kSendOffloads:
            return burst_send<true, false>;
        case TxPath::kSendInlineHeader:
            return burst_send<true, true>;
        case TxPath::kSendInline:
            return burst_send_inline;
        case TxPath::kMultiPacket:
        case TxPath::kMultiPacketAvx2:
            return burst_multi_packet<false, false>;
        case TxPath::kMultiPacketOffloads:
        case TxPath::kMultiPacketAvx2Offloads:
            return burst_multi_packet<true, false>;
        case TxPath::kMultiPacketInline:
            return burst_multi_packet<false, true>;
        case TxPath::kMultiPacketInlineOffloads:
            return burst_multi_packet<true, true>;
        case TxPath::kCount:
            break;
    }
    return nullptr;
}

}  // namespace tagwire::mlx5raw
