// SPDX-License-Identifier: BSD-3-Clause
// Writing CQEs, and the events that follow from them.
#pragma once

#include "drivers/softcx/engine/state.h"

namespace softcx {

// Appends a CQE; its opcode and owner bit are set here. False: the CQ overran, the
// CQE is lost and the CQ stays in error.
bool write_cqe(EngineState& state, CompletionPort& port, Cqe& cqe, CqeOpcode opcode,
               bool solicited) noexcept;

bool write_error_cqe(EngineState& state, CompletionPort& port, CqeOpcode opcode, Syndrome syndrome,
                     uint32_t opcode_qpn, uint32_t user_index, uint16_t wqe_counter) noexcept;

// Looks for a new arm command in the doorbell record.
void check_arm(CompletionQueue& cq) noexcept;

// Counts a completion in error by its kind.
void count_error(PortCounters& counters, Syndrome syndrome) noexcept;

}  // namespace softcx
