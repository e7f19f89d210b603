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

// Room for `count` more CQEs behind those that were written. False: the CQ overran.
bool has_room(EngineState& state, CompletionPort& port, uint32_t count) noexcept;

// Stores a CQE at an index of the ring; `format` is the opcode and the flags, without
// the owner bit. The owner byte is the last thing that a client sees change.
void store_cqe(const CompletionQueue& cq, uint32_t index, const Cqe& cqe, uint8_t format) noexcept;

// After `cqes` CQEs were stored and the producer index moved on.
void raise_if_armed(CompletionQueue& cq, bool solicited, uint32_t cqes) noexcept;

// At each step: a new arm, and events that moderation held back for long enough.
void tend_events(CompletionQueue& cq, uint64_t now) noexcept;

// Looks for a new arm command in the doorbell record.
void check_arm(CompletionQueue& cq) noexcept;

// Counts a completion in error by its ring and its kind.
void count_error(PortCounters& counters, CqeOpcode opcode, Syndrome syndrome) noexcept;

}  // namespace softcx
