// SPDX-License-Identifier: BSD-3-Clause
// From a frame to the receive rings.
#pragma once

#include "drivers/softcx/engine/state.h"

namespace softcx {

// A frame from the wire, or looped back: steers it by the flow rules.
void receive_frame(EngineState& state, const uint8_t* data, uint32_t length) noexcept;

// A copy for each sniffer, of what the port sends and receives.
void deliver_to_sniffers(EngineState& state, const uint8_t* data, uint32_t length) noexcept;

}  // namespace softcx
