// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/engine/send_wqe.h"

#include <algorithm>
#include <cstring>

#include "drivers/softcx/engine/access.h"

namespace softcx {

namespace {

constexpr uint32_t kMaxPayload = 256 * 1024;  // of a large send
constexpr uint32_t kShortestSend = 14;        // an Ethernet header
constexpr uint32_t kInlineHeaderStart = offsetof(EthernetSegment, inline_header_start);

Syndrome malformed(EngineState& state, const SendPort& port, ClientCheck check) noexcept {
    report_client_error(state.device, check, {"QP", port.qp->qpn});
    return Syndrome::kLocalQpOperation;
}

Syndrome wrong_length(EngineState& state, const SendPort& port) noexcept {
    report_client_error(state.device, ClientCheck::kWqeLength, {"QP", port.qp->qpn});
    return Syndrome::kLocalLength;
}

constexpr uint32_t round_to_octowords(uint32_t bytes) {
    return (bytes + kOctoword - 1) & ~(kOctoword - 1);
}

void add_piece(SendWqe& wqe, const uint8_t* data, uint32_t length) noexcept {
    if (length == 0)
        return;
    wqe.piece_storage[wqe.piece_count++] = {data, length};
    wqe.total += length;
}

// The WQE as contiguous bytes; it is copied only where it wraps around the ring.
const uint8_t* linear_wqe(const SendQueue& sq, SendWqe& wqe) noexcept {
    const uint32_t ring = sq.wqe_count * kBasicBlock;
    const uint32_t start = (wqe.index & (sq.wqe_count - 1)) * kBasicBlock;
    const uint32_t bytes = wqe.octowords * kOctoword;
    if (start + bytes <= ring)
        return sq.buffer + start;
    std::memcpy(wqe.unwrapped.data(), sq.buffer + start, ring - start);
    std::memcpy(wqe.unwrapped.data() + (ring - start), sq.buffer, bytes - (ring - start));
    return wqe.unwrapped.data();
}

// Ethernet segment: returns its size in bytes, or 0 when it runs past the WQE.
uint32_t decode_ethernet(const uint8_t* at, uint32_t available, SendWqe& wqe) noexcept {
    if (available < sizeof(EthernetSegment))
        return 0;
    EthernetSegment segment;
    std::memcpy(&segment, at, sizeof(segment));
    wqe.checksum_flags = segment.checksum_flags;
    wqe.mss = segment.mss.get();
    const uint16_t size = segment.inline_header_size.get();
    if ((size & kEthInsertVlan) != 0) {
        wqe.insert_vlan = true;
        wqe.vlan_tci = load_be16(segment.inline_header_start);
        return sizeof(EthernetSegment);
    }
    const uint32_t bytes = round_to_octowords(kInlineHeaderStart + size);
    if (bytes > available)
        return 0;
    wqe.inline_header = size;
    add_piece(wqe, at + kInlineHeaderStart, size);
    return std::max<uint32_t>(bytes, sizeof(EthernetSegment));
}

// Multi-packet send: every segment, inline or by pointer, is a frame of its own. The
// Ethernet segment serves them all and has no data of its own.
Syndrome decode_packets(EngineState& state, SendPort& port, const uint8_t* at, uint32_t available,
                        SendWqe& wqe) noexcept {
    if (wqe.inline_header != 0 || wqe.insert_vlan || wqe.mss != 0 || available == 0)
        return malformed(state, port, ClientCheck::kWqeSegment);
    while (available != 0) {
        DataSegment segment;
        std::memcpy(&segment, at, sizeof(segment));
        const uint32_t length = segment.byte_count.get() & ~kInlineData;
        const bool is_inline = (segment.byte_count.get() & kInlineData) != 0;
        const uint8_t* data = at + sizeof(Be32);
        if (is_inline && length > available - sizeof(Be32))
            return malformed(state, port, ClientCheck::kWqeSegment);
        if (length < kShortestSend || length > kMaxFrame)
            return wrong_length(state, port);
        if (!is_inline)
            data = access_memory(state, port.memory, port.qp->qpn,
                                 {segment.lkey.get(), segment.address.get(), length, false});
        if (data == nullptr)
            return Syndrome::kLocalProtection;
        add_piece(wqe, data, length);
        const uint32_t bytes =
            is_inline ? round_to_octowords(sizeof(Be32) + length) : sizeof(DataSegment);
        at += bytes;
        available -= bytes;
    }
    return Syndrome::kNone;
}

Syndrome decode_data(EngineState& state, SendPort& port, const uint8_t* at, uint32_t available,
                     SendWqe& wqe) noexcept {
    while (available != 0) {
        const uint32_t byte_count = load_be32(at);
        if ((byte_count & kInlineData) != 0) {
            const uint32_t length = byte_count & ~kInlineData;
            if (length > available - sizeof(Be32))
                return malformed(state, port, ClientCheck::kWqeSegment);
            add_piece(wqe, at + sizeof(Be32), length);
            const uint32_t bytes = round_to_octowords(sizeof(Be32) + length);
            at += bytes;
            available -= bytes;
            continue;
        }
        DataSegment segment;
        std::memcpy(&segment, at, sizeof(segment));
        at += sizeof(segment);
        available -= sizeof(segment);
        if (byte_count == 0) {
            // 2^31 bytes (PRM, "Data segment"), which no frame has; with the invalid
            // lkey it ends the list.
            if (segment.lkey.get() == kInvalidLkey)
                return Syndrome::kNone;
            return wrong_length(state, port);
        }
        const uint8_t* data =
            access_memory(state, port.memory, port.qp->qpn,
                          {segment.lkey.get(), segment.address.get(), byte_count, false});
        if (data == nullptr)
            return Syndrome::kLocalProtection;
        if (byte_count > kMaxPayload)
            return wrong_length(state, port);
        add_piece(wqe, data, byte_count);
    }
    return Syndrome::kNone;
}

bool has_good_length(const SendWqe& wqe) noexcept {
    if (wqe.total < kShortestSend)
        return false;
    if (wqe.opcode == WqeOpcode::kSend)
        return wqe.total <= kMaxFrame;
    return wqe.mss != 0 && wqe.inline_header >= kShortestSend && wqe.total <= kMaxPayload &&
           wqe.inline_header + wqe.mss <= kMaxFrame;
}

}  // namespace

Syndrome decode_send_wqe(EngineState& state, SendPort& port, uint16_t announced,
                         SendWqe& wqe) noexcept {
    const SendQueue& sq = port.qp->sq;
    ControlSegment control;
    wqe.index = sq.consumer_index;
    std::memcpy(&control, sq.buffer + size_t{wqe.index & (sq.wqe_count - 1)} * kBasicBlock,
                sizeof(control));
    wqe.opcode = control.opcode();
    wqe.completion = control.completion();
    wqe.solicited = control.solicited();
    wqe.octowords = control.octowords();
    wqe.basic_blocks = std::max<uint32_t>(
        1, (wqe.octowords + kBasicBlock / kOctoword - 1) / (kBasicBlock / kOctoword));
    wqe.total = 0;
    wqe.piece_count = 0;
    wqe.inline_header = 0;
    wqe.insert_vlan = false;

    if (control.index() != wqe.index)
        return malformed(state, port, ClientCheck::kWqeIndex);
    if (control.qpn() != port.qp->qpn)
        return malformed(state, port, ClientCheck::kWqeQpn);
    if (wqe.octowords == 0 || wqe.basic_blocks > announced) {
        wqe.basic_blocks = announced;
        return malformed(state, port, ClientCheck::kWqeSize);
    }
    if (wqe.opcode == WqeOpcode::kNop)
        return Syndrome::kNone;
    // A modifier makes the large send the multi-packet send of older cards.
    const bool known = wqe.opcode == WqeOpcode::kSend || wqe.opcode == WqeOpcode::kTso ||
                       wqe.opcode == WqeOpcode::kMultiPacket;
    if (!known || control.opcode_modifier() != 0)
        return malformed(state, port, ClientCheck::kWqeOpcode);

    const uint8_t* at = linear_wqe(sq, wqe) + sizeof(ControlSegment);
    const uint32_t available = wqe.octowords * kOctoword - sizeof(ControlSegment);
    const uint32_t ethernet = decode_ethernet(at, available, wqe);
    if (ethernet == 0)
        return malformed(state, port, ClientCheck::kWqeSegment);
    if (wqe.opcode == WqeOpcode::kMultiPacket)
        return decode_packets(state, port, at + ethernet, available - ethernet, wqe);
    const Syndrome syndrome = decode_data(state, port, at + ethernet, available - ethernet, wqe);
    if (syndrome != Syndrome::kNone || has_good_length(wqe)) [[likely]]
        return syndrome;
    return wrong_length(state, port);
}

}  // namespace softcx
