// SPDX-License-Identifier: BSD-3-Clause
// The VLAN filter: rules that drop tagged frames whose VLAN is not listed, before the
// rules of what the port listens to. So it does not multiply with addresses and hash
// types, and leaves untagged frames alone.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <vector>

#include "drivers/net/mlx5raw/device.h"
#include "drivers/net/mlx5raw/hash_qps.h"
#include "drivers/net/mlx5raw/status.h"

namespace tagwire::mlx5raw {

using VlanSet = std::bitset<4096>;

// VLAN identifiers whose bits under the mask are those of the value (host order).
struct VlanMatch {
    uint16_t value;
    uint16_t mask;
    bool operator==(const VlanMatch&) const = default;
};

// The fewest aligned blocks that hold exactly the identifiers outside of `allowed`. No
// mask is zero: the device sees a tag only by bits of it.
std::vector<VlanMatch> blocks_outside(const VlanSet& allowed);

class VlanFilter {
  public:
    // Puts a filter in force, or changes it. Identifiers that were allowed and stay so
    // pass at every moment. On failure the old filter stays.
    Status apply(const Device& device, ibv_wq* queue, const VlanSet& allowed);
    void clear();
    size_t rule_count() const { return rules_.size(); }

  private:
    struct Rule {
        VlanMatch match;
        Flow flow;
    };

    std::shared_ptr<HashQps> qps_;  // a rule that drops needs a QP too
    std::vector<Rule> rules_;
};

}  // namespace tagwire::mlx5raw
