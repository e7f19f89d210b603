// SPDX-License-Identifier: BSD-3-Clause
// A frame arrived: decode it, find its session, hand it on. Each frame ends in
// exactly one outcome counter.
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include <algorithm>
#include <utility>

#include "lib/transport/engine.h"
#include "lib/transport/frame_parts.h"
#include "lib/transport/log.h"
#include "lib/transport/psn.h"

namespace tagwire::transport {
namespace {

Counter counter_of(wire::Reject reject) noexcept {
    return static_cast<Counter>(static_cast<uint16_t>(reject) - 1);
}

wire::Verified verified_by_nic(const rte_mbuf* packet) noexcept {
    const uint64_t flags = packet->ol_flags;
    return {(flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_GOOD,
            (flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_GOOD};
}

}  // namespace

void Engine::receive() noexcept {
    if (!events_.empty()) [[unlikely]] {
        return;
    }
    if (!looped_.empty()) [[unlikely]] {
        receive_looped();
    }
    rte_mbuf* packets[kBurst];
    for (uint32_t burst = 0; burst < kRxBursts && events_.empty(); ++burst) {
        const uint16_t received = io_.rx_burst(packets, kBurst);
        if (received == 0) {
            break;
        }
        receive_burst(packets, received);
        if (received < kBurst) {
            break;
        }
    }
}

void Engine::receive_burst(rte_mbuf** packets, uint16_t received) noexcept {
    counters_[Counter::rx_frames] += received;
    if (!receive_pool_known_) [[unlikely]] {
        note_receive_pool(packets[0]);
    }
    for (uint16_t i = 0; i < received; ++i) {
        if (i + 1 < received) {
            rte_prefetch0(rte_pktmbuf_mtod(packets[i + 1], void*));
        }
        count(receive_frame(packets[i]));
        if (!std::exchange(frame_retained_, false)) {
            free_frame(packets[i]);  // what holds payload took a reference
        }
    }
}

// Frames that this worker sent to itself. Messages that wait for a receive hold them as they
// hold received ones, so their pool limits the budget as well.
void Engine::receive_looped() noexcept {
    if (!loop_pool_known_) {
        loop_pool_known_ = true;
        budget_.cap(looped_[0]->pool->size / 3);
    }
    looped_.swap(looped_scratch_);
    for (rte_mbuf* packet : looped_scratch_) {
        count(Counter::rx_frames);
        count(Counter::looped_frames);
        count(receive_frame(packet));
        if (!std::exchange(frame_retained_, false)) {
            free_frame(packet);
        }
    }
    looped_scratch_.clear();
}

// What is held is missing in the receive ring: a third of the pool at most, the rest
// is for the ring and the caches.
void Engine::note_receive_pool(const rte_mbuf* packet) noexcept {
    receive_pool_known_ = true;
    const uint32_t frames = packet->pool->size;
    budget_.cap(frames / 3);
    TAGWIRE_LOG(INFO,
                "receive pool of %u frames: at most %u are held for messages without a receive",
                frames, frames / 3);
}

Counter Engine::receive_frame(rte_mbuf* packet) noexcept {
    if (packet->nb_segs != 1 && rte_pktmbuf_linearize(packet) != 0) [[unlikely]] {
        return Counter::drop_scattered;
    }
    wire::FrameView view;
    const wire::Reject reject =
        wire::decode_frame(rte_pktmbuf_mtod(packet, const uint8_t*), packet->data_len, decode_,
                           verified_by_nic(packet), view);
    if (reject == wire::Reject::kNone && view.kind == wire::FrameKind::kTagwire) [[likely]] {
        return receive_tagwire(packet, view);
    }
    if (reject == wire::Reject::kNone) {
        return view.kind == wire::FrameKind::kArp ? receive_arp(view) : receive_ping(view);
    }
    if (reject == wire::Reject::kVersion && view.base->type() == wire::PacketType::kHello &&
        view.payload_length == sizeof(wire::HandshakeHeader)) {
        reply_handshake(view, wire::PacketType::kRefuse, 0, wire::RefuseReason::kVersion);
    }
    return counter_of(reject);
}

Counter Engine::receive_tagwire(rte_mbuf* packet, const wire::FrameView& view) noexcept {
    const wire::BaseHeader& base = *view.base;
    const wire::PacketType type = base.type();
    if (type >= wire::PacketType::kHello && type != wire::PacketType::kClose &&
        type != wire::PacketType::kOperations) [[unlikely]] {
        return receive_cold(view);
    }
    const uint32_t connection = base.connection;
    if (connection >= peers_) [[unlikely]] {
        send_reset(view);
        return Counter::drop_no_session;
    }
    Session& s = sessions_[connection];
    if (base.connection_tag != s.local_tag || s.state == SessionState::kClosed) [[unlikely]] {
        send_reset(view);
        return Counter::drop_stale_tag;
    }
    if (s.state < SessionState::kEstablished) [[unlikely]] {
        return Counter::drop_not_established;
    }
    if (view.ip->source.raw() != s.frame.ip.destination.raw()) [[unlikely]] {
        return Counter::drop_wrong_source;
    }
    s.heard_ns = now_;
    if (!take_acknowledgement(s, base)) [[unlikely]] {
        return Counter::drop_bad_ack;
    }
    if (wire::is_sequenced(type)) [[likely]] {
        return s.state == SessionState::kEstablished ? receive_sequenced(s, packet, view)
                                                     : Counter::drop_not_established;
    }
    switch (type) {
        case wire::PacketType::kAck:
            if (view.payload_length > 0) {
                selectively_acknowledged(s, base, view.payload, view.payload_length / 8);
            }
            return Counter::rx_acks;
        case wire::PacketType::kProbe:
            need_ack(s, AckNeed::kNow);
            return Counter::rx_probes;
        default:
            return receive_close(s, view);
    }
}

Counter Engine::receive_cold(const wire::FrameView& view) noexcept {
    switch (view.base->type()) {
        case wire::PacketType::kHello:
            return receive_hello(view);
        case wire::PacketType::kCookie:
            return receive_cookie(view);
        case wire::PacketType::kAccept:
            return receive_accept(view);
        case wire::PacketType::kRefuse:
            return receive_refuse(view);
        default:
            return receive_reset(view);
    }
}

// Cumulative acknowledgement and credit ride on every packet of a session.
bool Engine::take_acknowledgement(Session& s, const wire::BaseHeader& base) noexcept {
    const uint64_t ack = expand_psn(base.ack, s.una);
    if (ack > s.next_psn) [[unlikely]] {
        return false;
    }
    const auto credit = static_cast<int16_t>(base.credit - static_cast<uint16_t>(s.eager_credit));
    if (credit > 0) {
        s.eager_credit += static_cast<uint32_t>(credit);
        s.persist_deadline = kNever;
        if (s.unsent != nullptr) {
            make_ready(s);
        }
    }
    if ((base.flags & wire::kFlagDuplicate) != 0) [[unlikely]] {
        count(Counter::spurious_retransmits);
        s.reorder_steps = std::min(s.reorder_steps + 1, 32u);
    }
    if (ack > s.una) {
        const auto packets = static_cast<uint32_t>(ack - s.una);
        acknowledged(s, ack);
        after_acknowledgement(s, packets, base);
    }
    return true;
}

}  // namespace tagwire::transport
