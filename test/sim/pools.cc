// SPDX-License-Identifier: BSD-3-Clause
#include "test/sim/pools.h"

#include <rte_errno.h>
#include <rte_mbuf.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace sim {
namespace {

constexpr unsigned kBuffers = 8191;
constexpr uint16_t kDataRoom = RTE_PKTMBUF_HEADROOM + 2048;

}  // namespace

rte_mempool* pool(uint32_t index) {
    static std::vector<rte_mempool*> pools;
    while (pools.size() <= index) {
        const std::string name = "sim" + std::to_string(pools.size());
        // No per-core cache: the leak check wants exact counts.
        rte_mempool* made =
            rte_pktmbuf_pool_create(name.c_str(), kBuffers, 0, 0, kDataRoom, SOCKET_ID_ANY);
        if (made == nullptr) {
            std::fprintf(stderr, "sim: cannot make a packet pool: %s\n", rte_strerror(rte_errno));
            std::exit(1);
        }
        pools.push_back(made);
    }
    return pools[index];
}

}  // namespace sim
