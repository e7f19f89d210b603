// SPDX-License-Identifier: BSD-3-Clause
// The doorbell, completions, and the way of mbufs back to their pools.
#include <rte_atomic.h>
#include <rte_io.h>
#include <rte_mempool.h>

#include <algorithm>

#include "drivers/net/mlx5raw/txq.h"
#include "drivers/net/mlx5raw/wqe.h"

namespace tagwire::mlx5raw {

// Announces everything up to producer_, whose last WQE is at `last_block`.
void TxQueue::post(uint32_t last_block) {
    auto& control = *reinterpret_cast<ControlSegment*>(wqes_[last_block & mask_].bytes);
    if (producer_ - requested_.block >= threshold_ ||
        segment_producer_ - requested_.segment >= threshold_) {
        request_completion(control);
        requested_ = {producer_, segment_producer_};
        pending_[pending_head_++ & cq_mask_] = requested_;
    }
    ring_doorbell(control);
}

// PRM, "Posting a Work Request": WQE, then doorbell record, then doorbell register.
inline void TxQueue::ring_doorbell(ControlSegment& control) {
    rte_io_wmb();
    sq_doorbell_.set(producer_ & 0xffff);
    rte_wmb();
    *doorbell_register_ = doorbell_value(&control);
    rte_wmb();  // the register may be write-combining
    ++counters_.doorbells;
}

uint32_t TxQueue::reap(uint32_t limit) {
    const uint32_t first = pending_tail_;
    while (true) {
        const Cqe& cqe = cqes_[cq_consumer_ & cq_mask_];
        const uint8_t op_own = *const_cast<const volatile uint8_t*>(&cqe.op_own);
        const uint8_t owner = (cq_consumer_ >> cq_log_) & kCqeOwnerMask;
        if (likely((op_own & kCqeKindMask) != (kCqeRequester << 4 | owner))) {
            if (unlikely((op_own & kCqeOwnerMask) == owner && op_own >> 4 != kCqeInvalid)) {
                recover();
                return 0;
            }
            break;
        }
        ++cq_consumer_;
        ++pending_tail_;
    }
    const uint32_t completed = pending_tail_ - first;
    if (completed != 0) {
        rte_io_rmb();
        cq_doorbell_.set(cq_consumer_ & 0xffffff);
        const Mark& mark = pending_[(pending_tail_ - 1) & cq_mask_];
        consumer_ = mark.block;
        segment_done_ = mark.segment;
        counters_.completions += completed;
    }
    const uint32_t freed = std::min(segment_done_ - segment_consumer_, limit);
    if (freed != 0) {
        release(segment_consumer_ + freed);
    }
    return freed;
}

uint32_t TxQueue::cleanup(uint32_t limit) {
    const uint32_t freed = reap(limit);
    ask_for_completion();
    return freed;
}

// By a WQE that does nothing else.
void TxQueue::ask_for_completion() {
    if (running_ && requested_.block != producer_ && free_blocks() != 0) {
        auto& control = *reinterpret_cast<ControlSegment*>(wqes_[producer_ & mask_].bytes);
        write_control(control, kOpcodeNop, static_cast<uint16_t>(producer_), qpn_shifted_, 1);
        request_completion(control);
        ++producer_;
        requested_ = {producer_, segment_producer_};
        pending_[pending_head_++ & cq_mask_] = requested_;
        ring_doorbell(control);
    }
}

void TxQueue::release(uint32_t to_segment) {
    while (segment_consumer_ != to_segment) {
        const uint32_t first = segment_consumer_ & segment_mask_;
        const uint32_t run = std::min(to_segment - segment_consumer_, segment_mask_ + 1 - first);
        release_now(mbufs_ + first, run);
        segment_consumer_ += run;
    }
}

void TxQueue::release_now(rte_mbuf** mbufs, uint32_t count) {
    rte_mempool* const pool = mbufs[0]->pool;
    // Fast free: the application promised one pool and no other references.
    if (fast_free_ || (vector_simple_ != nullptr && vector_simple_(mbufs, count, pool))) {
        rte_mempool_put_bulk(pool, reinterpret_cast<void**>(mbufs), count);
        return;
    }
    constexpr uint32_t kBatch = 64;
    rte_mbuf* batch[kBatch];
    uint32_t size = 0;
    for (uint32_t i = 0; i < count; ++i) {
        rte_mbuf* const mbuf = rte_pktmbuf_prefree_seg(mbufs[i]);
        if (unlikely(mbuf == nullptr)) {
            continue;  // somebody else holds it
        }
        if (size == kBatch || (size != 0 && mbuf->pool != batch[0]->pool)) {
            rte_mempool_put_bulk(batch[0]->pool, reinterpret_cast<void**>(batch), size);
            size = 0;
        }
        batch[size++] = mbuf;
    }
    if (size != 0) {
        rte_mempool_put_bulk(batch[0]->pool, reinterpret_cast<void**>(batch), size);
    }
}

}  // namespace tagwire::mlx5raw
