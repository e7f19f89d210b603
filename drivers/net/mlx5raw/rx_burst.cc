// SPDX-License-Identifier: BSD-3-Clause
// Receiving into one buffer per packet.
#include <rte_io.h>

#include <cstring>

#include "drivers/net/mlx5raw/rxq.h"

namespace tagwire::mlx5raw {

// Most polls of a busy loop find nothing, and most others one packet.
uint16_t RxQueue::burst_single(void* queue, rte_mbuf** packets, uint16_t count) {
    RxQueue& q = *static_cast<RxQueue*>(queue);
    const Next next = q.next_completion();
    if (next == Next::kNothing && q.ring_.ready == 0 && !q.wants_refill()) {
        return 0;
    }
    return q.take_burst(next, packets, count);
}

// `next`: what is at the head of the completion queue.
[[gnu::noinline]] uint16_t RxQueue::take_burst(Next next, rte_mbuf** packets, uint16_t count) {
    RxRing& ring = ring_;
    uint16_t received = 0;
    while (received < count) {
        if (ring.ready != 0) {
            received =
                static_cast<uint16_t>(received + take_ready(packets + received, count - received));
            continue;
        }
        if (next == Next::kPacket) {
            received = static_cast<uint16_t>(
                received + path_.decode(ring, packets + received, count - received));
        } else if (next == Next::kSession) {
            path_.expand(ring);
        } else {
            if (unlikely(next == Next::kError)) {
                ring.counters.packets += received;
                recover();
                return received;
            }
            break;
        }
        next = next_completion();
    }
    ring.counters.packets += received;
    if (wants_refill()) {
        replenish();
    } else if (received != 0) {
        rte_io_wmb();  // entries are released before they are announced as free
        cq_doorbell_.set(ring.cq_consumer & 0xffffff);
    }
    return received;
}

// Mbufs that a session has filled in.
uint16_t RxQueue::take_ready(rte_mbuf** packets, uint16_t count) {
    const uint32_t slot = ring_.consumer & ring_.mask;
    const uint32_t taken = RTE_MIN(RTE_MIN(ring_.ready, uint32_t{count}), ring_.mask + 1 - slot);
    memcpy(packets, &ring_.mbufs[slot], taken * sizeof(*packets));
    ring_.ready -= taken;
    ring_.consumer += taken;
    return static_cast<uint16_t>(taken);
}

void RxQueue::replenish() {
    if (unlikely(!running_)) {  // a recovery failed
        return;
    }
    if (striding_) {
        // Every WQE is posted again as soon as it is empty.
    } else if (segments_ == 1) {
        refill_single();
    } else {
        refill_scatter();
    }
    ring_doorbells();
}

// Room in the completion queue is announced before the receives that may fill it.
void RxQueue::ring_doorbells() {
    rte_io_wmb();
    cq_doorbell_.set(ring_.cq_consumer & 0xffffff);
    rte_io_wmb();
    rq_doorbell_.set(ring_.producer & 0xffff);
}

void RxQueue::refill_single() {
    uint32_t empty = ring_.mask + 1 - (ring_.producer - ring_.consumer);
    while (empty >= refill_threshold_) {
        const uint32_t to_wrap = ring_.mask + 1 - (ring_.producer & ring_.mask);
        const uint32_t batch = RTE_MIN(RTE_MIN(kRefillBatch, to_wrap), empty);
        const bool done = likely(one_key_) ? path_.refill(ring_, batch) : refill_any_memory(batch);
        if (unlikely(!done)) {
            ring_.counters.no_mbuf += batch;
            return;
        }
        empty -= batch;
    }
}

bool RxQueue::refill_any_memory(uint32_t batch) {
    const uint32_t first = ring_.producer & ring_.mask;
    rte_mbuf** const slots = &ring_.mbufs[first];
    if (unlikely(rte_mempool_get_bulk(ring_.pool, reinterpret_cast<void**>(slots), batch) != 0)) {
        return false;
    }
    memory_.refresh();
    for (uint32_t i = 0; i < batch; ++i) {
        post(first + i, 0, slots[i]);
    }
    ring_.producer += batch;
    return true;
}

// Any pool: several regions, buffers outside of the mbufs.
void RxQueue::post(uint32_t slot, uint32_t segment, rte_mbuf* mbuf) {
    const auto address = reinterpret_cast<uintptr_t>(mbuf->buf_addr) + RTE_PKTMBUF_HEADROOM;
    DataSegment& data = ring_.wqes[slot * stride_segments_ + segment];
    data.lkey = memory_.lkey(*mbuf, address);
    data.address = Be64::of(address);
}

}  // namespace tagwire::mlx5raw
