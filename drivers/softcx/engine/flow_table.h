// SPDX-License-Identifier: BSD-3-Clause
// Receive steering: the flow rules of a port in the order in which they apply.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "drivers/softcx/engine/parse.h"
#include "drivers/softcx/model/objects.h"

namespace softcx {

struct Destination;

struct CompiledFlow {
    uint64_t mac_value = 0;  // destination MAC as the first bytes of the frame
    uint64_t mac_mask = 0;
    const FlowMatch* match = nullptr;    // nullptr: the MAC alone decides
    Destination* destination = nullptr;  // nullptr: drop
    uint32_t level = 0;                  // the lowest level with a match takes the frame
    uint32_t tag = 0;
    FlowCounters* counters = nullptr;
    uint32_t twins = 0;  // the same number for rules that match the same; 0: the only one
};

// Levels: normal rules by priority, then the default rules, as the kernel's "bypass"
// and "leftovers" tables. Sniffers stand apart: they get a copy of each frame.
class FlowTable {
  public:
    void clear() noexcept;
    void add(const Flow& flow, Destination* destination);
    void sort();

    std::span<const CompiledFlow> rules() const noexcept { return rules_; }
    std::span<Destination* const> sniffers() const noexcept { return sniffers_; }

  private:
    struct Entry {
        CompiledFlow rule;
        uint64_t sequence;
    };

    void find_twins();

    std::vector<Entry> entries_;
    std::vector<CompiledFlow> rules_;
    std::vector<Destination*> sniffers_;
};

bool matches_headers(const FlowMatch& match, const ParsedFrame& frame) noexcept;

inline bool matches(const CompiledFlow& rule, uint64_t mac, const ParsedFrame& frame) noexcept {
    return (mac & rule.mac_mask) == rule.mac_value &&
           (rule.match == nullptr || matches_headers(*rule.match, frame));
}

}  // namespace softcx
