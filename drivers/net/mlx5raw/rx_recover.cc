// SPDX-License-Identifier: BSD-3-Clause
// A receive queue in ERR: RESET, everything accounted for, RDY again with the same
// buffers (requirement W3).
#include <rte_io.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "drivers/net/mlx5raw/log.h"
#include "drivers/net/mlx5raw/rxq.h"

namespace tagwire::mlx5raw {

Status RxQueue::set_state(ibv_wq_state state) {
    ibv_wq_attr attributes = {};
    attributes.attr_mask = IBV_WQ_ATTR_STATE;
    attributes.wq_state = state;
    if (const int error = ibv_modify_wq(wq_.get(), &attributes); error != 0) {
        const int code = error < 0 ? -error : error;
        return failure(code, "RX queue %u: the work queue does not go to %s: %s", config_.queue,
                       state == IBV_WQS_RDY ? "RDY" : "RESET", strerror(code));
    }
    if (state == IBV_WQS_RESET) {
        rq_doorbell_.set(0);  // a ring in RESET has no receives
    }
    return {};
}

void RxQueue::recover() {
    if (!running_) {
        return;  // gave up before
    }
    const auto& cqe =
        reinterpret_cast<const ErrorCqe&>(ring_.cqes[ring_.cq_consumer & ring_.cq_mask]);
    const uint32_t level = ring_.counters.recoveries == 0 ? RTE_LOG_WARNING : RTE_LOG_DEBUG;
    rte_log(level, log_type,
            "net_mlx5raw: port %u RX queue %u: error completion, syndrome 0x%02x (%s), vendor "
            "0x%02x; the queue is reset and goes on (further ones are only counted: "
            "rx_q%u_error_completions)\n",
            config_.port_id, config_.queue, cqe.syndrome, syndrome_text(cqe.syndrome),
            cqe.vendor_syndrome, config_.queue);

    Status status = set_state(IBV_WQS_RESET);
    if (status.ok()) {
        drain_completions();
        compact_mbufs();
        status = set_state(IBV_WQS_RDY);
        restore_completion_index();
    }
    if (!status.ok()) {
        // The device may still own the buffers: they go when the queue is destroyed.
        ++ring_.counters.recovery_failures;
        running_ = false;
        MLX5RAW_LOG(ERR, "%s; the queue stays stopped until it is started again",
                    status.message.c_str());
        return;
    }
    ++ring_.counters.recoveries;
    replenish();
}

// In RESET nothing new arrives. What lies in the completion queue is counted and
// passed over: its buffers are still in ring_.mbufs.
void RxQueue::drain_completions() {
    while (true) {
        const Cqe& cqe = ring_.cqes[ring_.cq_consumer & ring_.cq_mask];
        const Next next = next_completion();
        if (next == Next::kNothing) {
            break;
        }
        rte_io_rmb();
        if (next == Next::kSession) {
            const uint32_t count = cqe.byte_count.get();
            rx_release_entries(ring_, ring_.cq_consumer, count);
            ring_.cq_consumer += count;
            continue;
        }
        if (next == Next::kError) {
            const auto& error = reinterpret_cast<const ErrorCqe&>(cqe);
            ++(error.syndrome == kSyndromeFlushed ? ring_.counters.flushed : ring_.counters.errors);
        }
        ++ring_.cq_consumer;
    }
    session_.clear();
    ring_.ready = 0;
    restore_completion_index();
}

void RxQueue::restore_completion_index() {
    cq_doorbell_.set(ring_.cq_consumer & 0xffffff);
    rte_io_wmb();
}

// After RESET the ring begins at zero: the buffers that were posted move there.
void RxQueue::compact_mbufs() {
    if (striding_) {
        strides_.restart(ring_);
        return;
    }
    std::vector<rte_mbuf*> kept;
    const uint32_t last = segments_ == 1 ? ring_.producer : ring_.consumer + ring_.mask + 1;
    for (uint32_t slot = ring_.consumer; slot != last; ++slot) {
        for (uint32_t i = 0; i < segments_; ++i) {
            rte_mbuf*& mbuf = ring_.mbufs[(slot & ring_.mask) * segments_ + i];
            if (mbuf != nullptr) {
                kept.push_back(mbuf);
            }
            mbuf = nullptr;
        }
    }
    memory_.refresh();
    const uint32_t full_slots = static_cast<uint32_t>(kept.size()) / segments_;
    for (uint32_t i = 0; i < kept.size(); ++i) {
        ring_.mbufs[i] = kept[i];
        post(i / segments_, i % segments_, kept[i]);
    }
    ring_.consumer = 0;
    ring_.producer = full_slots;
}

void RxQueue::free_mbufs() {
    if (striding_) {
        strides_.clear(ring_);
        return;
    }
    const uint32_t last = segments_ == 1 ? ring_.producer : ring_.consumer + ring_.mask + 1;
    for (uint32_t slot = ring_.consumer; slot != last; ++slot) {
        for (uint32_t i = 0; i < segments_; ++i) {
            rte_mbuf*& mbuf = ring_.mbufs[(slot & ring_.mask) * segments_ + i];
            if (mbuf != nullptr) {
                rte_mbuf_raw_free(mbuf);
            }
            mbuf = nullptr;
        }
    }
    ring_.consumer = ring_.producer = 0;
}

}  // namespace tagwire::mlx5raw
