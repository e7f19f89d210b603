// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/vlan_filter.h"

#include <rte_byteorder.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "drivers/net/mlx5raw/priorities.h"
#include "drivers/net/mlx5raw/rule.h"

namespace tagwire::mlx5raw {
namespace {

constexpr uint32_t kVlans = 4096;

void add_blocks(const VlanSet& allowed, uint32_t first, uint32_t size,
                std::vector<VlanMatch>& out) {
    uint32_t passing = 0;
    for (uint32_t vlan = first; vlan < first + size; ++vlan) {
        passing += allowed[vlan];
    }
    if (passing == size) {
        return;
    }
    if (passing == 0 && size < kVlans) {
        out.push_back({static_cast<uint16_t>(first), static_cast<uint16_t>(kVlans - size)});
        return;
    }
    add_blocks(allowed, first, size / 2, out);
    add_blocks(allowed, first + size / 2, size / 2, out);
}

}  // namespace

std::vector<VlanMatch> blocks_outside(const VlanSet& allowed) {
    std::vector<VlanMatch> blocks;
    add_blocks(allowed, 0, kVlans, blocks);
    return blocks;
}

Status VlanFilter::apply(const Device& device, ibv_wq* queue, const VlanSet& allowed) {
    if (qps_ == nullptr) {
        if (Status status = HashQps::create(device, {queue}, 0, kDefaultRssKey, qps_);
            !status.ok()) {
            return status;
        }
    }
    const std::vector<VlanMatch> wanted = blocks_outside(allowed);
    const size_t before = rules_.size();
    for (const VlanMatch& block : wanted) {
        if (std::any_of(rules_.begin(), rules_.end(),
                        [&](const Rule& rule) { return rule.match == block; })) {
            continue;
        }
        RuleMatch match;
        match.ethernet.vlan_tag = rte_cpu_to_be_16(block.value);
        match.ethernet_mask.vlan_tag = rte_cpu_to_be_16(block.mask);
        Flow flow = create_rule(qps_->of(HashType::kEthernet), device.port(), kVlanFilterPriority,
                                match, {.drop = true});
        if (flow == nullptr) {
            const int error = errno;
            rules_.erase(rules_.begin() + static_cast<ptrdiff_t>(before), rules_.end());
            if (rules_.empty()) {
                qps_.reset();
            }
            return failure(error, "the device refuses a VLAN filter rule (0x%x under 0x%x): %s%s",
                           block.value, block.mask, strerror(error), remedy_for_rule(error));
        }
        rules_.push_back({block, std::move(flow)});
    }
    std::erase_if(rules_, [&](const Rule& rule) {
        return std::find(wanted.begin(), wanted.end(), rule.match) == wanted.end();
    });
    return {};
}

void VlanFilter::clear() {
    rules_.clear();
    qps_.reset();
}

}  // namespace tagwire::mlx5raw
