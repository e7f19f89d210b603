// SPDX-License-Identifier: BSD-3-Clause
// Receiving into one buffer per packet.
#include <rte_atomic.h>
#include <rte_io.h>
#include <rte_prefetch.h>

#include "drivers/net/mlx5raw/flow_mark.h"
#include "drivers/net/mlx5raw/rxq.h"

namespace tagwire::mlx5raw {
namespace {

uint8_t load_op_own(const Cqe& cqe) {
    return *const_cast<const volatile uint8_t*>(&cqe.op_own);
}

}  // namespace

uint16_t RxQueue::burst_single(void* queue, rte_mbuf** packets, uint16_t count) {
    RxQueue& q = *static_cast<RxQueue*>(queue);
    // In registers: what is written to mbufs could otherwise change them.
    Cqe* const cqes = q.cqes_;
    rte_mbuf** const mbufs = q.mbufs_;
    const CqeClass* const classes = q.classes_;
    const uint64_t rearm = q.rearm_;
    const bool flow_marks = q.flow_marks_;
    const uint32_t cq_mask = q.cq_mask_;
    const uint32_t cq_log = q.cq_log_;
    const uint32_t mask = q.mask_;
    uint32_t completion = q.cq_consumer_;
    uint32_t slot = q.consumer_;
    uint64_t bytes = 0;
    rte_mbuf** next = packets;
    rte_mbuf** const end = packets + count;
    bool error = false;

    for (; next != end; ++next, ++completion, ++slot) {
        const Cqe& cqe = cqes[completion & cq_mask];
        const uint8_t op_own = load_op_own(cqe);
        const uint8_t owner = (completion >> cq_log) & kCqeOwnerMask;
        if (unlikely((op_own & kCqeKindMask) != (kCqeResponderSend << 4 | owner))) {
            q.cq_consumer_ = completion;
            error = q.classify(op_own) == Next::kError;
            break;
        }
        rte_io_rmb();  // the rest of the entry was written before its owner bit
        rte_mbuf* const mbuf = mbufs[slot & mask];
        rte_prefetch0(mbufs[(slot + 1) & mask]);
        const CqeClass& kind = classes[cqe_class_index(cqe.header)];
        const uint32_t length = cqe.byte_count.get();
        *next = mbuf;
        write_rearm(mbuf, rearm);
        mbuf->ol_flags = kind.flags;
        if (unlikely(flow_marks)) {
            set_flow_mark(*mbuf, cqe.flow_tag.get());
        }
        mbuf->packet_type = kind.packet_type;
        mbuf->pkt_len = length;
        mbuf->data_len = static_cast<uint16_t>(length);
        mbuf->hash.rss = cqe.rx_hash.get();
        bytes += length;
    }

    const auto received = static_cast<uint16_t>(next - packets);
    q.cq_consumer_ = completion;
    q.consumer_ = slot;
    q.counters_.packets += received;
    q.counters_.bytes += bytes;
    if (unlikely(error)) {
        q.recover();
        return received;
    }
    const uint32_t empty = mask + 1 - (q.producer_ - slot);
    if (empty >= q.refill_threshold_) {
        q.replenish();
    } else if (received != 0) {
        q.cq_doorbell_.set(completion & 0xffffff);
    }
    return received;
}

RxQueue::Next RxQueue::classify(uint8_t op_own) const {
    const uint8_t owner = (cq_consumer_ >> cq_log_) & kCqeOwnerMask;
    if ((op_own & kCqeOwnerMask) != owner || (op_own >> 4) == kCqeInvalid) {
        return Next::kNothing;
    }
    return (op_own & kCqeKindMask) == (kCqeResponderSend << 4 | owner) ? Next::kPacket
                                                                       : Next::kError;
}

void RxQueue::replenish() {
    if (unlikely(!running_)) {  // a recovery failed
        return;
    }
    if (segments_ == 1) {
        refill_single();
    } else {
        refill_scatter();
    }
    ring_doorbells();
}

// Room in the completion queue is announced before the receives that may fill it.
void RxQueue::ring_doorbells() {
    rte_io_wmb();
    cq_doorbell_.set(cq_consumer_ & 0xffffff);
    rte_io_wmb();
    rq_doorbell_.set(producer_ & 0xffff);
}

void RxQueue::refill_single() {
    uint32_t empty = mask_ + 1 - (producer_ - consumer_);
    while (empty >= refill_threshold_) {
        const uint32_t to_wrap = mask_ + 1 - (producer_ & mask_);
        const uint32_t batch = RTE_MIN(RTE_MIN(kRefillBatch, to_wrap), empty);
        if (unlikely(!refill_batch(batch))) {
            counters_.no_mbuf += batch;
            return;
        }
        empty -= batch;
    }
}

bool RxQueue::refill_batch(uint32_t batch) {
    const uint32_t first = producer_ & mask_;
    rte_mbuf** const slots = &mbufs_[first];
    DataSegment* const wqes = &wqes_[first];
    if (unlikely(rte_mempool_get_bulk(pool_, reinterpret_cast<void**>(slots), batch) != 0)) {
        return false;
    }
    if (likely(one_key_)) {
        for (uint32_t i = 0; i < batch; ++i) {
            wqes[i].address = Be64::of(reinterpret_cast<uintptr_t>(slots[i]) + buffer_offset_);
        }
    } else {
        memory_.refresh();
        for (uint32_t i = 0; i < batch; ++i) {
            post(first + i, 0, slots[i]);
        }
    }
    producer_ += batch;
    return true;
}

// Any pool: several regions, buffers outside of the mbufs.
void RxQueue::post(uint32_t slot, uint32_t segment, rte_mbuf* mbuf) {
    const auto address = reinterpret_cast<uintptr_t>(mbuf->buf_addr) + RTE_PKTMBUF_HEADROOM;
    DataSegment& data = wqes_[slot * stride_segments_ + segment];
    data.lkey = memory_.lkey(*mbuf, address);
    data.address = Be64::of(address);
}

}  // namespace tagwire::mlx5raw
