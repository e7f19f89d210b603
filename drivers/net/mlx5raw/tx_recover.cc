// SPDX-License-Identifier: BSD-3-Clause
// A send queue in ERR: RESET, mbufs back, RTS again.
#include <rte_io.h>

#include <cstring>

#include "drivers/net/mlx5raw/log.h"
#include "drivers/net/mlx5raw/txq.h"
#include "drivers/net/mlx5raw/wqe.h"

namespace tagwire::mlx5raw {

// RESET -> INIT -> RTR -> RTS; the device knows no shorter way.
Status TxQueue::to_ready() {
    struct Step {
        ibv_qp_state state;
        int mask;
        const char* name;
    };
    static constexpr Step kSteps[] = {{IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PORT, "INIT"},
                                      {IBV_QPS_RTR, IBV_QP_STATE, "RTR"},
                                      {IBV_QPS_RTS, IBV_QP_STATE, "RTS"}};
    for (const Step& step : kSteps) {
        ibv_qp_attr attributes = {};
        attributes.qp_state = step.state;
        attributes.port_num = port_;
        if (const int error = ibv_modify_qp(qp_.get(), &attributes, step.mask); error != 0) {
            return failure(error, "TX queue %u: the queue pair does not go to %s: %s",
                           config_.queue, step.name, strerror(error));
        }
    }
    return {};
}

Status TxQueue::to_reset() {
    ibv_qp_attr attributes = {};
    attributes.qp_state = IBV_QPS_RESET;
    const int error = ibv_modify_qp(qp_.get(), &attributes, IBV_QP_STATE);
    // libmlx5 cleaned the completion queue with a consumer index of its own.
    restore_completion_index();
    if (error != 0) {
        return failure(error, "TX queue %u: the queue pair does not go to RESET: %s", config_.queue,
                       strerror(error));
    }
    return {};
}

void TxQueue::recover() {
    if (!running_) {
        return;  // gave up before
    }
    const auto& cqe = reinterpret_cast<const ErrorCqe&>(cqes_[cq_consumer_ & cq_mask_]);
    rte_io_rmb();
    const uint32_t level = counters_.errors == 0 ? RTE_LOG_WARNING : RTE_LOG_DEBUG;
    rte_log(level, log_type,
            "net_mlx5raw: port %u TX queue %u: error completion, syndrome 0x%02x (%s), vendor "
            "0x%02x, WQE %u; the queue is reset and goes on (further ones are only counted: "
            "tx_q%u_error_completions)\n",
            config_.port_id, config_.queue, cqe.syndrome, syndrome_text(cqe.syndrome),
            cqe.vendor_syndrome, cqe.wqe_counter.get(), config_.queue);
    ++counters_.errors;
    // From the WQE that failed on: the ones before it were sent.
    const uint32_t failed =
        consumer_ + static_cast<uint16_t>(cqe.wqe_counter.get() - static_cast<uint16_t>(consumer_));
    counters_.error_dropped += count_packets(failed);

    Status status = to_reset();
    if (status.ok()) {
        skip_completions();
        release(segment_producer_);
        reset_rings();
        status = to_ready();
    }
    if (!status.ok()) {
        ++counters_.recovery_failures;
        running_ = false;
        MLX5RAW_LOG(ERR, "%s; the queue stays stopped until it is started again",
                    status.message.c_str());
        return;
    }
    ++counters_.recoveries;
}

// How many packets the WQEs from there on hold. Read from the ring: an error is too rare
// to keep a count per WQE.
uint32_t TxQueue::count_packets(uint32_t block) const {
    uint32_t packets = 0;
    while (block - consumer_ < producer_ - consumer_) {
        const auto& control = *reinterpret_cast<const ControlSegment*>(wqes_[block & mask_].bytes);
        const uint32_t octowords = control.qpn_ds.get() & kMaxOctowords;
        const uint8_t opcode = control.opmod_index_opcode.get() & 0xff;
        if (opcode == kOpcodeMultiPacket) {
            for (uint32_t at = kHeaderOctowords; at < octowords; ++packets) {
                Be32 byte_count;
                memcpy(&byte_count, wqes_[(block + at / 4) & mask_].bytes + at % 4 * kOctoword,
                       sizeof(byte_count));
                const uint32_t length = byte_count.get() & ~kInlineData;
                at += (byte_count.get() & kInlineData) != 0 ? inline_octowords(length) : 1;
            }
        } else if (opcode != kOpcodeNop) {
            ++packets;
        }
        block += blocks_of(octowords);
    }
    return packets;
}

// RESET starts the ring at zero; the completion queue goes on where it was.
void TxQueue::reset_rings() {
    producer_ = consumer_ = 0;
    segment_producer_ = segment_consumer_ = segment_done_ = 0;
    requested_ = {};
    pending_head_ = pending_tail_ = 0;
}

void TxQueue::skip_completions() {
    while (true) {
        const Cqe& cqe = cqes_[cq_consumer_ & cq_mask_];
        const uint8_t op_own = *const_cast<const volatile uint8_t*>(&cqe.op_own);
        if ((op_own & kCqeOwnerMask) != ((cq_consumer_ >> cq_log_) & kCqeOwnerMask) ||
            op_own >> 4 == kCqeInvalid) {
            break;
        }
        ++cq_consumer_;
    }
    restore_completion_index();
}

void TxQueue::restore_completion_index() {
    cq_doorbell_.set(cq_consumer_ & 0xffffff);
    rte_io_wmb();
}

}  // namespace tagwire::mlx5raw
