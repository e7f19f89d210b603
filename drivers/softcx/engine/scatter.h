// SPDX-License-Identifier: BSD-3-Clause
// One frame into one receive ring.
#pragma once

#include "drivers/softcx/engine/state.h"

namespace softcx {

struct Reception {
    const ParsedFrame& frame;
    const FrameChecksums& checksums;
    uint32_t tag = 0;
    uint32_t hash = 0;
    uint8_t hash_type = 0;
};

void receive_on(EngineState& state, ReceivePort& port, const Reception& reception) noexcept;

// Whether a frame of that length would find the ring ready and room in it. A doorbell that
// is nonsense counts as room: reception tells of it.
bool has_room_for(const ReceivePort& port, uint32_t length) noexcept;

// Every posted WQE completes as flushed. Returns how many.
uint32_t flush_receive_port(EngineState& state, ReceivePort& port) noexcept;

// Looks after rings that don't receive: WQEs posted in ERR are flushed, those posted
// in RESET are a client error.
void tend_idle_port(EngineState& state, ReceivePort& port) noexcept;

}  // namespace softcx
