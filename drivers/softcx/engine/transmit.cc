// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/engine/transmit.h"

#include <algorithm>
#include <cstring>

#include "drivers/softcx/engine/receive.h"
#include "drivers/softcx/engine/segmentation.h"

namespace softcx {

namespace {

constexpr uint32_t kShortestFrame = 60;  // without FCS; the MAC pads up to it
constexpr uint32_t kMacAddresses = 12;

uint64_t destination_number(const uint8_t* frame) noexcept {
    uint64_t number = 0;
    std::memcpy(&number, frame, sizeof(MacAddress));
    return number;
}

// MAC addresses that belong to this port: traffic to them is looped back inside the
// card, before the wire (the embedded switch does so for its own ports).
bool is_local(const EngineState& state, const uint8_t* frame) noexcept {
    const uint64_t destination = destination_number(frame);
    return std::find(state.local_macs.begin(), state.local_macs.end(), destination) !=
           state.local_macs.end();
}

void count_sent(Port& port, const uint8_t* frame, uint32_t bytes) noexcept {
    ++port.counters.tx_packets;
    port.counters.tx_bytes += bytes;
    port.counters.tx_multicast += frame[0] & 1;
}

void count_not_sent(Port& port, const uint8_t* frame, uint32_t bytes) noexcept {
    ++port.counters.tx_wire_full;
    --port.counters.tx_packets;
    port.counters.tx_bytes -= bytes;
    port.counters.tx_multicast -= frame[0] & 1;
}

void send_pieces(EngineState& state, std::span<const Wire::Piece> pieces, uint32_t total) noexcept {
    Port& port = state.device.port;
    if (!port.link_up || port.wire == nullptr) {
        ++port.counters.tx_no_link;  // as with the cable pulled: WQEs complete, frames vanish
        return;
    }
    const uint8_t* frame = pieces.front().data;
    count_sent(port, frame, total);
    if (!port.wire->send(pieces, total))
        count_not_sent(port, frame, total);
}

// A contiguous frame of at least kShortestFrame bytes.
void send_linear(EngineState& state, const uint8_t* frame, uint32_t length) noexcept {
    if (!state.flows.sniffers().empty())
        deliver_to_sniffers(state, frame, length);
    if (is_local(state, frame)) {
        count_sent(state.device.port, frame, length);
        receive_frame(state, frame, length);
        return;
    }
    const Wire::Piece piece{frame, length};
    send_pieces(state, {&piece, 1}, length);
}

// Pads, writes checksums and sends. `frame` has room for the padding.
void finish_linear(EngineState& state, uint8_t* frame, uint32_t length, uint8_t flags) noexcept {
    if (flags != 0)
        generate_checksums(parse_frame(frame, length), frame, flags);
    if (length < kShortestFrame) {
        std::memset(frame + length, 0, kShortestFrame - length);
        length = kShortestFrame;
    }
    send_linear(state, frame, length);
}

uint32_t insert_vlan(uint8_t* frame, uint32_t length, uint16_t tci) noexcept {
    std::memmove(frame + kMacAddresses + kVlanTag, frame + kMacAddresses, length - kMacAddresses);
    store_be16(frame + kMacAddresses, kTypeVlan);
    store_be16(frame + kMacAddresses + 2, tci);
    return length + kVlanTag;
}

void send_segments(EngineState& state, const SendWqe& wqe, const uint8_t* all) noexcept {
    const LargeFrame large{all, wqe.inline_header, wqe.total, wqe.mss};
    const auto flags = static_cast<uint8_t>(wqe.checksum_flags | kEthL3Checksum | kEthL4Checksum);
    uint8_t* segment = state.segment_scratch.data();
    for (uint32_t number = 0; number < large.segments(); ++number)
        finish_linear(state, segment, make_segment(large, number, flags, segment), 0);
}

// One frame that leaves as its pieces say.
void send_frame(EngineState& state, const SendWqe& wqe, std::span<const Wire::Piece> pieces,
                uint32_t length) noexcept {
    const Wire::Piece& first = pieces.front();
    const uint8_t flags = wqe.checksum_flags & (kEthL3Checksum | kEthL4Checksum);
    const bool as_it_is = flags == 0 && !wqe.insert_vlan && length >= kShortestFrame &&
                          first.length >= sizeof(MacAddress) && state.flows.sniffers().empty() &&
                          !is_local(state, first.data);
    if (as_it_is) [[likely]] {
        send_pieces(state, pieces, length);
        return;
    }
    uint8_t* frame = state.send_scratch.data();
    gather(pieces, frame);
    if (wqe.insert_vlan)
        length = insert_vlan(frame, length, wqe.vlan_tci);
    finish_linear(state, frame, length, flags);
}

}  // namespace

void transmit(EngineState& state, const SendWqe& wqe) noexcept {
    if (wqe.opcode == WqeOpcode::kTso) {
        gather(wqe.pieces(), state.send_scratch.data());
        send_segments(state, wqe, state.send_scratch.data());
        return;
    }
    if (wqe.opcode != WqeOpcode::kMultiPacket) [[likely]] {
        send_frame(state, wqe, wqe.pieces(), wqe.total);
        return;
    }
    for (const Wire::Piece& packet : wqe.pieces())
        send_frame(state, wqe, {&packet, 1}, packet.length);
}

}  // namespace softcx
