// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/steering.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace tagwire::mlx5raw {
namespace {

const char* name_of(HashType type) {
    switch (type) {
        case HashType::kIpv4Tcp:
            return "IPv4/TCP";
        case HashType::kIpv4Udp:
            return "IPv4/UDP";
        case HashType::kIpv6Tcp:
            return "IPv6/TCP";
        case HashType::kIpv6Udp:
            return "IPv6/UDP";
        case HashType::kIpv4:
            return "IPv4";
        case HashType::kIpv6:
            return "IPv6";
        case HashType::kEthernet:
            return "Ethernet";
    }
    return "?";
}

}  // namespace

Status SteeringSet::create(const Device& device, const std::vector<ibv_wq*>& queues,
                           const RssConfig& config, uint16_t first_priority,
                           std::unique_ptr<SteeringSet>& out) {
    std::unique_ptr<SteeringSet> set(new SteeringSet(device, first_priority));
    std::vector<ibv_wq*> entries;
    for (const uint16_t queue : config.table) {
        entries.push_back(queues.at(queue));
    }
    if (Status status = set->create_table(device, entries, set->table_); !status.ok()) {
        return status;
    }
    // A QP that does not hash must have a table of one entry.
    entries.resize(1);
    if (Status status = set->create_table(device, entries, set->single_); !status.ok()) {
        return status;
    }
    for (size_t i = 0; i < kHashTypeCount; ++i) {
        const auto type = static_cast<HashType>(i);
        if (type != HashType::kEthernet && (config.types & rss_types_of(type)) == 0) {
            continue;
        }
        if (Status status = set->create_hash_qp(device, type, config); !status.ok()) {
            return status;
        }
    }
    out = std::move(set);
    return {};
}

Status SteeringSet::create_table(const Device& device, const std::vector<ibv_wq*>& entries,
                                 IndirectionTable& out) {
    std::vector<ibv_wq*> mutable_entries = entries;  // the ABI lacks a const
    ibv_rwq_ind_table_init_attr attributes = {};
    attributes.log_ind_tbl_size = std::bit_width(entries.size()) - 1;
    attributes.ind_tbl = mutable_entries.data();
    out.reset(ibv_create_rwq_ind_table(device.context(), &attributes));
    if (out == nullptr) {
        return failure(errno, "%s: cannot create an indirection table of %zu entries: %s",
                       device.name(), entries.size(), strerror(errno));
    }
    return {};
}

Status SteeringSet::create_hash_qp(const Device& device, HashType type, const RssConfig& config) {
    RssKey key = config.key;
    ibv_qp_init_attr_ex attributes = {};
    attributes.qp_type = IBV_QPT_RAW_PACKET;
    attributes.pd = device.pd();
    attributes.rwq_ind_tbl = type == HashType::kEthernet ? single_.get() : table_.get();
    attributes.rx_hash_conf.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
    attributes.rx_hash_conf.rx_hash_key_len = key.size();
    attributes.rx_hash_conf.rx_hash_key = key.data();
    attributes.rx_hash_conf.rx_hash_fields_mask = hash_fields_of(type);
    attributes.comp_mask =
        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
    QueuePair& qp = qps_[static_cast<size_t>(type)];
    qp.reset(ibv_create_qp_ex(device.context(), &attributes));
    if (qp == nullptr) {
        return failure(errno, "%s: cannot create the hash queue pair for %s: %s", device.name(),
                       name_of(type), strerror(errno));
    }
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
        if (qps_[i] == nullptr || (match.group() && type != HashType::kEthernet)) {
            continue;
        }
        Flow flow = create_flow_rule(qps_[i].get(), port_, match, type, first_priority_);
        if (flow == nullptr) {
            char address[RTE_ETHER_ADDR_FMT_SIZE];
            rte_ether_format_addr(address, sizeof(address), &match.address);
            return failure(errno,
                           "the device refuses the %s flow rule for %s: %s; flow rules need "
                           "CAP_NET_RAW",
                           name_of(type), address, strerror(errno));
        }
        rules_.push_back({match, type, std::move(flow)});
    }
    return {};
}

Status Steering::apply(const Device& device, const std::vector<ibv_wq*>& queues,
                       const RssConfig& config, const Listening& listening) {
    const uint16_t priority = set_ != nullptr && first_priority_ == 0 ? kPrioritiesPerSet : 0;
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
