// SPDX-License-Identifier: BSD-3-Clause
// CQE compression: the receive CQEs of one step that differ little become one title
// CQE and an array of mini CQEs.
#pragma once

#include <array>

#include "drivers/softcx/engine/state.h"

namespace softcx {

inline constexpr uint32_t kMostCompressed = 64;  // announced as cqe_comp_caps.max_num

// The CQEs that wait to be written. No session outlives a step or a drain.
struct CompressionSession {
    uint32_t count = 0;
    Cqe title;              // the first of them, whole
    uint16_t next_counter;  // the wqe_counter that a further one must have
    std::array<MiniCqe, kMostCompressed> minis;
};

// A receive CQE: joins the session of the CQ, or is written. False as in write_cqe().
bool write_receive_cqe(EngineState& state, CompletionPort& port, Cqe& cqe) noexcept;

void close_session(CompletionPort& port) noexcept;
void close_sessions(EngineState& state) noexcept;

}  // namespace softcx
