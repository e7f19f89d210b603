// SPDX-License-Identifier: BSD-3-Clause
#ifndef ALLOW_EXPERIMENTAL_API
#define ALLOW_EXPERIMENTAL_API  // DMA mapping in DPDK 22.11
#endif
#include "lib/tagwire/port_memory.h"

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_memory.h>
#include <unistd.h>

namespace tagwire {

std::unique_ptr<PortMemory> PortMemory::of(uint16_t port) {
    rte_eth_dev_info info{};
    return rte_eth_dev_info_get(port, &info) == 0 ? std::make_unique<PortMemory>(info.device)
                                                  : nullptr;
}

// EAL first: rte_dev_dma_map asks for it.
bool PortMemory::map(uintptr_t base, uint64_t length) noexcept {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    auto* const start = reinterpret_cast<void*>(base);
    if (rte_extmem_register(start, length, nullptr, 0, page) != 0) {
        return false;
    }
    if (rte_dev_dma_map(device_, start, base, length) != 0) {
        rte_extmem_unregister(start, length);
        return false;
    }
    return true;
}

void PortMemory::unmap(uintptr_t base, uint64_t length) noexcept {
    auto* const start = reinterpret_cast<void*>(base);
    rte_dev_dma_unmap(device_, start, base, length);
    rte_extmem_unregister(start, length);
}

std::string why_not_lend(uint16_t port, uint16_t queue) {
    rte_eth_txq_info info{};
    if (rte_eth_tx_queue_info_get(port, queue, &info) != 0) {
        return "the port does not describe its queue";
    }
    if ((info.conf.offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) == 0) {
        return "the TX queue is configured without RTE_ETH_TX_OFFLOAD_MULTI_SEGS";
    }
    if ((info.conf.offloads & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) != 0) {
        return "the TX queue is configured with RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE";
    }
    if (rte_eal_iova_mode() != RTE_IOVA_VA) {
        return "EAL does not run in IOVA mode VA (--iova-mode=va)";
    }
    return {};
}

}  // namespace tagwire
