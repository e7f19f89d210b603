// SPDX-License-Identifier: BSD-3-Clause
// The state machines of work queues and queue pairs.
#pragma once

#include <cstdint>
#include <optional>

#include "drivers/softcx/model/objects.h"

namespace softcx {

const char* name_of(WqState state) noexcept;
const char* name_of(QpState state) noexcept;

// From the numbers of the verbs ABI; nothing for a number that names no state.
std::optional<WqState> wq_state(uint32_t value) noexcept;
std::optional<QpState> qp_state(uint32_t value) noexcept;

bool wq_may_move(WqState from, WqState to) noexcept;

// The move of a raw packet QP, with the attributes (IB_QP_* mask bits other than
// the state itself) that it was given.
bool raw_qp_may_move(QpState from, QpState to, uint32_t attributes) noexcept;

inline constexpr uint32_t kQpAttributeState = 1u << 0;
inline constexpr uint32_t kQpAttributeCurrentState = 1u << 1;
inline constexpr uint32_t kQpAttributePort = 1u << 5;

// Applies the move and tells the data path: outstanding work is flushed on the way
// to ERR, the ring starts anew after RESET.
void move_wq(Device& device, WorkQueue& wq, WqState to) noexcept;
void move_raw_qp(Device& device, QueuePair& qp, QpState to) noexcept;

}  // namespace softcx
