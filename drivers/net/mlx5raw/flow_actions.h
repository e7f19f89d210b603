// SPDX-License-Identifier: BSD-3-Clause
// The actions of an rte_flow rule.
#pragma once

#include <cstdint>
#include <vector>

#include "drivers/net/mlx5raw/flow_error.h"
#include "drivers/net/mlx5raw/rss.h"

namespace tagwire::mlx5raw {

struct FlowActions {
    bool drop = false;
    std::vector<uint16_t> queues;  // of QUEUE or RSS
    bool spread = false;           // RSS: types and key are its own, if it gave them
    uint64_t types = 0;            // RTE_ETH_RSS_*; zero: those of the port
    bool own_key = false;
    RssKey key = {};
    uint32_t tag = 0;  // of MARK or FLAG (flow_mark.h); zero: none
    bool count = false;
};

// One of QUEUE, RSS and DROP; MARK or FLAG with the first two; COUNT with any.
// `queue_count` bounds the queues. Returns 0, or -errno with `error` filled.
int parse_actions(const rte_flow_action actions[], uint16_t queue_count, FlowActions& out,
                  rte_flow_error* error);

}  // namespace tagwire::mlx5raw
