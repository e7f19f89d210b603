// SPDX-License-Identifier: BSD-3-Clause
#include "lib/tagwire/nic.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>

namespace tagwire {

TscClock::TscClock() : ns_per_tick_((uint64_t{1'000'000'000} << 32) / rte_get_tsc_hz()) {}

uint64_t TscClock::now_ns() noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>(Wide{rte_rdtsc()} * ns_per_tick_ >> 32);
}

uint16_t PortNic::rx_burst(rte_mbuf** packets, uint16_t count) noexcept {
    // Without callbacks rte_eth_rx_burst is this and no more.
    const struct rte_eth_fp_ops& ops = rte_eth_fp_ops[port_];
    if (__atomic_load_n(&ops.rxq.clbk[queue_], __ATOMIC_RELAXED) == nullptr) [[likely]] {
        return ops.rx_pkt_burst(ops.rxq.data[queue_], packets, count);
    }
    return rte_eth_rx_burst(port_, queue_, packets, count);
}

uint16_t PortNic::tx_burst(rte_mbuf** packets, uint16_t count) noexcept {
    const struct rte_eth_fp_ops& ops = rte_eth_fp_ops[port_];
    if (__atomic_load_n(&ops.txq.clbk[queue_], __ATOMIC_RELAXED) == nullptr) [[likely]] {
        return ops.tx_pkt_burst(ops.txq.data[queue_], packets, count);
    }
    return rte_eth_tx_burst(port_, queue_, packets, count);
}

// A driver that cannot frees them with later bursts.
void PortNic::reclaim() noexcept {
    rte_eth_tx_done_cleanup(port_, queue_, 0);
}

}  // namespace tagwire
