// SPDX-License-Identifier: BSD-3-Clause
// The rte_flow rules of a port. They stay over a stop and are made again by the next
// start; verbs objects exist only while the port runs.
#pragma once

#include <cstdio>
#include <memory>
#include <vector>

#include "drivers/net/mlx5raw/device.h"
#include "drivers/net/mlx5raw/flow_actions.h"
#include "drivers/net/mlx5raw/flow_counter.h"
#include "drivers/net/mlx5raw/flow_pattern.h"
#include "drivers/net/mlx5raw/hash_qps.h"

// As rte_flow.h declares it: outside of any namespace.
struct rte_flow {
    tagwire::mlx5raw::FlowPattern pattern;
    tagwire::mlx5raw::FlowActions actions;
    uint32_t priority = 0;
    tagwire::mlx5raw::FlowCounter counter;

    // While the port runs; released in reverse order.
    std::shared_ptr<tagwire::mlx5raw::HashQps> qps;
    std::vector<tagwire::mlx5raw::Flow> rules;
};

namespace tagwire::mlx5raw {

// What rules stand on while the port runs.
struct FlowGround {
    const Device& device;
    std::vector<ibv_wq*> queues;  // by number
    RssConfig rss;                // of the port
};

class FlowTable {
  public:
    // Makes all rules; on failure none is left. The message names the rule.
    Status start(FlowGround ground);
    void stop();
    bool running() const { return ground_ != nullptr; }

    // Puts the rule in force when the port runs.
    Status add(std::unique_ptr<rte_flow> flow);
    bool remove(const rte_flow* flow);  // false: no such rule
    void clear() { flows_.clear(); }

    const rte_flow* find(const FlowPattern& pattern, uint32_t priority) const;
    rte_flow* find(const rte_flow* flow) const;  // nullptr: no such rule
    bool marks() const;                          // some rule has MARK or FLAG
    size_t size() const { return flows_.size(); }
    void dump(const rte_flow* only, FILE* file) const;

  private:
    struct SharedQps {
        std::vector<uint16_t> queues;
        uint64_t types;
        RssKey key;
        std::weak_ptr<HashQps> qps;
    };

    Status install(rte_flow& flow);
    Status install_rules(rte_flow& flow);
    static void uninstall(rte_flow& flow);
    Status qps_for(const rte_flow& flow, std::shared_ptr<HashQps>& out);
    std::vector<ibv_wq*> entries_for(const std::vector<uint16_t>& queues) const;

    std::unique_ptr<FlowGround> ground_;
    std::vector<SharedQps> shared_;
    std::vector<std::unique_ptr<rte_flow>> flows_;
};

}  // namespace tagwire::mlx5raw
