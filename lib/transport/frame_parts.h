// SPDX-License-Identifier: BSD-3-Clause
// What is done for every frame that leaves, for send.cc and frames.cc to inline.
#pragma once

#include <rte_mbuf.h>

#include <cstring>

#include "lib/transport/engine.h"
#include "lib/transport/scatter.h"
#include "lib/wire/checksum.h"

namespace tagwire::transport {

inline uint8_t* write_record(uint8_t* at, const SendOperation& operation) noexcept {
    const MessageHeader& header = operation.header;
    const auto length = static_cast<uint32_t>(header.length);
    if (operation.state.plain) [[likely]] {
        *reinterpret_cast<wire::be16*>(at) = static_cast<uint16_t>(length | wire::kRecordTagged);
        *reinterpret_cast<wire::be64*>(at + 2) = header.tag;
        at += 10;
        if (length == 8) [[likely]] {
            std::memcpy(at, operation.iov[0].iov_base, 8);
        } else {
            std::memcpy(at, operation.iov[0].iov_base, length);
        }
        return at + length;
    }
    uint32_t bits = length;
    uint8_t* const start = at;
    at += 2;
    if (header.kind == MessageKind::kTagged) {
        bits |= wire::kRecordTagged;
        *reinterpret_cast<wire::be64*>(at) = header.tag;
        at += 8;
    }
    if ((header.flags & kHasData) != 0) {
        bits |= wire::kRecordHasData;
        *reinterpret_cast<wire::be64*>(at) = header.data;
        at += 8;
    }
    *reinterpret_cast<wire::be16*>(start) = static_cast<uint16_t>(bits);
    gather(operation.iov, 0, at, length);
    return at + length;
}

inline rte_mbuf* Engine::new_frame() noexcept {
    if (stock_count_ == 0 && !take_stock()) [[unlikely]] {
        return nullptr;
    }
    return stock_[--stock_count_];
}

// One that was received. It may be the next one to send: what begin_frame and finish_frame do
// not write is made as the pool gives it.
inline void Engine::free_frame(rte_mbuf* packet) noexcept {
    if (stock_count_ < kBurst && packet->pool == config_.packet_pool &&
        rte_mbuf_refcnt_read(packet) == 1 && packet->nb_segs == 1 && RTE_MBUF_DIRECT(packet)) {
        packet->data_off = RTE_PKTMBUF_HEADROOM;
        packet->port = RTE_MBUF_PORT_INVALID;
        packet->ol_flags = 0;
        packet->packet_type = 0;
        packet->vlan_tci = 0;
        packet->tx_offload = 0;
        stock_[stock_count_++] = packet;
    } else {
        rte_pktmbuf_free(packet);
    }
}

inline void Engine::push_frame(rte_mbuf* packet) noexcept {
    batch_[batch_count_++] = packet;
    if (batch_count_ == kTxBatch) [[unlikely]] {
        flush_frames();
    }
}

inline void Engine::push_frame(const Session& s, rte_mbuf* packet) noexcept {
    s.loopback ? loop_back(packet) : push_frame(packet);
}

inline uint16_t Engine::credit_for(Session& s) noexcept {
    const uint32_t promised = s.eager_allowed - s.eager_received;
    if (promised < ReceiveBudget::kMaxPromise / 2) [[unlikely]] {
        promise_credit(s, promised);
    }
    return static_cast<uint16_t>(s.eager_allowed);
}

// Returns where the extension goes.
inline uint8_t* Engine::begin_frame(Session& s, rte_mbuf* packet, wire::PacketType type,
                                    uint64_t psn, uint8_t flags) noexcept {
    auto* frame = rte_pktmbuf_mtod(packet, wire::FrameHeader*);
    std::memcpy(frame, &s.frame, sizeof(*frame));
    frame->base.version_type = wire::BaseHeader::make_version_type(type);
    if (s.saw_duplicate) [[unlikely]] {
        flags |= wire::kFlagDuplicate;
        s.saw_duplicate = false;
    }
    frame->base.flags = flags;
    frame->base.psn = static_cast<uint32_t>(psn);
    frame->base.ack = static_cast<uint32_t>(s.receive_next);
    frame->base.timestamp = timestamp();
    frame->base.credit = credit_for(s);
    if (s.receive_end == s.receive_next) [[likely]] {
        s.ack_need = AckNeed::kNone;  // this packet says it all
    }
    return reinterpret_cast<uint8_t*>(frame + 1);
}

// The checksum, or what the NIC needs to compute it. `pseudo_sum` is without the length;
// `lent`: the segment behind this one.
inline void Engine::finish_udp(rte_mbuf* packet, uint16_t pseudo_sum,
                               const rte_mbuf* lent) noexcept {
    auto* frame = rte_pktmbuf_mtod(packet, wire::FrameHeader*);
    if (config_.nic_udp_checksum) {
        packet->ol_flags = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_UDP_CKSUM;
        packet->tx_offload =
            rte_mbuf_tx_offload(sizeof(frame->ethernet), sizeof(frame->ip), 0, 0, 0, 0, 0);
        frame->udp.checksum =
            wire::be16::from_raw(wire::checksum_join(pseudo_sum, frame->udp.length.raw()));
    } else if (lent == nullptr) {
        frame->udp.checksum = wire::be16::from_raw(wire::udp_checksum(frame->ip, frame->udp));
    } else {
        frame->udp.checksum = wire::be16::from_raw(wire::udp_checksum(
            frame->ip, frame->udp, packet->data_len - sizeof(frame->ethernet) - sizeof(frame->ip),
            rte_pktmbuf_mtod(lent, const uint8_t*), lent->data_len));
    }
}

inline void Engine::finish_frame(const Session& s, rte_mbuf* packet, const uint8_t* end,
                                 const rte_mbuf* lent) noexcept {
    auto* frame = rte_pktmbuf_mtod(packet, wire::FrameHeader*);
    const auto own = static_cast<uint32_t>(end - reinterpret_cast<const uint8_t*>(frame));
    const uint32_t length = own + (lent != nullptr ? lent->data_len : 0u);
    const wire::be16 ip_length = static_cast<uint16_t>(length - sizeof(frame->ethernet));
    frame->ip.total_length = ip_length;
    frame->ip.checksum = wire::be16::from_raw(
        static_cast<uint16_t>(~wire::checksum_join(s.ip_sum, ip_length.raw())));
    frame->udp.length = static_cast<uint16_t>(length - sizeof(frame->ethernet) - sizeof(frame->ip));
    packet->data_len = static_cast<uint16_t>(own);
    packet->pkt_len = length;
    finish_udp(packet, s.pseudo_sum, lent);
}

}  // namespace tagwire::transport
