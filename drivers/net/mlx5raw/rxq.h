// SPDX-License-Identifier: BSD-3-Clause
// A receive queue: one work queue and its own completion queue.
#pragma once

#include <rte_common.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <cstdint>
#include <string>

#include "drivers/net/mlx5raw/device.h"
#include "drivers/net/mlx5raw/memory.h"
#include "drivers/net/mlx5raw/prm.h"
#include "drivers/net/mlx5raw/rx_arguments.h"
#include "drivers/net/mlx5raw/rx_interrupt.h"
#include "drivers/net/mlx5raw/rx_path.h"
#include "drivers/net/mlx5raw/rx_ring.h"
#include "drivers/net/mlx5raw/rx_session.h"
#include "drivers/net/mlx5raw/status.h"
#include "drivers/net/mlx5raw/stride_ring.h"
#include "drivers/net/mlx5raw/verbs.h"

namespace tagwire::mlx5raw {

// What rx_queue_setup was given.
struct RxQueueConfig {
    uint16_t queue = 0;
    uint16_t port_id = 0;
    uint32_t descriptors = 0;  // power of two
    int socket = 0;
    rte_mempool* pool = nullptr;
    uint64_t offloads = 0;
    bool deferred_start = false;
    bool interrupts = false;
};

class alignas(RTE_CACHE_LINE_SIZE) RxQueue {
  public:
    explicit RxQueue(const RxQueueConfig& config) : config_(config) {}
    ~RxQueue();
    RxQueue(const RxQueue&) = delete;
    RxQueue& operator=(const RxQueue&) = delete;

    // Creates the work queue (RESET), able to take frames of `frame_size` bytes.
    Status create(const Device& device, MemoryTable& memory, const CqeClassTable& classes,
                  const RxArguments& arguments, const RxTimestamp& timestamp, uint32_t frame_size);
    void destroy();

    Status start();  // fills the ring, RESET -> RDY
    Status stop();   // RDY -> RESET, mbufs back to the pool

    // From now on packets carry the marks of flow rules (flow_mark.h). May be called
    // while another thread polls the queue.
    void report_flow_marks(bool on) { set_extra(kRxMark, on); }

    // Whether the device removes VLAN tags; may change while the queue runs.
    Status set_vlan_strip(bool on);

    const RxQueueConfig& config() const { return config_; }
    RxCounters counters() const { return ring_.counters; }
    ibv_wq* wq() const { return wq_.get(); }
    RxInterrupt& interrupt() { return interrupt_; }
    const RxInterrupt& interrupt() const { return interrupt_; }
    bool running() const { return running_; }
    uint32_t segments_per_packet() const { return segments_; }
    bool striding() const { return striding_; }
    // The longest that the posted buffers take.
    uint32_t largest_frame() const;
    uint32_t descriptors() const { return config_.descriptors; }
    uint32_t used_descriptors() const;
    // Of the next completion; the one before while packets of a session wait.
    uint32_t completion_index() const { return ring_.cq_consumer - (waiting_packets() != 0); }
    RxPathKind path() const { return path_.kind; }
    bool compressed() const { return compression_; }
    std::string path_name() const;
    std::string describe() const;

    // Bytes that one posted buffer takes.
    static uint32_t buffer_size(rte_mempool* pool) {
        return rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;
    }

    static uint16_t burst_single(void* queue, rte_mbuf** packets, uint16_t count);
    static uint16_t burst_scatter(void* queue, rte_mbuf** packets, uint16_t count);
    static uint16_t burst_striding(void* queue, rte_mbuf** packets, uint16_t count);

  private:
    static constexpr uint32_t kRefillBatch = 32;

    enum class Next { kPacket, kSession, kNothing, kError };
    Next completion_at(uint32_t index) const {
        const Cqe& cqe = ring_.cqes[index & ring_.cq_mask];
        const uint8_t op_own = *const_cast<const volatile uint8_t*>(&cqe.op_own);
        const uint8_t owner = (index >> ring_.cq_log) & kCqeOwnerMask;
        if (likely((op_own & kCqeKindMask) == (kCqeResponderSend << 4 | owner))) {
            return Next::kPacket;
        }
        if ((op_own & kCqeOwnerMask) != owner || (op_own >> 4) == kCqeInvalid) {
            return Next::kNothing;
        }
        return (op_own & kCqeKindMask) == (kCqeResponderSend << 4 | kCqeCompressed | owner)
                   ? Next::kSession
                   : Next::kError;
    }
    Next next_completion() const { return completion_at(ring_.cq_consumer); }
    // Plain loads and stores: only control threads change it.
    void set_extra(RxExtra extra, bool on) {
        ring_.extras = static_cast<uint8_t>(on ? ring_.extras | extra : ring_.extras & ~extra);
    }

    // Of a session that is taken off the completion queue.
    uint32_t waiting_packets() const { return ring_.ready + session_.count(); }
    uint32_t plain_completions(uint32_t most) const;
    uint32_t take_strides(rte_mbuf** packets, uint32_t count);
    uint16_t take_burst(Next next, rte_mbuf** packets, uint16_t count);
    uint16_t take_ready(rte_mbuf** packets, uint16_t count);
    bool wants_refill() const {
        return ring_.mask + 1 - (ring_.producer - ring_.consumer) >= refill_threshold_;
    }
    void ring_doorbells();
    void replenish();
    void refill_single();
    bool refill_any_memory(uint32_t batch);
    void refill_scatter();
    bool refill_packet(uint32_t slot);
    void write_scatter_list(uint32_t slot);
    void post(uint32_t slot, uint32_t segment, rte_mbuf* mbuf);
    rte_mbuf* take_chain(uint32_t slot, uint32_t length);

    // Cold: rxq.cc and rx_recover.cc.
    bool strips_vlan() const { return (config_.offloads & RTE_ETH_RX_OFFLOAD_VLAN_STRIP) != 0; }
    Status choose_compression(const Capabilities& caps, const RxArguments& arguments);
    Status choose_buffers(const Device& device, const RxArguments& arguments, uint32_t frame_size);
    Status create_verbs(const Device& device);
    Status create_work_queue(const Device& device);
    Status map_rings();
    Status fill();
    void drain_completions();
    void restore_completion_index();
    void compact_mbufs();
    void free_mbufs();
    Status set_state(ibv_wq_state state);
    void recover();

    RxRing ring_;  // of mbufs: segments_ entries per slot

    // Per burst.
    RxPath path_;
    DoorbellRecord cq_doorbell_;
    DoorbellRecord rq_doorbell_;
    uint32_t segments_ = 1;
    uint32_t stride_segments_ = 1;  // data segments that a WQE has room for
    uint32_t refill_threshold_ = kRefillBatch;
    CqeSession session_;  // of the paths that take packets one by one
    StrideRing strides_;  // with striding_
    bool striding_ = false;
    bool pinned_ = false;   // buffers lie outside of the mbufs
    bool one_key_ = false;  // the whole pool has one lkey, written once
    MemoryCache memory_;

    // Cold.
    RxQueueConfig config_;
    MemoryTable* table_ = nullptr;
    bool running_ = false;
    uint8_t port_ = 0;
    RxInterrupt interrupt_;
    bool compression_ = false;
    CompletionQueue cq_;
    WorkQueue wq_;
};

}  // namespace tagwire::mlx5raw
