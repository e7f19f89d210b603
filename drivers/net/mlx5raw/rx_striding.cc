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
    uint32_t received = 0;
    while (received < count) {
        const uint32_t taken = q.take_strides(packets + received, count - received);
        if (taken == 0) {
            break;
        }
        received += taken;
    }
    ring.counters.packets += received;
    if (ring.producer != posted) {
        q.ring_doorbells();
    } else if (ring.cq_consumer != completions) {
        rte_io_wmb();
        q.cq_doorbell_.set(ring.cq_consumer & 0xffffff);
    }
    return static_cast<uint16_t>(received);
}

// Packets that are completed in the same way; zero when there is none, or no mbuf for it.
uint32_t RxQueue::take_strides(rte_mbuf** packets, uint32_t count) {
    uint32_t wanted = 0;
    while (true) {
        const Next next = session_.empty() ? next_completion() : Next::kSession;
        if (next == Next::kNothing) {
            return 0;
        }
        if (unlikely(next == Next::kError)) {
            recover();
            return 0;
        }
        rte_io_rmb();  // the rest of the entry was written before its owner bit
        if (next == Next::kPacket) {
            if (unlikely(strides_.skip(ring_, ring_.cqes[ring_.cq_consumer & ring_.cq_mask]))) {
                ++ring_.cq_consumer;
                continue;
            }
            wanted = plain_completions(count);
            break;
        }
        if (session_.empty()) {
            session_.open(ring_);
        }
        if (unlikely((session_.minis()->byte_count.get() & kStrideFiller) != 0)) {
            strides_.skip(ring_, session_.next(ring_));
            continue;
        }
        wanted = RTE_MIN(session_.count(), count);
        break;
    }
    void** const objects = reinterpret_cast<void**>(packets);
    if (unlikely(rte_mempool_get_bulk(ring_.pool, objects, wanted) != 0)) {
        if (rte_mempool_get(ring_.pool, objects) != 0) {
            ++ring_.counters.no_mbuf;
            return 0;  // the packets wait
        }
        wanted = 1;
    }
    const uint32_t taken = session_.empty() ? strides_.deliver(ring_, packets, wanted)
                                            : strides_.deliver(ring_, session_, packets, wanted);
    if (unlikely(taken != wanted)) {
        rte_mempool_put_bulk(ring_.pool, objects + taken, wanted - taken);
    }
    return taken;
}

// How many there are in a row, up to the end of the ring.
uint32_t RxQueue::plain_completions(uint32_t most) const {
    most = RTE_MIN(most, ring_.cq_mask + 1 - (ring_.cq_consumer & ring_.cq_mask));
    uint32_t count = 1;
    while (count < most && completion_at(ring_.cq_consumer + count) == Next::kPacket) {
        ++count;
    }
    rte_io_rmb();
    return count;
}

}  // namespace tagwire::mlx5raw
