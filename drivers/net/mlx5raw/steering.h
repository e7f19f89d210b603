// SPDX-License-Identifier: BSD-3-Clause
// From the wire to the receive queues:
//   flow rules -> hash QP (one per hash type) -> indirection table -> work queues
//
// Verbs can't change a table or a key in place. A change therefore builds a second
// set of table, hash QPs and rules beside the first and then removes the first. The
// two sets use different rule priorities, so at every moment each packet matches
// exactly one rule that wins: none is lost, none comes twice.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "drivers/net/mlx5raw/device.h"
#include "drivers/net/mlx5raw/flow_rules.h"
#include "drivers/net/mlx5raw/hash_qps.h"
#include "drivers/net/mlx5raw/rss.h"

namespace tagwire::mlx5raw {

// One set. Members are released in reverse order: rules, QPs, tables.
class SteeringSet {
  public:
    // `queues` are the work queues by number; config.table names them.
    static Status create(const Device& device, const std::vector<ibv_wq*>& queues,
                         const RssConfig& config, uint16_t first_priority,
                         std::unique_ptr<SteeringSet>& out);

    // Makes the rules those of `listening`: adds what is missing, then removes what is
    // too much. On failure the added ones are removed again.
    Status listen(const Listening& listening);

    size_t rule_count() const { return rules_.size(); }

  private:
    struct Rule {
        DestinationMatch match;
        HashType type;
        Flow flow;
    };

    SteeringSet(const Device& device, uint16_t first_priority)
        : port_(device.port()), first_priority_(first_priority) {}
    Status add_rules(const DestinationMatch& match);

    uint8_t port_;
    uint16_t first_priority_;
    std::shared_ptr<HashQps> qps_;
    std::vector<Rule> rules_;
};

// The set in use.
class Steering {
  public:
    // Builds what is asked and, once it works, drops what was there.
    Status apply(const Device& device, const std::vector<ibv_wq*>& queues, const RssConfig& config,
                 const Listening& listening);
    Status listen(const Listening& listening);
    void clear() { set_.reset(); }
    bool active() const { return set_ != nullptr; }
    size_t rule_count() const { return set_ != nullptr ? set_->rule_count() : 0; }

  private:
    std::unique_ptr<SteeringSet> set_;
    uint16_t first_priority_ = 0;
};

}  // namespace tagwire::mlx5raw
