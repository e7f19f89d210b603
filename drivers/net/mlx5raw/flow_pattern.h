// SPDX-License-Identifier: BSD-3-Clause
// The pattern of an rte_flow rule, as verbs can match it.
#pragma once

#include <vector>

#include "drivers/net/mlx5raw/flow_error.h"
#include "drivers/net/mlx5raw/rule.h"

namespace tagwire::mlx5raw {

struct FlowPattern {
    RuleMatch match;
    // A VLAN tag, whatever is in it. Verbs sees a tag only by bits of it, so this
    // becomes two rules.
    bool any_vlan = false;

    bool operator==(const FlowPattern&) const = default;

    // The matches that together are the pattern.
    std::vector<RuleMatch> matches() const;

    // Whether packets of the type can match.
    bool may_be(HashType type) const;
};

// Items: ETH, VLAN (one), IPV4 or IPV6, TCP or UDP, in this order, each optional.
// Returns 0, or -errno with `error` filled.
int parse_pattern(const rte_flow_item items[], FlowPattern& out, rte_flow_error* error);

}  // namespace tagwire::mlx5raw
