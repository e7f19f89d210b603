// SPDX-License-Identifier: BSD-3-Clause
// Receiving many packets into one buffer (stride_ring.h).
#include <rte_io.h>

#include "drivers/net/mlx5raw/rxq.h"

namespace tagwire::mlx5raw {

uint16_t RxQueue::burst_striding(void* queue, rte_mbuf** packets, uint16_t count) {
    RxQueue& q = *static_cast<RxQueue*>(queue);
    RxRing& ring = q.ring_;
    const uint32_t posted = ring.producer;
    const uint32_t completions = ring.cq_consumer;
    uint64_t bytes = 0;
    uint16_t received = 0;
    while (received < count) {
        const Next next = q.session_.empty() ? q.next_completion() : Next::kSession;
        if (next == Next::kNothing) {
            break;
        }
        if (unlikely(next == Next::kError)) {
            q.recover();
            break;
        }
        rte_mbuf* const mbuf = q.next_mbuf();
        if (unlikely(mbuf == nullptr)) {
            ++ring.counters.no_mbuf;
            break;  // the packet waits
        }
        rte_io_rmb();  // the rest of the entry was written before its owner bit
        const Cqe& cqe = next == Next::kSession ? q.session_.next(ring)
                                                : ring.cqes[ring.cq_consumer++ & ring.cq_mask];
        if (unlikely((cqe.byte_count.get() & kStrideFiller) != 0)) {
            q.strides_.skip(ring, cqe);
            continue;
        }
        q.strides_.deliver(ring, cqe, mbuf);
        --q.fresh_count_;
        packets[received++] = mbuf;
        bytes += mbuf->pkt_len;
    }
    ring.counters.packets += received;
    ring.counters.bytes += bytes;
    if (ring.producer != posted) {
        q.ring_doorbells();
    } else if (ring.cq_consumer != completions) {
        rte_io_wmb();
        q.cq_doorbell_.set(ring.cq_consumer & 0xffffff);
    }
    return received;
}

// The mbuf of the next packet, which stays in the stock until the packet is in it.
rte_mbuf* RxQueue::next_mbuf() {
    if (unlikely(fresh_count_ == 0)) {
        void** const objects = reinterpret_cast<void**>(fresh_);
        if (rte_mempool_get_bulk(ring_.pool, objects, kRefillBatch) == 0) {
            fresh_count_ = kRefillBatch;
        } else if (rte_mempool_get(ring_.pool, objects) == 0) {
            fresh_count_ = 1;
        } else {
            return nullptr;
        }
    }
    return fresh_[fresh_count_ - 1];
}

}  // namespace tagwire::mlx5raw
