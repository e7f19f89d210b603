// SPDX-License-Identifier: BSD-3-Clause
// Executing send rings.
#pragma once

#include "drivers/softcx/engine/state.h"

namespace softcx {

// Executes (in RTS) or flushes (in ERR) WQEs up to the doorbell, until `budget` packets
// have been sent. Returns how many.
uint32_t run_send_port(EngineState& state, SendPort& port, uint32_t budget) noexcept;

// Every announced WQE completes as flushed.
uint32_t flush_send_port(EngineState& state, SendPort& port) noexcept;

// The send queue stops: the QP's state follows, what was announced is flushed.
void enter_send_error(EngineState& state, SendPort& port) noexcept;

}  // namespace softcx
