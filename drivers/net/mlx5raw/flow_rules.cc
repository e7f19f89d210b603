// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/flow_rules.h"

namespace tagwire::mlx5raw {
namespace {

// The verbs flow ABI: an attribute and its specifications, one behind the other.
struct Rule {
    ibv_flow_attr attributes;
    alignas(8) uint8_t specifications[sizeof(ibv_flow_spec_eth) + sizeof(ibv_flow_spec_ipv6) +
                                      sizeof(ibv_flow_spec_tcp_udp)];

    template <typename T>
    void append(const T& specification) {
        memcpy(reinterpret_cast<uint8_t*>(this) + attributes.size, &specification,
               sizeof(specification));
        attributes.size += sizeof(specification);
        ++attributes.num_of_specs;
    }
};
static_assert(sizeof(ibv_flow_attr) % 4 == 0);

// A specification whose masks are zero asks for the header, not for its content.
template <typename T>
T header_of(ibv_flow_spec_type type) {
    T specification = {};
    specification.type = type;
    specification.size = sizeof(T);
    return specification;
}

}  // namespace

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
    Rule rule = {};
    rule.attributes.type = IBV_FLOW_ATTR_NORMAL;
    rule.attributes.size = sizeof(ibv_flow_attr);
    rule.attributes.priority = first_priority + priority_of(type);
    rule.attributes.port = port;

    auto ethernet = header_of<ibv_flow_spec_eth>(IBV_FLOW_SPEC_ETH);
    memcpy(ethernet.val.dst_mac, match.address.addr_bytes, RTE_ETHER_ADDR_LEN);
    memcpy(ethernet.mask.dst_mac, match.mask.addr_bytes, RTE_ETHER_ADDR_LEN);
    rule.append(ethernet);

    const bool ipv4 =
        type == HashType::kIpv4 || type == HashType::kIpv4Tcp || type == HashType::kIpv4Udp;
    const bool ipv6 =
        type == HashType::kIpv6 || type == HashType::kIpv6Tcp || type == HashType::kIpv6Udp;
    if (ipv4) {
        rule.append(header_of<ibv_flow_spec_ipv4>(IBV_FLOW_SPEC_IPV4));
    } else if (ipv6) {
        rule.append(header_of<ibv_flow_spec_ipv6>(IBV_FLOW_SPEC_IPV6));
    }
    if (type == HashType::kIpv4Tcp || type == HashType::kIpv6Tcp) {
        rule.append(header_of<ibv_flow_spec_tcp_udp>(IBV_FLOW_SPEC_TCP));
    } else if (type == HashType::kIpv4Udp || type == HashType::kIpv6Udp) {
        rule.append(header_of<ibv_flow_spec_tcp_udp>(IBV_FLOW_SPEC_UDP));
    }
    return Flow(ibv_create_flow(qp, &rule.attributes));
}

}  // namespace tagwire::mlx5raw
