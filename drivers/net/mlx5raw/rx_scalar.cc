// SPDX-License-Identifier: BSD-3-Clause
// The receive path that runs on every processor, and that the vector paths are
// measured by: they must leave the same mbufs.
#include <rte_atomic.h>
#include <rte_byteorder.h>
#include <rte_io.h>
#include <rte_mbuf_dyn.h>
#include <rte_prefetch.h>

#include <algorithm>

#include "drivers/net/mlx5raw/flow_mark.h"
#include "drivers/net/mlx5raw/rx_ring.h"

namespace tagwire::mlx5raw {
namespace {

uint8_t load_op_own(const Cqe& cqe) {
    return *const_cast<const volatile uint8_t*>(&cqe.op_own);
}

void write_class(rte_mbuf* mbuf, const CqeClass& kind) {
    auto* to = reinterpret_cast<uint64_t*>(reinterpret_cast<uint8_t*>(mbuf) +
                                           offsetof(rte_mbuf, data_off));
    to[0] = kind.rearm;
    to[1] = kind.flags;
}

}  // namespace

// The rings are walked in stretches in which neither wraps.
uint16_t rx_decode_scalar(RxRing& ring, rte_mbuf** packets, uint16_t count) {
    const CqeClass* const classes = ring.classes;
    const uint8_t extras = ring.extras;
    uint64_t bytes = 0;
    uint16_t received = 0;
    while (received < count) {
        const uint32_t position = ring.cq_consumer & ring.cq_mask;
        const uint32_t slot = ring.consumer & ring.mask;
        const uint32_t stretch = std::min({uint32_t{count} - received, ring.cq_mask + 1 - position,
                                           ring.mask + 1 - slot, ring.producer - ring.consumer});
        const uint8_t expected =
            kCqeResponderSend << 4 | ((ring.cq_consumer >> ring.cq_log) & kCqeOwnerMask);
        const Cqe* const cqes = &ring.cqes[position];
        rte_mbuf** const mbufs = &ring.mbufs[slot];
        uint32_t taken = 0;
        for (; taken < stretch; ++taken) {
            const Cqe& cqe = cqes[taken];
            if (unlikely((load_op_own(cqe) & kCqeKindMask) != expected)) {
                break;
            }
            rte_io_rmb();  // the rest of the entry was written before its owner bit
            rte_mbuf* const mbuf = mbufs[taken];
            const CqeClass& kind = classes[cqe_class_index(cqe.header)];
            const uint32_t length = cqe.byte_count.get();
            packets[received + taken] = mbuf;
            write_class(mbuf, kind);
            mbuf->packet_type = kind.packet_type;
            mbuf->pkt_len = length;
            mbuf->data_len = static_cast<uint16_t>(length);
            mbuf->vlan_tci = 0;
            mbuf->hash.rss = cqe.rx_hash.get();
            if (unlikely(extras != 0)) {
                rx_report_extras(ring, &cqe, 1, &mbuf, 1);
            }
            bytes += length;
        }
        received = static_cast<uint16_t>(received + taken);
        ring.cq_consumer += taken;
        ring.consumer += taken;
        if (taken < stretch || stretch == 0) {
            break;
        }
    }
    ring.counters.bytes += bytes;
    return received;
}

void rx_report_extras(const RxRing& ring, const Cqe* cqe, uint32_t step, rte_mbuf* const* mbufs,
                      uint32_t count) {
    const uint8_t extras = ring.extras;
    for (uint32_t i = 0; i < count; ++i, cqe += step) {
        rte_mbuf* const mbuf = mbufs[i];
        if ((extras & kRxVlan) != 0) {
            mbuf->vlan_tci = cqe->vlan_info.get();
        }
        if ((extras & kRxMark) != 0) {
            set_flow_mark(*mbuf, cqe->flow_tag.get());
        }
        if ((extras & kRxTime) != 0) {
            *RTE_MBUF_DYNFIELD(mbuf, ring.time_field, rte_mbuf_timestamp_t*) = cqe->timestamp.get();
        }
    }
}

bool rx_refill_scalar(RxRing& ring, uint32_t batch) {
    const uint32_t first = ring.producer & ring.mask;
    rte_mbuf** const slots = &ring.mbufs[first];
    DataSegment* const wqes = &ring.wqes[first];
    if (unlikely(rte_mempool_get_bulk(ring.pool, reinterpret_cast<void**>(slots), batch) != 0)) {
        return false;
    }
    const uint64_t offset = ring.buffer_offset;
    for (uint32_t i = 0; i < batch; ++i) {
        wqes[i].address = Be64::of(reinterpret_cast<uintptr_t>(slots[i]) + offset);
    }
    ring.producer += batch;
    return true;
}

}  // namespace tagwire::mlx5raw
