// SPDX-License-Identifier: BSD-3-Clause
// A simulated node as the `nic` of a worker (tw_worker_attr).
#pragma once

#include "lib/tagwire/include/tagwire/tagwire.h"
#include "test/sim/simulator.h"

namespace sim {

inline tw_nic nic(Node& node) {
    tw_nic nic{};
    nic.context = &node;
    nic.rx_burst = [](void* context, rte_mbuf** packets, uint16_t count) {
        return static_cast<Node*>(context)->rx_burst(packets, count);
    };
    nic.tx_burst = [](void* context, rte_mbuf** packets, uint16_t count) {
        return static_cast<Node*>(context)->tx_burst(packets, count);
    };
    nic.now_ns = [](void* context) { return static_cast<Node*>(context)->now_ns(); };
    return nic;
}

}  // namespace sim
