// SPDX-License-Identifier: BSD-3-Clause
// A transmit queue: the send side of a raw packet queue pair and its completion
// queue.
//
// Two rings run side by side: WQEs in basic blocks of 64 bytes, and the mbuf
// segments that they point to. A completion is asked for once in a while; pending_
// remembers how far each one reaches in both rings.
#pragma once

#include <rte_common.h>
#include <rte_mbuf.h>

#include <cstdint>
#include <string>

#include "drivers/net/mlx5raw/device.h"
#include "drivers/net/mlx5raw/memory.h"
#include "drivers/net/mlx5raw/prm.h"
#include "drivers/net/mlx5raw/status.h"
#include "drivers/net/mlx5raw/verbs.h"

namespace tagwire::mlx5raw {

struct TxCounters {
    uint64_t packets = 0;
    uint64_t bytes = 0;
    uint64_t doorbells = 0;
    uint64_t completions = 0;
    uint64_t ring_full = 0;      // bursts cut short because the ring was full
    uint64_t bad_packet = 0;     // dropped: too short, or too many segments
    uint64_t no_key = 0;         // dropped: memory that cannot be registered
    uint64_t errors = 0;         // error completions
    uint64_t error_dropped = 0;  // buffers given up by a recovery
    uint64_t recoveries = 0;
    uint64_t recovery_failures = 0;
};

struct TxQueueConfig {
    uint16_t queue = 0;
    uint16_t port_id = 0;
    uint32_t descriptors = 0;  // power of two
    int socket = 0;
    uint64_t offloads = 0;  // of the queue and of the port
    bool deferred_start = false;
};

using TxBurst = uint16_t (*)(void*, rte_mbuf**, uint16_t);

class alignas(RTE_CACHE_LINE_SIZE) TxQueue {
  public:
    explicit TxQueue(const TxQueueConfig& config) : config_(config) {}
    ~TxQueue();
    TxQueue(const TxQueue&) = delete;
    TxQueue& operator=(const TxQueue&) = delete;

    Status create(const Device& device, MemoryTable& memory);  // QP in RESET
    void destroy();
    Status start();  // RESET -> RTS
    Status stop();   // -> RESET, mbufs back to their pools

    const TxQueueConfig& config() const { return config_; }
    TxCounters counters() const { return counters_; }
    ibv_qp* qp() const { return qp_.get(); }
    bool running() const { return running_; }
    uint32_t descriptors() const { return mask_ + 1; }
    uint32_t used_descriptors() const { return producer_ - consumer_; }
    std::string describe() const;

    // Frees what the device is done with.
    uint32_t reap();

    // The burst function for the offloads and the inline mode in use.
    static TxBurst choose_burst(uint64_t offloads, uint32_t inline_size, const char*& name);

  private:
    // Where both rings stood when a completion was requested.
    struct Mark {
        uint32_t block;
        uint32_t segment;
    };

    template <bool kSegments, bool kChecksum, bool kInline>
    static uint16_t burst(void* queue, rte_mbuf** packets, uint16_t count);
    template <bool kInline>
    bool write_single(const rte_mbuf& packet, uint8_t checksum, uint32_t block);
    template <bool kInline>
    uint32_t write_chain(rte_mbuf& packet, uint8_t checksum);
    void post(uint32_t last_block);
    void release(uint32_t to_segment);
    void release_fast(uint32_t to_segment);

    // Cold: txq.cc and tx_recover.cc.
    Status create_verbs(const Device& device);
    Status map_rings();
    Status to_ready();
    Status to_reset();
    void reset_rings();
    void skip_completions();
    void restore_completion_index();
    void recover();

    // Per packet.
    BasicBlock* wqes_ = nullptr;
    rte_mbuf** mbufs_ = nullptr;
    uint32_t mask_ = 0;  // of both rings
    uint32_t producer_ = 0;
    uint32_t consumer_ = 0;
    uint32_t segment_producer_ = 0;
    uint32_t segment_consumer_ = 0;
    uint32_t qpn_shifted_ = 0;
    MemoryCache memory_;

    // Per burst.
    alignas(RTE_CACHE_LINE_SIZE) const Cqe* cqes_ = nullptr;
    uint32_t cq_consumer_ = 0;
    uint32_t cq_mask_ = 0;
    uint32_t cq_log_ = 0;
    uint32_t threshold_ = 0;  // blocks or segments per requested completion
    Mark requested_ = {};
    Mark* pending_ = nullptr;
    uint32_t pending_head_ = 0;
    uint32_t pending_tail_ = 0;
    DoorbellRecord cq_doorbell_;
    DoorbellRecord sq_doorbell_;
    volatile uint64_t* doorbell_register_ = nullptr;
    bool fast_free_ = false;
    bool running_ = false;
    TxCounters counters_;

    // Cold.
    TxQueueConfig config_;
    MemoryTable* table_ = nullptr;
    uint8_t port_ = 1;
    CompletionQueue cq_;
    QueuePair qp_;
};

}  // namespace tagwire::mlx5raw
