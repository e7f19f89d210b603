// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/flow_rules.h"

#include "drivers/net/mlx5raw/rule.h"

namespace tagwire::mlx5raw {
DestinationMatch match_exactly(const rte_ether_addr& address) {
    return {address, {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}};
}

DestinationMatch match_broadcast() {
    return match_exactly({{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}});
}

DestinationMatch match_all_groups() {
    return {{{1, 0, 0, 0, 0, 0}}, {{1, 0, 0, 0, 0, 0}}};
}

DestinationMatch match_everything() {
    return {};
}

std::vector<DestinationMatch> Listening::matches() const {
    std::vector<DestinationMatch> result;
    if (promiscuous) {
        result.push_back(match_everything());
    }
    for (const rte_ether_addr& address : unicast) {
        if (!rte_is_zero_ether_addr(&address)) {
            result.push_back(match_exactly(address));
        }
    }
    result.push_back(match_broadcast());
    if (all_multicast) {
        result.push_back(match_all_groups());
    } else {
        for (const rte_ether_addr& address : multicast) {
            result.push_back(match_exactly(address));
        }
    }
    return result;
}

uint16_t priority_of(HashType type) {
    switch (type) {
        case HashType::kIpv4Tcp:
        case HashType::kIpv4Udp:
        case HashType::kIpv6Tcp:
        case HashType::kIpv6Udp:
            return 0;
        case HashType::kIpv4:
        case HashType::kIpv6:
            return 1;
        case HashType::kEthernet:
            return 2;
    }
    return 2;
}

Flow create_flow_rule(ibv_qp* qp, uint8_t port, const DestinationMatch& match, HashType type,
                      uint16_t first_priority) {
    RuleMatch rule;
    memcpy(rule.ethernet.dst_mac, match.address.addr_bytes, RTE_ETHER_ADDR_LEN);
    memcpy(rule.ethernet_mask.dst_mac, match.mask.addr_bytes, RTE_ETHER_ADDR_LEN);
    return create_rule(qp, port, static_cast<uint16_t>(first_priority + priority_of(type)),
                       narrowed(rule, type));
}

}  // namespace tagwire::mlx5raw
