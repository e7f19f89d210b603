// SPDX-License-Identifier: BSD-3-Clause
// A WQE of one basic block per packet: for cards without multi-packet sends.
// Included by tx_burst.cc alone; apart for its subject.
#pragma once

#include <algorithm>

#include "drivers/net/mlx5raw/txq.h"
#include "drivers/net/mlx5raw/wqe.h"

namespace tagwire::mlx5raw {

// One data segment will do, and nothing else in the Ethernet segment than checksums.
inline bool is_plain(const rte_mbuf& packet) {
    return packet.nb_segs == 1 && (packet.ol_flags & kMpwAloneFlags) == 0;
}

template <bool kOffloads, bool kInlineHeader>
inline uint32_t TxQueue::write_singles(rte_mbuf** packets, uint32_t count, Written& written) {
    constexpr uint32_t kInlined = kInlineHeader ? kInlineL2 : 0;
    constexpr uint32_t kHeader = 1 + ethernet_octowords(kInlined);
    static_assert((kHeader + 1) * kOctoword <= kBasicBlock);
    // A data segment of length zero would mean 2 GiB.
    constexpr uint32_t kShortest = std::max(kShortestPacket, kInlined + 1);
    const uint32_t room = std::min({count, free_blocks(), free_segments()});
    // Locals: every store into the ring might change a member, as the compiler sees it.
    BasicBlock* const ring = wqes_;
    rte_mbuf** const kept = mbufs_;
    const uint32_t mask = mask_;
    const uint32_t segment_mask = segment_mask_;
    const uint32_t block = producer_;
    const uint32_t slot = segment_producer_;
    const uint32_t qpn_shifted = qpn_shifted_;
    uint64_t bytes = 0;
    uint32_t i = 0;
    for (; i < room; ++i) {
        rte_mbuf* const packet = packets[i];
        const uint32_t length = packet->data_len;
        if (unlikely(length < kShortest || (kOffloads && !is_plain(*packet)))) {
            break;
        }
        uintptr_t address = rte_pktmbuf_mtod(packet, uintptr_t);
        const Be32 key = memory_.lkey(*packet, address);
        if (unlikely(key.raw == kNoLkey.raw)) {
            break;
        }
        uint8_t* const wqe = ring[(block + i) & mask].bytes;
        write_control(*reinterpret_cast<ControlSegment*>(wqe), kOpcodeSend,
                      static_cast<uint16_t>(block + i), qpn_shifted, kHeader + 1);
        auto& ethernet = *reinterpret_cast<EthernetSegment*>(wqe + kOctoword);
        write_ethernet(ethernet, kOffloads ? tx_checksum_flags(packet->ol_flags) : 0);
        if constexpr (kInlineHeader) {
            ethernet.inline_size = Be16::of(kInlineL2);
            memcpy(ethernet.inline_start, reinterpret_cast<const void*>(address), kInlineL2);
            address += kInlineL2;
        }
        write_data(*reinterpret_cast<DataSegment*>(wqe + kHeader * kOctoword), length - kInlined,
                   key, address);
        kept[(slot + i) & segment_mask] = packet;
        bytes += length;
    }
    if (likely(i != 0)) {
        producer_ = block + i;
        segment_producer_ = slot + i;
        written.last_block = block + i - 1;
        written.packets += i;
        written.bytes += bytes;
    }
    return i;
}

}  // namespace tagwire::mlx5raw
