// SPDX-License-Identifier: BSD-3-Clause
// A receive queue: one work queue and its own completion queue.
//
// Ring counters run freely; position = counter & mask. The slots from consumer_ to
// producer_ hold posted mbufs.
#pragma once

#include <rte_common.h>
#include <rte_mbuf.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "drivers/net/mlx5raw/cqe_class.h"
#include "drivers/net/mlx5raw/device.h"
#include "drivers/net/mlx5raw/memory.h"
#include "drivers/net/mlx5raw/prm.h"
#include "drivers/net/mlx5raw/status.h"
#include "drivers/net/mlx5raw/verbs.h"

namespace tagwire::mlx5raw {

struct RxCounters {
    uint64_t packets = 0;
    uint64_t bytes = 0;
    uint64_t no_mbuf = 0;     // refills that the mempool could not serve
    uint64_t errors = 0;      // error completions
    uint64_t flushed = 0;     // of those, receives flushed behind an error
    uint64_t recoveries = 0;  // ERR -> RESET -> RDY
    uint64_t recovery_failures = 0;
};

// data_off, refcnt, nb_segs and port of an mbuf, written as one word.
inline void write_rearm(rte_mbuf* mbuf, uint64_t value) {
    static_assert(offsetof(rte_mbuf, port) == offsetof(rte_mbuf, data_off) + 6);
    auto* bytes = reinterpret_cast<uint8_t*>(mbuf) + offsetof(rte_mbuf, data_off);
    *reinterpret_cast<uint64_t*>(bytes) = value;
}

// What rx_queue_setup was given.
struct RxQueueConfig {
    uint16_t queue = 0;
    uint16_t port_id = 0;
    uint32_t descriptors = 0;  // power of two
    int socket = 0;
    rte_mempool* pool = nullptr;
    uint64_t offloads = 0;
    bool deferred_start = false;
};

class alignas(RTE_CACHE_LINE_SIZE) RxQueue {
  public:
    explicit RxQueue(const RxQueueConfig& config) : config_(config) {}
    ~RxQueue();
    RxQueue(const RxQueue&) = delete;
    RxQueue& operator=(const RxQueue&) = delete;

    // Creates the work queue (RESET), able to take frames of `frame_size` bytes.
    Status create(const Device& device, MemoryTable& memory, const CqeClassTable& classes,
                  uint32_t frame_size);
    void destroy();

    Status start();  // fills the ring, RESET -> RDY
    Status stop();   // RDY -> RESET, mbufs back to the pool

    // From now on packets carry the marks of flow rules (flow_mark.h). May be called
    // while another thread polls the queue.
    void report_flow_marks(bool on) { flow_marks_ = on; }

    const RxQueueConfig& config() const { return config_; }
    RxCounters counters() const { return counters_; }
    ibv_wq* wq() const { return wq_.get(); }
    bool running() const { return running_; }
    uint32_t segments_per_packet() const { return segments_; }
    uint32_t descriptors() const { return mask_ + 1; }
    uint32_t used_descriptors() const;
    uint32_t completion_index() const { return cq_consumer_; }
    std::string describe() const;

    // Bytes that one posted buffer takes.
    static uint32_t buffer_size(rte_mempool* pool) {
        return rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;
    }

    static uint16_t burst_single(void* queue, rte_mbuf** packets, uint16_t count);
    static uint16_t burst_scatter(void* queue, rte_mbuf** packets, uint16_t count);

  private:
    static constexpr uint32_t kRefillBatch = 32;

    enum class Next { kPacket, kNothing, kError };
    Next classify(uint8_t op_own) const;

    void ring_doorbells();
    void replenish();
    void refill_single();
    bool refill_batch(uint32_t batch);
    void refill_scatter();
    bool refill_packet(uint32_t slot);
    void write_scatter_list(uint32_t slot);
    void post(uint32_t slot, uint32_t segment, rte_mbuf* mbuf);
    rte_mbuf* take_chain(uint32_t slot, uint32_t length);

    // Cold: rx_ring.cc and rx_recover.cc.
    Status create_verbs(const Device& device);
    Status map_rings();
    Status fill();
    void drain_completions();
    void restore_completion_index();
    void compact_mbufs();
    void free_mbufs();
    Status set_state(ibv_wq_state state);
    void recover();

    // Per packet.
    Cqe* cqes_ = nullptr;
    rte_mbuf** mbufs_ = nullptr;  // segments_ entries per slot
    const CqeClass* classes_ = nullptr;
    uint32_t cq_consumer_ = 0;
    uint32_t cq_mask_ = 0;
    uint32_t cq_log_ = 0;
    uint32_t consumer_ = 0;
    uint32_t producer_ = 0;
    uint32_t mask_ = 0;
    uint64_t rearm_ = 0;  // data_off, refcnt, nb_segs, port
    bool flow_marks_ = false;
    RxCounters counters_;

    // Per burst.
    DoorbellRecord cq_doorbell_;
    DoorbellRecord rq_doorbell_;
    DataSegment* wqes_ = nullptr;
    rte_mempool* pool_ = nullptr;
    uint32_t buffer_offset_ = 0;  // from the mbuf to its data, unless pinned_
    uint32_t segments_ = 1;
    uint32_t stride_segments_ = 1;  // data segments that a WQE has room for
    uint32_t refill_threshold_ = kRefillBatch;
    bool pinned_ = false;   // buffers lie outside of the mbufs
    bool one_key_ = false;  // the whole pool has one lkey, written once
    MemoryCache memory_;

    // Cold.
    RxQueueConfig config_;
    MemoryTable* table_ = nullptr;
    bool running_ = false;
    uint8_t port_ = 0;
    CompletionQueue cq_;
    WorkQueue wq_;
};

}  // namespace tagwire::mlx5raw
