// SPDX-License-Identifier: BSD-3-Clause
// Multi-packet sends: one WQE for many packets (PRM, "Enhanced multi-packet send").
// Included by tx_burst.cc alone; apart for its subject.
#pragma once

#include <algorithm>

#include "drivers/net/mlx5raw/tx_singles.h"
#include "drivers/net/mlx5raw/txq.h"
#include "drivers/net/mlx5raw/wqe.h"

namespace tagwire::mlx5raw {

inline void TxQueue::close_session(uint32_t octowords, uint64_t flags, uint32_t packets,
                                   Written& written) {
    uint8_t* const wqe = wqes_[producer_ & mask_].bytes;
    write_control(*reinterpret_cast<ControlSegment*>(wqe), kOpcodeMultiPacket,
                  static_cast<uint16_t>(producer_), qpn_shifted_, octowords);
    write_ethernet(*reinterpret_cast<EthernetSegment*>(wqe + kOctoword), tx_checksum_flags(flags));
    written.last_block = producer_;
    written.packets += packets;
    producer_ += blocks_of(octowords);
}

// The packets of the vector loop's session that it left, and all where there is none.
template <bool kOffloads>
inline __attribute__((always_inline)) uint32_t TxQueue::write_pointers(
    uint8_t* segments, rte_mbuf** packets, rte_mbuf** kept, uint32_t count, uint64_t flags,
    uint64_t& bytes) {
    uint32_t i = 0;
    if (vector_write_ != nullptr) {
        const MemoryRange& range = memory_.last();
        const MpwSession session{range.base, range.length, range.lkey.raw, kShortestPacket, flags};
        i = vector_write_(segments, packets, kept, count, session, bytes);
        segments += size_t{i} * kOctoword;
    }
    for (; i < count; ++i, segments += kOctoword) {
        rte_mbuf* const packet = packets[i];
        if (kOffloads && (((packet->ol_flags ^ flags) & kMpwFlags) != 0 || packet->nb_segs != 1)) {
            break;
        }
        const uint32_t length = packet->data_len;
        if (unlikely(length < kShortestPacket)) {
            break;
        }
        const uintptr_t address = rte_pktmbuf_mtod(packet, uintptr_t);
        const Be32 key = memory_.lkey(*packet, address);
        if (unlikely(key.raw == kNoLkey.raw)) {
            break;
        }
        write_data(*reinterpret_cast<DataSegment*>(segments), length, key, address);
        kept[i] = packet;
        bytes += length;
    }
    return i;
}

// A burst of one, as programs send that wait for answers: a multi-packet send with one packet.
// False, with nothing done, when that is not enough for it.
template <bool kOffloads>
inline __attribute__((always_inline)) bool TxQueue::send_one(rte_mbuf* packet) {
    const uintptr_t address = rte_pktmbuf_mtod(packet, uintptr_t);
    const uint32_t length = packet->data_len;
    if (unlikely(free_blocks() == 0 || free_segments() == 0 || length < kShortestPacket ||
                 !memory_.last().contains(address) || (kOffloads && !is_plain(*packet)))) {
        return false;
    }
    uint8_t* const wqe = wqes_[producer_ & mask_].bytes;
    write_data(*reinterpret_cast<DataSegment*>(wqe + kHeaderOctowords * kOctoword), length,
               memory_.last().lkey, address);
    mbufs_[segment_producer_++ & segment_mask_] = packet;
    Written written;
    close_session(kHeaderOctowords + 1, kOffloads ? packet->ol_flags : 0, 1, written);
    ++counters_.packets;
    counters_.bytes += length;
    post(written.last_block);
    return true;
}

template <bool kOffloads>
inline uint32_t TxQueue::write_session(rte_mbuf** packets, uint32_t count, Written& written) {
    const uint32_t blocks = free_blocks();
    if (unlikely(blocks == 0)) {
        return 0;
    }
    const uint32_t room = std::min({count, free_segments(), kMaxOctowords - kHeaderOctowords,
                                    blocks * (kBasicBlock / kOctoword) - kHeaderOctowords});
    const uint64_t flags = kOffloads ? packets[0]->ol_flags & kMpwFlags : 0;
    uint8_t* const ring_end = wqes_[mask_ + 1].bytes;
    uint8_t* at = wqes_[producer_ & mask_].bytes + kHeaderOctowords * kOctoword;
    uint64_t bytes = 0;
    uint32_t sent = 0;
    // Once, or in pieces where one of the rings wraps.
    while (sent != room) {
        const uint32_t slot = segment_producer_ & segment_mask_;
        const uint32_t run = std::min({room - sent, segment_mask_ + 1 - slot,
                                       static_cast<uint32_t>((ring_end - at) / kOctoword)});
        const uint32_t part =
            write_pointers<kOffloads>(at, packets + sent, mbufs_ + slot, run, flags, bytes);
        segment_producer_ += part;
        sent += part;
        if (part != run) {
            break;
        }
        at += size_t{part} * kOctoword;
        if (at == ring_end) {
            at = wqes_[0].bytes;
        }
    }
    if (likely(sent != 0)) {
        written.bytes += bytes;
        close_session(kHeaderOctowords + sent, flags, sent, written);
    }
    return sent;
}

// A packet of at least kShortestPacket bytes, by moves of 16 that may overlap: nothing is
// read or written beyond its end. Packets that are copied are short; most are of 64 bytes
// or a little more.
inline __attribute__((always_inline)) void copy_packet(uint8_t* to, const uint8_t* from,
                                                       uint32_t length) {
    const auto move = [&](uint32_t at) { memcpy(to + at, from + at, 16); };
    if (likely(length - 32 <= 32)) {
        move(0);
        move(16);
        move(length - 32);
        move(length - 16);
        return;
    }
    if (unlikely(length < 16)) {
        memcpy(to, from, 8);
        memcpy(to + length - 8, from + length - 8, 8);
        return;
    }
    const uint32_t last = length - 16;
    for (uint32_t at = 0; at < last; at += 16) {
        move(at);
    }
    move(last);
}

// Short packets are copied, and their mbufs returned at once.
template <bool kOffloads>
inline uint32_t TxQueue::write_inline_session(rte_mbuf** packets, uint32_t count,
                                              Written& written) {
    const uint32_t room = std::min(kMaxOctowords, free_blocks() * (kBasicBlock / kOctoword));
    if (unlikely(room == 0)) {
        return 0;
    }
    // Locals: every store into the ring might change a member, as the compiler sees it.
    const uint64_t flags = kOffloads ? packets[0]->ol_flags & kMpwFlags : 0;
    const uint32_t longest_copy = inline_packet_;
    uint8_t* const ring = wqes_[0].bytes;
    uint8_t* const ring_end = wqes_[mask_ + 1].bytes;
    uint8_t* at = wqes_[producer_ & mask_].bytes + kHeaderOctowords * kOctoword;
    uint32_t octowords = kHeaderOctowords;
    uint64_t bytes = 0;
    uint32_t copied_from = 0;  // packets from here on were copied
    uint32_t i = 0;
    for (; i < count; ++i) {
        rte_mbuf* const packet = packets[i];
        if (kOffloads && (((packet->ol_flags ^ flags) & kMpwFlags) != 0 || packet->nb_segs != 1)) {
            break;
        }
        const uint32_t length = packet->data_len;
        if (unlikely(length < kShortestPacket)) {
            break;
        }
        if (length <= longest_copy) {
            octowords += inline_octowords(length);
            if (octowords > room) {
                octowords -= inline_octowords(length);
                break;
            }
            const uint32_t byte_count = Be32::swap(length | kInlineData);
            memcpy(at, &byte_count, sizeof(byte_count));
            const auto* from = rte_pktmbuf_mtod(packet, const uint8_t*);
            uint8_t* const to = at + sizeof(byte_count);
            at += size_t{inline_octowords(length)} * kOctoword;
            if (likely(at < ring_end)) {
                copy_packet(to, from, length);
            } else {
                const uint32_t linear = std::min(length, static_cast<uint32_t>(ring_end - to));
                memcpy(to, from, linear);
                memcpy(ring, from + linear, length - linear);
                at -= ring_end - ring;
            }
        } else {
            const uintptr_t address = rte_pktmbuf_mtod(packet, uintptr_t);
            const Be32 key = memory_.lkey(*packet, address);
            if (unlikely(key.raw == kNoLkey.raw || free_segments() == 0) || octowords == room) {
                break;
            }
            write_data(*reinterpret_cast<DataSegment*>(at), length, key, address);
            mbufs_[segment_producer_++ & segment_mask_] = packet;
            if (copied_from != i) {
                release_now(packets + copied_from, i - copied_from);
            }
            copied_from = i + 1;
            ++octowords;
            at += kOctoword;
            if (at == ring_end) {
                at = ring;
            }
        }
        bytes += length;
    }
    if (copied_from < i) {
        release_now(packets + copied_from, i - copied_from);
    }
    if (likely(i != 0)) {
        written.bytes += bytes;
        close_session(octowords, flags, i, written);
    }
    return i;
}

}  // namespace tagwire::mlx5raw
