// SPDX-License-Identifier: BSD-3-Clause
// Who wins: the priorities of all verbs flow rules of a port. Lower numbers win; Linux
// takes 0 to 15 (MLX5_BY_PASS_NUM_REGULAR_PRIOS).
#pragma once

#include <cstdint>

namespace tagwire::mlx5raw {

// TCP and UDP before IP before the rest: what a rule needs when it hashes.
inline constexpr uint16_t kPrioritiesPerSet = 3;

// rte_flow rules, by rte_flow_attr.priority.
inline constexpr uint16_t kFlowPriorities = 3;

// Frames of VLANs that the filter excludes.
inline constexpr uint16_t kVlanFilterPriority = kFlowPriorities * kPrioritiesPerSet;

// What the port listens to: two sets, side by side while one replaces the other.
inline constexpr uint16_t kListenPriority = kVlanFilterPriority + 1;
static_assert(kListenPriority + 2 * kPrioritiesPerSet <= 16);

}  // namespace tagwire::mlx5raw
