// SPDX-License-Identifier: BSD-3-Clause
// One verbs flow rule: what it matches, what happens to the packet, how it is made.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "drivers/net/mlx5raw/rss.h"
#include "drivers/net/mlx5raw/verbs.h"

namespace tagwire::mlx5raw {

enum class L3 : uint8_t { kAny, kIpv4, kIpv6 };
enum class L4 : uint8_t { kAny, kTcp, kUdp };

L3 l3_of(HashType type);
L4 l4_of(HashType type);

// Values under masks, in network order as verbs wants them. A layer that is kAny is
// not looked at; another one must be there, whatever its masks.
struct RuleMatch {
    ibv_flow_eth_filter ethernet = {}, ethernet_mask = {};
    L3 l3 = L3::kAny;
    ibv_flow_ipv4_ext_filter ipv4 = {}, ipv4_mask = {};
    ibv_flow_ipv6_filter ipv6 = {}, ipv6_mask = {};
    L4 l4 = L4::kAny;
    ibv_flow_tcp_udp_filter ports = {}, ports_mask = {};

    // Both name the same packets in the same words.
    friend bool operator==(const RuleMatch& a, const RuleMatch& b);
};

// The same, of packets with the headers of `type` only.
RuleMatch narrowed(RuleMatch match, HashType type);

struct RuleActions {
    uint32_t tag = 0;  // zero: none
    bool drop = false;
    ibv_counters* counters = nullptr;
};

// A lower priority wins. nullptr with errno set when the device refuses.
Flow create_rule(ibv_qp* qp, uint8_t port, uint16_t priority, const RuleMatch& match,
                 const RuleActions& actions = {});

// What to do about a refusal with this errno, to be put behind the message.
const char* remedy_for_rule(int error);

}  // namespace tagwire::mlx5raw
