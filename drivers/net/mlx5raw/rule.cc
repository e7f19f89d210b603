// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/rule.h"

#include <cerrno>
#include <cstring>

namespace tagwire::mlx5raw {
namespace {

template <typename T>
bool same_bytes(const T& a, const T& b) {
    return memcmp(&a, &b, sizeof(T)) == 0;
}

// The verbs flow ABI: an attribute and its specifications, one behind the other.
struct Message {
    ibv_flow_attr attributes;
    alignas(8) uint8_t
        specifications[sizeof(ibv_flow_spec_eth) + sizeof(ibv_flow_spec_ipv6) +
                       sizeof(ibv_flow_spec_tcp_udp) + sizeof(ibv_flow_spec_action_tag) +
                       sizeof(ibv_flow_spec_counter_action)];

    template <typename T>
    void append(ibv_flow_spec_type type, T specification) {
        specification.type = type;
        specification.size = sizeof(T);
        memcpy(reinterpret_cast<uint8_t*>(this) + attributes.size, &specification, sizeof(T));
        attributes.size += sizeof(T);
        ++attributes.num_of_specs;
    }

    template <typename T, typename Filter>
    void append(ibv_flow_spec_type type, const Filter& value, const Filter& mask) {
        T specification = {};
        specification.val = value;
        specification.mask = mask;
        append(type, specification);
    }
};
static_assert(sizeof(ibv_flow_attr) % 4 == 0);

void append_match(Message& message, const RuleMatch& match) {
    message.append<ibv_flow_spec_eth>(IBV_FLOW_SPEC_ETH, match.ethernet, match.ethernet_mask);
    switch (match.l3) {
        case L3::kAny:
            break;
        case L3::kIpv4:
            message.append<ibv_flow_spec_ipv4_ext>(IBV_FLOW_SPEC_IPV4_EXT, match.ipv4,
                                                   match.ipv4_mask);
            break;
        case L3::kIpv6:
            message.append<ibv_flow_spec_ipv6>(IBV_FLOW_SPEC_IPV6, match.ipv6, match.ipv6_mask);
            break;
    }
    if (match.l4 != L4::kAny) {
        message.append<ibv_flow_spec_tcp_udp>(
            match.l4 == L4::kTcp ? IBV_FLOW_SPEC_TCP : IBV_FLOW_SPEC_UDP, match.ports,
            match.ports_mask);
    }
}

}  // namespace

L3 l3_of(HashType type) {
    switch (type) {
        case HashType::kIpv4Tcp:
        case HashType::kIpv4Udp:
        case HashType::kIpv4:
            return L3::kIpv4;
        case HashType::kIpv6Tcp:
        case HashType::kIpv6Udp:
        case HashType::kIpv6:
            return L3::kIpv6;
        case HashType::kEthernet:
            break;
    }
    return L3::kAny;
}

L4 l4_of(HashType type) {
    switch (type) {
        case HashType::kIpv4Tcp:
        case HashType::kIpv6Tcp:
            return L4::kTcp;
        case HashType::kIpv4Udp:
        case HashType::kIpv6Udp:
            return L4::kUdp;
        case HashType::kIpv4:
        case HashType::kIpv6:
        case HashType::kEthernet:
            break;
    }
    return L4::kAny;
}

bool operator==(const RuleMatch& a, const RuleMatch& b) {
    return a.l3 == b.l3 && a.l4 == b.l4 && same_bytes(a.ethernet, b.ethernet) &&
           same_bytes(a.ethernet_mask, b.ethernet_mask) && same_bytes(a.ipv4, b.ipv4) &&
           same_bytes(a.ipv4_mask, b.ipv4_mask) && same_bytes(a.ipv6, b.ipv6) &&
           same_bytes(a.ipv6_mask, b.ipv6_mask) && same_bytes(a.ports, b.ports) &&
           same_bytes(a.ports_mask, b.ports_mask);
}

RuleMatch narrowed(RuleMatch match, HashType type) {
    if (match.l3 == L3::kAny) {
        match.l3 = l3_of(type);
    }
    if (match.l4 == L4::kAny) {
        match.l4 = l4_of(type);
    }
    return match;
}

const char* remedy_for_rule(int error) {
    switch (error) {
        case EPERM:
        case EACCES:
            return "; flow rules need CAP_NET_RAW";
        case ENOSPC:
        case EINVAL:
            return "; is the kernel older than 4.19 (16 priorities), or the table full?";
        default:
            return "";
    }
}

Flow create_rule(ibv_qp* qp, uint8_t port, uint16_t priority, const RuleMatch& match,
                 const RuleActions& actions) {
    Message message = {};
    message.attributes.type = IBV_FLOW_ATTR_NORMAL;
    message.attributes.size = sizeof(ibv_flow_attr);
    message.attributes.priority = priority;
    message.attributes.port = port;
    append_match(message, match);
    if (actions.tag != 0) {
        ibv_flow_spec_action_tag tag = {};
        tag.tag_id = actions.tag;
        message.append(IBV_FLOW_SPEC_ACTION_TAG, tag);
    }
    if (actions.drop) {
        message.append(IBV_FLOW_SPEC_ACTION_DROP, ibv_flow_spec_action_drop{});
    }
    if (actions.counters != nullptr) {
        ibv_flow_spec_counter_action count = {};
        count.counters = actions.counters;
        message.append(IBV_FLOW_SPEC_ACTION_COUNT, count);
    }
    return Flow(ibv_create_flow(qp, &message.attributes));
}

}  // namespace tagwire::mlx5raw
