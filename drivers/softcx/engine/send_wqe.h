// SPDX-License-Identifier: BSD-3-Clause
// One send WQE, decoded.
#pragma once

#include <array>
#include <span>

#include "drivers/softcx/engine/state.h"
#include "drivers/softcx/wire/wire.h"

namespace softcx {

struct SendWqe {
    WqeOpcode opcode;
    CompletionMode completion;
    bool solicited;
    uint16_t index;
    uint32_t octowords;
    uint32_t basic_blocks;

    uint8_t checksum_flags = 0;
    uint16_t mss = 0;
    uint32_t inline_header = 0;  // bytes
    bool insert_vlan = false;
    uint16_t vlan_tci = 0;

    // Bytes of the frame, of the headers and payload to segment, or of all the frames
    // of a multi-packet WQE, where each piece is a frame.
    uint32_t total = 0;
    uint32_t piece_count = 0;
    std::array<Wire::Piece, kMaxOctowords> piece_storage;
    alignas(16) std::array<uint8_t, kMaxOctowords * kOctoword> unwrapped;

    std::span<const Wire::Piece> pieces() const { return {piece_storage.data(), piece_count}; }
};

// Decodes the WQE at the ring's consumer index, of which `announced` basic blocks
// are valid. Syndrome::kNone when it can be executed; else `index`, `opcode` and
// `basic_blocks` are set nevertheless.
Syndrome decode_send_wqe(EngineState& state, SendPort& port, uint16_t announced,
                         SendWqe& wqe) noexcept;

}  // namespace softcx
