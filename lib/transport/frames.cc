// SPDX-License-Identifier: BSD-3-Clause
// A frame is built: from a session's template, or as a reply to one that has no
// session.
#include <rte_mbuf.h>

#include <cstring>

#include "lib/transport/engine.h"
#include "lib/transport/frame_parts.h"

namespace tagwire::transport {
namespace {

constexpr uint8_t kTimeToLive = 64;

void fill_headers(wire::FrameHeader& frame, const wire::Mac& from, const wire::Mac& to,
                  wire::be32 from_ip, wire::be32 to_ip, wire::be16 from_port,
                  wire::be16 to_port) noexcept {
    frame = {};
    frame.ethernet = {to, from, wire::kEtherTypeIpv4};
    frame.ip.version_length = wire::kIpv4NoOptions;
    frame.ip.fragment = wire::kIpv4DontFragment;
    frame.ip.time_to_live = kTimeToLive;
    frame.ip.protocol = wire::kIpProtocolUdp;
    frame.ip.source = from_ip;
    frame.ip.destination = to_ip;
    frame.udp.source_port = from_port;
    frame.udp.destination_port = to_port;
}

uint8_t* write_operation(uint8_t* at, const SendOperation& operation) noexcept {
    const MessageHeader& header = operation.header;
    const auto length = static_cast<uint32_t>(header.length);
    const uint32_t bits = static_cast<uint32_t>(header.kind) << wire::kOperationKindShift |
                          ((header.flags & kHasData) != 0 ? wire::kOperationHasData : 0u) | length;
    *reinterpret_cast<wire::OperationHeader*>(at) = {static_cast<uint16_t>(bits), header.tag,
                                                     header.data};
    at += sizeof(wire::OperationHeader);
    gather(operation.iov, 0, at, length);
    return at + length;
}

}  // namespace

// The next receive() takes it.
void Engine::loop_back(rte_mbuf* packet) noexcept {
    packet->ol_flags = RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
    looped_.push_back(packet);
}

void Engine::fill_template(Session& s, const wire::Mac& mac) noexcept {
    wire::be32 ip;
    std::memcpy(&ip, s.remote.ip.data(), sizeof(ip));
    fill_headers(s.frame, decode_.mac, mac, decode_.ip, ip, decode_.udp_port, s.remote.udp_port);
    s.frame.base.connection = s.remote_connection;
    s.frame.base.connection_tag = s.remote_tag;
    s.ip_sum = wire::checksum_fold(wire::checksum_add(0, &s.frame.ip, sizeof(s.frame.ip)));
    s.pseudo_sum = wire::checksum_fold(wire::pseudo_header_sum(s.frame.ip, 0));
}

// The stock of frames is used up.
bool Engine::take_stock() noexcept {
    if (rte_pktmbuf_alloc_bulk(config_.packet_pool, stock_, kBurst) == 0) {
        stock_count_ = kBurst;
        return true;
    }
    stock_[0] = rte_pktmbuf_alloc(config_.packet_pool);  // fewer than a burst are left
    if (stock_[0] == nullptr) {
        count(Counter::tx_no_buffer);
        return false;
    }
    stock_count_ = 1;
    return true;
}

void Engine::flush_frames() noexcept {
    const uint32_t sent = io_.tx_burst(batch_, static_cast<uint16_t>(batch_count_));
    counters_[Counter::tx_frames] += sent;
    if (sent < batch_count_) [[unlikely]] {
        count(Counter::tx_nic_full);
        std::memmove(batch_, batch_ + sent, (batch_count_ - sent) * sizeof(batch_[0]));
    }
    batch_count_ -= sent;
}

void Engine::promise_credit(Session& s, uint32_t promised) noexcept {
    constexpr uint32_t kLow = 16;
    const uint32_t more = budget_.promise(s.committed, promised, held_units_);
    s.eager_allowed += more;
    s.credit_low = promised + more < kLow;
}

// Of a first or later fragment.
uint8_t* Engine::write_fragment_header(uint8_t* at, const TxSlot& slot) noexcept {
    if (slot.type == wire::PacketType::kFragment) {
        *reinterpret_cast<wire::FragmentHeader*>(at) = {slot.message_id, slot.offset};
        return at + sizeof(wire::FragmentHeader);
    }
    const MessageHeader& header = slot.operation->header;
    const auto flags = static_cast<uint16_t>(
        static_cast<uint16_t>(header.kind) |
        ((header.flags & kHasData) != 0 ? wire::kFirstHasData : 0) |
        ((header.flags & kWantsMatchNote) != 0 ? wire::kFirstWantsMatchNote : 0) |
        ((header.flags & kWantsDeliveryNote) != 0 ? wire::kFirstWantsDeliveryNote : 0) |
        (slot.operation->state.announces ? wire::kFirstAnnounces : 0));
    *reinterpret_cast<wire::FirstHeader*>(at) = {
        slot.message_id, static_cast<uint32_t>(header.length), flags, header.tag, header.data};
    return at + sizeof(wire::FirstHeader);
}

uint8_t* Engine::write_extension(uint8_t* at, const TxSlot& slot) noexcept {
    switch (slot.type) {
        case wire::PacketType::kMessages: {
            *reinterpret_cast<wire::MessagesHeader*>(at) = {slot.message_id};
            at += sizeof(wire::MessagesHeader);
            const SendOperation* operation = slot.operation;
            for (uint32_t left = slot.count; left > 0; --left) {
                at = write_record(at, *operation);
                operation = operation->state.next;
            }
            return at;
        }
        case wire::PacketType::kOperations: {
            *reinterpret_cast<wire::MessagesHeader*>(at) = {slot.message_id};
            at += sizeof(wire::MessagesHeader);
            const SendOperation* operation = slot.operation;
            for (uint32_t left = slot.count; left > 0; --left) {
                at = write_operation(at, *operation);
                operation = operation->state.next;
            }
            return at;
        }
        case wire::PacketType::kFirst:
        case wire::PacketType::kFragment:
            at = write_fragment_header(at, slot);
            gather(slot.operation->iov, slot.offset, at, slot.length);
            return at + slot.length;
        default:
            *reinterpret_cast<wire::GrantHeader*>(at) = {slot.message_id, slot.offset, slot.length,
                                                         slot.grant_flags};
            return at + sizeof(wire::GrantHeader);
    }
}

bool Engine::emit(Session& s, TxSlot& slot, uint64_t psn, uint8_t flags) noexcept {
    rte_mbuf* packet = has_tx_room() ? new_frame() : nullptr;
    if (packet == nullptr) [[unlikely]] {
        return false;
    }
    slot.sent_ns = now_;
    uint8_t* extension = begin_frame(s, packet, slot.type, psn, flags);
    finish_frame(s, packet, write_extension(extension, slot));
    push_frame(s, packet);
    return true;
}

bool Engine::send_ack(Session& s) noexcept {
    rte_mbuf* packet = has_tx_room() ? new_frame() : nullptr;
    if (packet == nullptr) [[unlikely]] {
        return false;
    }
    const uint8_t flags = s.echo_valid ? wire::kFlagEcho : 0;
    uint8_t* at = begin_frame(s, packet, wire::PacketType::kAck, s.next_psn, flags);
    if (s.echo_valid) {
        rte_pktmbuf_mtod(packet, wire::FrameHeader*)->base.timestamp = s.echo;
        s.echo_valid = false;  // an echo is worth something once
    }
    at += 8 * sack_words(s, reinterpret_cast<wire::be64*>(at));
    finish_frame(s, packet, at);
    s.ack_need = AckNeed::kNone;
    count(Counter::tx_acks);
    push_frame(s, packet);
    return true;
}

// Probe or close: the base header alone.
void Engine::send_control(Session& s, wire::PacketType type, uint8_t flags) noexcept {
    rte_mbuf* packet = has_tx_room() ? new_frame() : nullptr;
    if (packet != nullptr) {
        finish_frame(s, packet, begin_frame(s, packet, type, s.next_psn, flags));
        push_frame(s, packet);
    }
}

// The headers of an answer to a frame that has no session; nullptr without a buffer.
wire::FrameHeader* Engine::begin_reply(rte_mbuf** packet, const wire::FrameView& to,
                                       wire::PacketType type) noexcept {
    *packet = has_tx_room() ? new_frame() : nullptr;
    if (*packet == nullptr) {
        return nullptr;
    }
    auto* frame = rte_pktmbuf_mtod(*packet, wire::FrameHeader*);
    fill_headers(*frame, decode_.mac, to.ethernet->source, decode_.ip, to.ip->source,
                 decode_.udp_port, to.udp->source_port);
    frame->base.version_type = wire::BaseHeader::make_version_type(type);
    frame->base.timestamp = timestamp();
    return frame;
}

void Engine::finish_reply(rte_mbuf* packet, uint32_t extension) noexcept {
    auto* frame = rte_pktmbuf_mtod(packet, wire::FrameHeader*);
    const uint32_t length = static_cast<uint32_t>(sizeof(*frame)) + extension;
    frame->ip.total_length = static_cast<uint16_t>(length - sizeof(frame->ethernet));
    frame->ip.checksum = wire::be16::from_raw(wire::ipv4_header_checksum(frame->ip));
    frame->udp.length = static_cast<uint16_t>(length - sizeof(frame->ethernet) - sizeof(frame->ip));
    packet->data_len = static_cast<uint16_t>(length);
    packet->pkt_len = length;
    finish_udp(packet, wire::checksum_fold(wire::pseudo_header_sum(frame->ip, 0)));
    const bool own = frame->ip.destination.raw() == decode_.ip.raw() &&
                     frame->udp.destination_port.raw() == decode_.udp_port.raw();
    own ? loop_back(packet) : push_frame(packet);
}

}  // namespace tagwire::transport
