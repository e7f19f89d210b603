// SPDX-License-Identifier: BSD-3-Clause
// The flow rules that bring a port its packets: one per destination that it listens
// to and per hash type, each naming the hash QP of that type.
#pragma once

#include <rte_ether.h>

#include <compare>
#include <cstdint>
#include <cstring>
#include <vector>

#include "drivers/net/mlx5raw/rss.h"
#include "drivers/net/mlx5raw/status.h"
#include "drivers/net/mlx5raw/verbs.h"

namespace tagwire::mlx5raw {

// Destination address under a mask; all zero: everything.
struct DestinationMatch {
    rte_ether_addr address = {};
    rte_ether_addr mask = {};

    bool group() const { return (mask.addr_bytes[0] & address.addr_bytes[0] & 1) != 0; }
    friend bool operator==(const DestinationMatch& a, const DestinationMatch& b) {
        return memcmp(&a, &b, sizeof(a)) == 0;
    }
};

DestinationMatch match_exactly(const rte_ether_addr& address);
DestinationMatch match_broadcast();
DestinationMatch match_all_groups();
DestinationMatch match_everything();

// What a port listens to.
struct Listening {
    bool promiscuous = false;
    bool all_multicast = false;
    std::vector<rte_ether_addr> unicast;
    std::vector<rte_ether_addr> multicast;

    std::vector<DestinationMatch> matches() const;
};

// Within a set of rules (priorities.h): TCP and UDP before IP before the rest.
uint16_t priority_of(HashType type);

// nullptr with errno set when the device refuses.
Flow create_flow_rule(ibv_qp* qp, uint8_t port, const DestinationMatch& match, HashType type,
                      uint16_t first_priority);

}  // namespace tagwire::mlx5raw
