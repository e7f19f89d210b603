// SPDX-License-Identifier: BSD-3-Clause
// Life of a receive queue: create, start, stop, destroy.
#include "drivers/net/mlx5raw/rxq.h"

#include <infiniband/mlx5dv.h>
#include <rte_ethdev.h>
#include <rte_io.h>
#include <rte_malloc.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "drivers/net/mlx5raw/log.h"

namespace tagwire::mlx5raw {
RxQueue::~RxQueue() {
    destroy();
}

Status RxQueue::create(const Device& device, MemoryTable& memory, const CqeClassTable& classes,
                       const RxArguments& arguments, const RxTimestamp& timestamp,
                       uint32_t frame_size) {
    ring_.pool = config_.pool;
    table_ = &memory;
    ring_.classes = classes.data();
    port_ = device.port();
    if (Status status = choose_buffers(device, arguments, frame_size); !status.ok()) {
        return status;
    }
    if (Status status = memory.add_pool(ring_.pool); !status.ok()) {
        return status;
    }
    // Marks stay as they were: rules may be older than the queue.
    set_extra(kRxTime, (config_.offloads & RTE_ETH_RX_OFFLOAD_TIMESTAMP) != 0);
    ring_.time_field = timestamp.field;
    if (Status status = choose_compression(device.caps(), arguments); !status.ok()) {
        return status;
    }
    if (Status status = create_verbs(device); !status.ok()) {
        destroy();
        return status;
    }
    if (Status status = map_rings(); !status.ok()) {
        destroy();
        return status;
    }
    return {};
}

Status RxQueue::choose_buffers(const Device& device, const RxArguments& arguments,
                               uint32_t frame_size) {
    const uint32_t room = buffer_size(ring_.pool);
    striding_ = arguments.striding;
    if (striding_) {
        segments_ = 1;
        path_ = rx_striding_path();
        if ((rte_pktmbuf_priv_flags(ring_.pool) & RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF) != 0) {
            return failure(EINVAL,
                           "RX queue %u: mprq_en=1 attaches buffers to mbufs, and those of "
                           "mempool %s have theirs pinned; use another pool",
                           config_.queue, ring_.pool->name);
        }
        StrideGeometry geometry;
        if (Status status = choose_strides(arguments, device.caps().striding, frame_size,
                                           config_.descriptors, room, geometry);
            !status.ok()) {
            return status;
        }
        return strides_.create("RX queue " + std::to_string(config_.queue), geometry,
                               config_.socket, *table_);
    }
    segments_ = (frame_size + room - 1) / room;
    path_ = segments_ == 1 ? choose_rx_path(arguments.vector) : rx_scatter_path();
    if (segments_ > 1 && (config_.offloads & RTE_ETH_RX_OFFLOAD_SCATTER) == 0) {
        return failure(EINVAL,
                       "RX queue %u: a frame of %u bytes does not fit a buffer of %u; use larger "
                       "buffers, a smaller MTU, or the RX scatter offload",
                       config_.queue, frame_size, room);
    }
    if (segments_ > device.caps().max_rx_segments) {
        return failure(EINVAL,
                       "RX queue %u: a frame of %u bytes needs %u buffers of %u, the device "
                       "scatters to %u at most; use larger buffers",
                       config_.queue, frame_size, segments_, room, device.caps().max_rx_segments);
    }
    return {};
}

uint32_t RxQueue::largest_frame() const {
    const uint32_t room = segments_ * buffer_size(config_.pool);
    return striding_ ? RTE_MIN(room, strides_.geometry().bytes() - RTE_PKTMBUF_HEADROOM) : room;
}

// Of a session only the hash and the length are each packet's own.
Status RxQueue::choose_compression(const Capabilities& caps, const RxArguments& arguments) {
    const bool able = (caps.compression_formats & MLX5DV_CQE_RES_FORMAT_HASH) != 0;
    const bool timed = (config_.offloads & RTE_ETH_RX_OFFLOAD_TIMESTAMP) != 0;
    compression_ = arguments.compression.value_or(able && !timed);
    if (compression_ && !able) {
        return failure(ENOTSUP,
                       "rxq_cqe_comp_en=1: this device or its driver does not compress "
                       "completions; leave the argument away");
    }
    if (compression_ && timed) {
        return failure(EINVAL,
                       "rxq_cqe_comp_en=1 gives many packets the time of one, which the RX "
                       "timestamp offload excludes; leave one of them away");
    }
    return {};
}

std::string RxQueue::path_name() const {
    return std::string(rx_path_name(path_.kind)) + (compression_ ? ", compressed CQEs" : "");
}

Status RxQueue::create_verbs(const Device& device) {
    if (config_.interrupts) {
        if (Status status = interrupt_.create(device); !status.ok()) {
            return status;
        }
    }
    cq_ = create_completion_queue(device.context(), config_.descriptors, interrupt_.channel(),
                                  compression_ ? MLX5DV_CQE_RES_FORMAT_HASH : 0);
    if (cq_ == nullptr) {
        return failure(errno, "RX queue %u: cannot create a completion queue of %u entries: %s",
                       config_.queue, config_.descriptors, strerror(errno));
    }
    return create_work_queue(device);
}

Status RxQueue::create_work_queue(const Device& device) {
    ibv_wq_init_attr attributes = {};
    attributes.wq_type = IBV_WQT_RQ;
    attributes.max_wr = striding_ ? strides_.geometry().wqes : config_.descriptors;
    attributes.max_sge = segments_;
    attributes.pd = device.pd();
    attributes.cq = cq_.get();
    set_extra(kRxVlan, strips_vlan());
    if (strips_vlan()) {
        attributes.comp_mask |= IBV_WQ_INIT_ATTR_FLAGS;
        attributes.create_flags = IBV_WQ_FLAGS_CVLAN_STRIPPING;
    }
    mlx5dv_wq_init_attr direct = {};
    if (striding_) {
        direct.comp_mask = MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ;
        direct.striding_rq_attrs.single_stride_log_num_of_bytes = strides_.geometry().log_bytes;
        direct.striding_rq_attrs.single_wqe_log_num_of_strides = strides_.geometry().log_strides;
    }
    wq_.reset(mlx5dv_create_wq(device.context(), &attributes, &direct));
    if (wq_ == nullptr) {
        return failure(errno, "RX queue %u: cannot create a work queue of %u receives: %s",
                       config_.queue, attributes.max_wr, strerror(errno));
    }
    return {};
}

Status RxQueue::map_rings() {
    mlx5dv_cq cq = {};
    mlx5dv_rwq rwq = {};
    mlx5dv_obj objects = {};
    objects.cq.in = cq_.get();
    objects.cq.out = &cq;
    objects.rwq.in = wq_.get();
    objects.rwq.out = &rwq;
    if (const int error = mlx5dv_init_obj(&objects, MLX5DV_OBJ_CQ | MLX5DV_OBJ_RWQ); error != 0) {
        return failure(error, "RX queue %u: no direct access to its rings: %s", config_.queue,
                       strerror(error));
    }
    if (cq.cqe_size != sizeof(Cqe) || cq.cqe_cnt < rwq.wqe_cnt ||
        rwq.stride < segments_ * sizeof(DataSegment) ||
        (striding_ &&
         (rwq.stride != sizeof(StridingWqe) || rwq.wqe_cnt != strides_.geometry().wqes))) {
        return failure(
            EPROTO,
            "RX queue %u: unexpected ring layout (CQE %u bytes, %u CQEs, %u WQEs of %u bytes)",
            config_.queue, cq.cqe_size, cq.cqe_cnt, rwq.wqe_cnt, rwq.stride);
    }
    ring_.cqes = static_cast<Cqe*>(cq.buf);
    ring_.cq_mask = cq.cqe_cnt - 1;
    ring_.cq_log = std::countr_zero(cq.cqe_cnt);
    ring_.cq_consumer = 0;
    cq_doorbell_ = DoorbellRecord(cq.dbrec);
    interrupt_.attach(cq);
    ring_.wqes = static_cast<DataSegment*>(rwq.buf);
    strides_.attach(rwq.buf);
    rq_doorbell_ = DoorbellRecord(rwq.dbrec);
    ring_.mask = rwq.wqe_cnt - 1;
    stride_segments_ = rwq.stride / sizeof(DataSegment);
    refill_threshold_ = RTE_MIN(kRefillBatch, rwq.wqe_cnt / 4);
    ring_.consumer = ring_.producer = ring_.ready = 0;
    session_.reserve(cq.cqe_cnt);
    ring_.mbufs = static_cast<rte_mbuf**>(
        rte_zmalloc_socket("mlx5raw_rx", sizeof(rte_mbuf*) * rwq.wqe_cnt * segments_,
                           RTE_CACHE_LINE_SIZE, config_.socket));
    if (ring_.mbufs == nullptr) {
        return failure(ENOMEM, "RX queue %u: no memory for %u descriptors; give EAL more (-m)",
                       config_.queue, rwq.wqe_cnt);
    }
    return {};
}

void RxQueue::destroy() {
    if (running_) {
        if (Status status = stop(); !status.ok()) {
            MLX5RAW_LOG(ERR, "%s", status.message.c_str());
            running_ = false;
        }
    }
    wq_.reset();
    cq_.reset();
    strides_.destroy();
    interrupt_.destroy();
    if (ring_.mbufs != nullptr) {
        free_mbufs();  // what a stop that failed left to the device
    }
    rte_free(ring_.mbufs);
    ring_.mbufs = nullptr;
}

// A WQ takes receives only when it is RDY. The change from RESET zeroes the
// doorbell record, and libmlx5 cleans the completion queue with a consumer index
// of its own, so ours is written again before a receive is posted.
Status RxQueue::start() {
    restore_completion_index();
    if (Status status = set_state(IBV_WQS_RDY); !status.ok()) {
        return status;
    }
    restore_completion_index();
    running_ = true;
    if (Status status = fill(); !status.ok()) {
        if (Status undone = stop(); !undone.ok()) {
            MLX5RAW_LOG(ERR, "%s", undone.message.c_str());
        }
        return status;
    }
    return {};
}

Status RxQueue::stop() {
    Status status = set_state(IBV_WQS_RESET);
    if (!status.ok()) {
        return status;
    }
    running_ = false;
    drain_completions();
    free_mbufs();
    return status;
}

// Lengths never change and the key rarely does: they are written here, for all.
Status RxQueue::fill() {
    memory_.attach(table_);
    if (striding_) {
        if (!strides_.fill(ring_)) {
            return failure(ENOMEM,
                           "RX queue %u: packets that the application holds keep its buffers; "
                           "free them before the queue starts again",
                           config_.queue);
        }
        ring_doorbells();
        return {};
    }
    pinned_ = (rte_pktmbuf_priv_flags(ring_.pool) & RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF) != 0;
    ring_.buffer_offset =
        sizeof(rte_mbuf) + rte_pktmbuf_priv_size(ring_.pool) + RTE_PKTMBUF_HEADROOM;
    const Be32 key = table_->sole_key(ring_.pool);
    one_key_ = segments_ == 1 && stride_segments_ == 1 && !pinned_ && key.raw != kNoLkey.raw;
    for (uint32_t slot = 0; slot <= ring_.mask; ++slot) {
        for (uint32_t i = 0; i < stride_segments_; ++i) {
            DataSegment& data = ring_.wqes[slot * stride_segments_ + i];
            const bool used = i < segments_;
            data.byte_count = Be32::of(used ? buffer_size(ring_.pool) : 0);
            data.lkey = used ? key : Be32::of(kInvalidLkey);
            data.address = Be64::of(0);
        }
    }
    memcpy(&ring_.segment_head, ring_.wqes, sizeof(ring_.segment_head));
    ring_.consumer = ring_.producer = 0;
    if (segments_ == 1) {
        refill_single();
    } else {
        refill_scatter();
    }
    if (ring_.producer != ring_.mask + 1) {
        return failure(ENOMEM,
                       "RX queue %u: mempool %s has too few free buffers for %u descriptors of "
                       "%u buffers; make it larger",
                       config_.queue, ring_.pool->name, ring_.mask + 1, segments_);
    }
    ring_doorbells();
    return {};
}

Status RxQueue::set_vlan_strip(bool on) {
    if (wq_ != nullptr) {
        // Packets that were stripped before a change to "off" may still wait, so the tag
        // goes on being reported.
        if (on) {
            set_extra(kRxVlan, true);
        }
        ibv_wq_attr attributes = {};
        attributes.attr_mask = IBV_WQ_ATTR_FLAGS;
        attributes.flags_mask = IBV_WQ_FLAGS_CVLAN_STRIPPING;
        attributes.flags = on ? IBV_WQ_FLAGS_CVLAN_STRIPPING : 0;
        if (const int error = ibv_modify_wq(wq_.get(), &attributes); error != 0) {
            const int code = error < 0 ? -error : error;
            return failure(code, "RX queue %u: VLAN stripping cannot be changed: %s", config_.queue,
                           strerror(code));
        }
    }
    config_.offloads = on ? config_.offloads | RTE_ETH_RX_OFFLOAD_VLAN_STRIP
                          : config_.offloads & ~RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
    return {};
}

uint32_t RxQueue::used_descriptors() const {
    uint32_t used = waiting_packets();
    uint32_t index = ring_.cq_consumer;
    while (index - ring_.cq_consumer <= ring_.cq_mask) {
        const Next next = completion_at(index);
        if (next == Next::kNothing) {
            break;
        }
        const Cqe& cqe = ring_.cqes[index & ring_.cq_mask];
        const uint32_t packets = next == Next::kSession ? cqe.byte_count.get() : 1;
        used += packets;
        index += packets;
    }
    return used;
}

std::string RxQueue::describe() const {
    char text[256];
    snprintf(text, sizeof(text),
             "rxq %u: wqn 0x%x %s descriptors %u segments %u posted %u consumer %u producer %u "
             "cq_consumer %u path %s",
             config_.queue, wq_ != nullptr ? wq_->wq_num : 0, running_ ? "RDY" : "RESET",
             ring_.mask + 1, segments_, ring_.producer - ring_.consumer, ring_.consumer,
             ring_.producer, ring_.cq_consumer, path_name().c_str());
    return text;
}

}  // namespace tagwire::mlx5raw
