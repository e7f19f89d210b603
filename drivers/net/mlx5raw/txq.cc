// SPDX-License-Identifier: BSD-3-Clause
// Life of a transmit queue: create, start, stop, destroy.
#include "drivers/net/mlx5raw/txq.h"

#include <infiniband/mlx5dv.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "drivers/net/mlx5raw/log.h"
#include "drivers/net/mlx5raw/wqe.h"

namespace tagwire::mlx5raw {
namespace {

// A completion per this many blocks or segments: rare enough to cost nothing, often
// enough that the ring never fills while none is due.
constexpr uint32_t kCompletionInterval = 64;

}  // namespace

TxQueue::~TxQueue() {
    destroy();
}

Status TxQueue::create(const Device& device, MemoryTable& memory, const TxMode& mode) {
    table_ = &memory;
    mode_ = mode;
    port_ = device.port();
    fast_free_ = (config_.offloads & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) != 0;
    Status status = create_verbs(device);
    if (status.ok()) {
        status = map_rings();
    }
    if (!status.ok()) {
        destroy();
        return status;
    }
    inline_packet_ = mode.inline_packet;
    choose_loops();
    return status;
}

void TxQueue::choose_loops() {
    vector_write_ = nullptr;
    vector_simple_ = nullptr;
    if (mode_.path == TxPath::kMultiPacketAvx2) {
        vector_write_ = write_pointers_avx2;
    } else if (mode_.path == TxPath::kMultiPacketAvx2Offloads) {
        vector_write_ = write_pointers_offloads_avx2;
    }
    if (have_avx2()) {
        vector_simple_ = mode_.segments ? all_simple_segments_avx2 : all_simple_avx2;
    }
}

Status TxQueue::create_verbs(const Device& device) {
    // As many entries as blocks, so that even a flush of the whole ring fits.
    cq_ = create_completion_queue(device.context(), config_.descriptors);
    if (cq_ == nullptr) {
        return failure(errno, "TX queue %u: cannot create a completion queue of %u entries: %s",
                       config_.queue, config_.descriptors, strerror(errno));
    }
    ibv_qp_init_attr_ex attributes = {};
    attributes.qp_type = IBV_QPT_RAW_PACKET;
    attributes.send_cq = cq_.get();
    attributes.recv_cq = cq_.get();
    attributes.cap.max_send_wr = config_.descriptors;
    attributes.cap.max_send_sge = 1;
    attributes.pd = device.pd();
    attributes.comp_mask = IBV_QP_INIT_ATTR_PD;
    qp_.reset(ibv_create_qp_ex(device.context(), &attributes));
    if (qp_ == nullptr) {
        return failure(errno,
                       "TX queue %u: cannot create a raw packet queue pair of %u sends: %s; the "
                       "process needs CAP_NET_RAW",
                       config_.queue, config_.descriptors, strerror(errno));
    }
    return {};
}

Status TxQueue::map_rings() {
    mlx5dv_cq cq = {};
    mlx5dv_qp qp = {};
    mlx5dv_obj objects = {};
    objects.cq.in = cq_.get();
    objects.cq.out = &cq;
    objects.qp.in = qp_.get();
    objects.qp.out = &qp;
    if (const int error = mlx5dv_init_obj(&objects, MLX5DV_OBJ_CQ | MLX5DV_OBJ_QP); error != 0) {
        return failure(error, "TX queue %u: no direct access to its rings: %s", config_.queue,
                       strerror(error));
    }
    if (cq.cqe_size != sizeof(Cqe) || qp.sq.stride != kBasicBlock || cq.cqe_cnt < qp.sq.wqe_cnt ||
        !std::has_single_bit(qp.sq.wqe_cnt)) {
        return failure(
            EPROTO,
            "TX queue %u: unexpected ring layout (CQE %u bytes, %u CQEs, %u blocks of %u bytes)",
            config_.queue, cq.cqe_size, cq.cqe_cnt, qp.sq.wqe_cnt, qp.sq.stride);
    }
    cqes_ = static_cast<const Cqe*>(cq.buf);
    cq_mask_ = cq.cqe_cnt - 1;
    cq_log_ = std::countr_zero(cq.cqe_cnt);
    cq_consumer_ = 0;
    cq_doorbell_ = DoorbellRecord(cq.dbrec);
    wqes_ = static_cast<BasicBlock*>(qp.sq.buf);
    mask_ = qp.sq.wqe_cnt - 1;
    sq_doorbell_ = DoorbellRecord(&qp.dbrec[MLX5_SND_DBR]);
    doorbell_register_ = static_cast<volatile uint64_t*>(qp.bf.reg);
    qpn_shifted_ = qp_->qp_num << 8;
    segment_mask_ = config_.descriptors - 1;
    threshold_ = std::min(kCompletionInterval, config_.descriptors / 4);
    mbufs_ = static_cast<rte_mbuf**>(rte_zmalloc_socket("mlx5raw_tx",
                                                        sizeof(rte_mbuf*) * config_.descriptors,
                                                        RTE_CACHE_LINE_SIZE, config_.socket));
    pending_ = static_cast<Mark*>(rte_zmalloc_socket("mlx5raw_tx", sizeof(Mark) * (cq_mask_ + 1),
                                                     RTE_CACHE_LINE_SIZE, config_.socket));
    if (mbufs_ == nullptr || pending_ == nullptr) {
        return failure(ENOMEM, "TX queue %u: no memory for %u descriptors; give EAL more (-m)",
                       config_.queue, config_.descriptors);
    }
    return {};
}

void TxQueue::destroy() {
    if (running_) {
        if (Status status = stop(); !status.ok()) {
            MLX5RAW_LOG(ERR, "%s", status.message.c_str());
            running_ = false;
        }
    }
    qp_.reset();
    cq_.reset();
    if (mbufs_ != nullptr) {
        release(segment_producer_);  // what a stop that failed left to the device
    }
    rte_free(mbufs_);
    rte_free(pending_);
    mbufs_ = nullptr;
    pending_ = nullptr;
}

Status TxQueue::start() {
    reset_rings();
    memory_.attach(table_);
    if (Status status = to_ready(); !status.ok()) {
        // Not half way, from where no start leads on.
        if (const Status back = to_reset(); !back.ok()) {
            MLX5RAW_LOG(ERR, "%s", back.message.c_str());
        }
        return status;
    }
    running_ = true;
    return {};
}

// The device is through with a ring that is in RESET, sent or not.
Status TxQueue::stop() {
    Status status = to_reset();
    if (!status.ok()) {
        return status;
    }
    running_ = false;
    skip_completions();
    release(segment_producer_);
    reset_rings();
    return status;
}

uint32_t TxQueue::used_descriptors() const {
    return std::max(std::min(producer_ - consumer_, segment_mask_ + 1),
                    segment_producer_ - segment_consumer_);
}

std::string TxQueue::describe() const {
    char text[512];
    snprintf(text, sizeof(text),
             "txq %u: qpn 0x%x %s path %s descriptors %u blocks %u..%u segments %u..%u "
             "cq_consumer %u pending %u",
             config_.queue, qp_ != nullptr ? qp_->qp_num : 0, running_ ? "RTS" : "RESET",
             mode_.describe().c_str(), config_.descriptors, consumer_, producer_, segment_consumer_,
             segment_producer_, cq_consumer_, pending_head_ - pending_tail_);
    return text;
}

}  // namespace tagwire::mlx5raw
