// SPDX-License-Identifier: BSD-3-Clause
// Inner loops of transmission that have a vector form. tx_kernel_avx2.cc is compiled
// for AVX2, so nothing that it includes may emit code that other files share: this
// header holds plain data and declarations only.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>

namespace tagwire::mlx5raw {

// What all packets of a multi-packet send have in common.
struct MpwSession {
    uintptr_t base;     // memory with one key ...
    uintptr_t length;   // ... of this many bytes
    uint32_t lkey;      // as it lies in the segment
    uint32_t shortest;  // bytes that a packet needs at least
    uint64_t flags;     // offload flags, those of kMpwFlags
};

// Offload flags that must be equal in one multi-packet send. The checksum requests are
// in the Ethernet segment, of which there is one; a large send or a VLAN tag needs a WQE
// of its own.
inline constexpr uint64_t kMpwChecksumFlags = RTE_MBUF_F_TX_L4_MASK | RTE_MBUF_F_TX_IP_CKSUM;
inline constexpr uint64_t kMpwAloneFlags = RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_VLAN;
inline constexpr uint64_t kMpwFlags = kMpwChecksumFlags | kMpwAloneFlags;

// Writes a data segment per packet to `segments` and the packets' addresses to `kept`;
// adds their lengths to `bytes`. Returns how many packets were written: it stops before
// one that does not fit the session, and in front of the last few, which are the
// caller's.
using WritePointers = uint32_t (*)(uint8_t* segments, rte_mbuf* const* packets, rte_mbuf** kept,
                                   uint32_t count, const MpwSession& session, uint64_t& bytes);

// Whether all of them can go back to `pool` as they are: nobody else holds them, they
// are of that pool, and no segment follows.
using AllSimple = bool (*)(rte_mbuf* const* mbufs, uint32_t count, const rte_mempool* pool);

uint32_t write_pointers_avx2(uint8_t* segments, rte_mbuf* const* packets, rte_mbuf** kept,
                             uint32_t count, const MpwSession& session, uint64_t& bytes);
uint32_t write_pointers_offloads_avx2(uint8_t* segments, rte_mbuf* const* packets, rte_mbuf** kept,
                                      uint32_t count, const MpwSession& session, uint64_t& bytes);
// The first form trusts that packets are single segments, as a queue without
// RTE_ETH_TX_OFFLOAD_MULTI_SEGS promises, and leaves the mbuf's second cache line alone.
bool all_simple_avx2(rte_mbuf* const* mbufs, uint32_t count, const rte_mempool* pool);
bool all_simple_segments_avx2(rte_mbuf* const* mbufs, uint32_t count, const rte_mempool* pool);

}  // namespace tagwire::mlx5raw
