// SPDX-License-Identifier: BSD-3-Clause
// From a frame to the receive rings.
#pragma once

#include "drivers/softcx/engine/state.h"

namespace softcx {

// A frame from the wire: the MAC counts and drops what is no frame of this port, before
// anybody sees it.
void receive_from_wire(EngineState& state, const uint8_t* data, uint32_t length) noexcept;

// For wires that keep a frame until it can be received: whether every ring that it goes to
// has room. A frame that goes nowhere can be taken, once there is a rule at all.
bool can_receive(EngineState& state, const uint8_t* data, uint32_t length) noexcept;

// Such a frame, or one that is looped back: steers it by the flow rules.
void receive_frame(EngineState& state, const uint8_t* data, uint32_t length) noexcept;

// A copy for each sniffer, of what the port sends and receives.
void deliver_to_sniffers(EngineState& state, const uint8_t* data, uint32_t length) noexcept;

}  // namespace softcx
