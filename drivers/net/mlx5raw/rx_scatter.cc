// SPDX-License-Identifier: BSD-3-Clause
// Receiving packets that may take several buffers: a WQE lists segments_ of them,
// and a packet uses as many as it needs. Only those are replaced.
#include <rte_atomic.h>
#include <rte_io.h>
#include <rte_prefetch.h>

#include "drivers/net/mlx5raw/flow_mark.h"
#include "drivers/net/mlx5raw/rxq.h"

namespace tagwire::mlx5raw {

uint16_t RxQueue::burst_scatter(void* queue, rte_mbuf** packets, uint16_t count) {
    RxQueue& q = *static_cast<RxQueue*>(queue);
    uint64_t bytes = 0;
    uint16_t received = 0;
    while (received < count) {
        const Cqe& cqe = q.cqes_[q.cq_consumer_ & q.cq_mask_];
        const uint8_t op_own = *const_cast<const volatile uint8_t*>(&cqe.op_own);
        const Next next = q.classify(op_own);
        if (next == Next::kNothing) {
            break;
        }
        if (unlikely(next == Next::kError)) {
            q.recover();
            break;
        }
        rte_io_rmb();  // the rest of the entry was written before its owner bit
        const CqeClass& kind = q.classes_[cqe_class_index(cqe.header)];
        const uint32_t length = cqe.byte_count.get();
        rte_mbuf* const head = q.take_chain(q.consumer_ & q.mask_, length);
        head->ol_flags = kind.flags;
        if (unlikely(q.flow_marks_)) {
            set_flow_mark(*head, cqe.flow_tag.get());
        }
        head->packet_type = kind.packet_type;
        head->pkt_len = length;
        head->hash.rss = cqe.rx_hash.get();
        packets[received++] = head;
        bytes += length;
        ++q.cq_consumer_;
        ++q.consumer_;
    }
    q.counters_.packets += received;
    q.counters_.bytes += bytes;
    const uint32_t empty = q.mask_ + 1 - (q.producer_ - q.consumer_);
    if (empty >= q.refill_threshold_) {
        q.replenish();
    } else if (received != 0) {
        q.cq_doorbell_.set(q.cq_consumer_ & 0xffffff);
    }
    return received;
}

// Links the buffers that hold `length` bytes and leaves their places empty.
rte_mbuf* RxQueue::take_chain(uint32_t slot, uint32_t length) {
    rte_mbuf** const buffers = &mbufs_[slot * segments_];
    const uint32_t room = buffer_size(pool_);
    rte_mbuf* const head = buffers[0];
    rte_mbuf* tail = nullptr;
    uint32_t used = 0;
    uint32_t left = length;
    do {
        rte_mbuf* const mbuf = buffers[used];
        buffers[used++] = nullptr;
        write_rearm(mbuf, rearm_);
        mbuf->ol_flags = 0;
        mbuf->data_len = static_cast<uint16_t>(RTE_MIN(left, room));
        left -= mbuf->data_len;
        if (tail != nullptr) {
            tail->next = mbuf;
        }
        tail = mbuf;
    } while (left != 0 && used < segments_);
    head->nb_segs = static_cast<uint16_t>(used);
    return head;
}

void RxQueue::refill_scatter() {
    memory_.refresh();
    while (producer_ - consumer_ <= mask_) {
        if (unlikely(!refill_packet(producer_ & mask_))) {
            ++counters_.no_mbuf;
            return;
        }
        ++producer_;
    }
}

bool RxQueue::refill_packet(uint32_t slot) {
    rte_mbuf** const buffers = &mbufs_[slot * segments_];
    for (uint32_t i = 0; i < segments_; ++i) {
        if (buffers[i] != nullptr) {
            continue;
        }
        void* object = nullptr;
        if (unlikely(rte_mempool_get(pool_, &object) != 0)) {
            return false;  // what this slot got already stays for the next attempt
        }
        buffers[i] = static_cast<rte_mbuf*>(object);
        post(slot, i, buffers[i]);
    }
    return true;
}

}  // namespace tagwire::mlx5raw
