// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/steering.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "drivers/net/mlx5raw/priorities.h"
#include "drivers/net/mlx5raw/rule.h"

namespace tagwire::mlx5raw {
Status SteeringSet::create(const Device& device, const std::vector<ibv_wq*>& queues,
                           const RssConfig& config, uint16_t first_priority,
                           std::unique_ptr<SteeringSet>& out) {
    std::unique_ptr<SteeringSet> set(new SteeringSet(device, first_priority));
    std::vector<ibv_wq*> entries;
    for (const uint16_t queue : config.table) {
        entries.push_back(queues.at(queue));
    }
    if (Status status = HashQps::create(device, entries, config.types, config.key, set->qps_);
        !status.ok()) {
        return status;
    }
    out = std::move(set);
    return {};
}

Status SteeringSet::listen(const Listening& listening) {
    const std::vector<DestinationMatch> wanted = listening.matches();
    const size_t before = rules_.size();
    for (const DestinationMatch& match : wanted) {
        const bool present = std::any_of(rules_.begin(), rules_.end(),
                                         [&](const Rule& rule) { return rule.match == match; });
        if (present) {
            continue;
        }
        if (Status status = add_rules(match); !status.ok()) {
            rules_.erase(rules_.begin() + static_cast<ptrdiff_t>(before), rules_.end());
            return status;
        }
    }
    std::erase_if(rules_, [&](const Rule& rule) {
        return std::find(wanted.begin(), wanted.end(), rule.match) == wanted.end();
    });
    return {};
}

// Kernel drivers put rules for group addresses in a table without priorities, where
// two sets would both take the packet. So groups get one rule, without hashing; their
// packets all go to the queue of table entry 0. (In promiscuous mode the rule that
// matches everything hashes them too, if it comes first.)
Status SteeringSet::add_rules(const DestinationMatch& match) {
    for (size_t i = 0; i < kHashTypeCount; ++i) {
        const auto type = static_cast<HashType>(i);
        ibv_qp* const qp = qps_->of(type);
        if (qp == nullptr || (match.group() && type != HashType::kEthernet)) {
            continue;
        }
        Flow flow = create_flow_rule(qp, port_, match, type, first_priority_);
        if (flow == nullptr) {
            char address[RTE_ETHER_ADDR_FMT_SIZE];
            rte_ether_format_addr(address, sizeof(address), &match.address);
            const int error = errno;
            return failure(error, "the device refuses the %s flow rule for %s: %s%s", name_of(type),
                           address, strerror(error), remedy_for_rule(error));
        }
        rules_.push_back({match, type, std::move(flow)});
    }
    return {};
}

Status Steering::apply(const Device& device, const std::vector<ibv_wq*>& queues,
                       const RssConfig& config, const Listening& listening) {
    constexpr uint16_t kOther = kListenPriority + kPrioritiesPerSet;
    const uint16_t priority =
        set_ != nullptr && first_priority_ == kListenPriority ? kOther : kListenPriority;
    std::unique_ptr<SteeringSet> next;
    if (Status status = SteeringSet::create(device, queues, config, priority, next); !status.ok()) {
        return status;
    }
    if (Status status = next->listen(listening); !status.ok()) {
        return status;
    }
    set_ = std::move(next);
    first_priority_ = priority;
    return {};
}

Status Steering::listen(const Listening& listening) {
    return set_ != nullptr ? set_->listen(listening) : Status{};
}

}  // namespace tagwire::mlx5raw
