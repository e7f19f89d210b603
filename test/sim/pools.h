// SPDX-License-Identifier: BSD-3-Clause
// Packet pools that outlive the simulations: making one takes longer than a short
// simulation.
#pragma once

#include <cstdint>

struct rte_mempool;

namespace sim {

rte_mempool* pool(uint32_t index);

}  // namespace sim
