// SPDX-License-Identifier: BSD-3-Clause
// A transmit queue: the send side of a raw packet queue pair and its completion
// queue.
//
// Two rings run side by side: WQEs in basic blocks of 64 bytes, and the mbuf
// segments that they point to (packets that are copied into a WQE go back at once). A
// completion is asked for once in a while; pending_ remembers how far each one reaches
// in both rings.
//
//   tx_burst     burst functions                     tx_session   multi-packet sends
//   tx_singles   a WQE per simple packet
//   tx_send      a packet with a WQE of its own      tx_complete  doorbell, completions
//   tx_prepare   checks before a burst
//   tx_kernel_*  vector loops                        tx_recover   after an error
#pragma once

#include <rte_common.h>
#include <rte_mbuf.h>

#include <cstdint>
#include <string>

#include "drivers/net/mlx5raw/device.h"
#include "drivers/net/mlx5raw/memory.h"
#include "drivers/net/mlx5raw/prm.h"
#include "drivers/net/mlx5raw/status.h"
#include "drivers/net/mlx5raw/tx_kernel.h"
#include "drivers/net/mlx5raw/tx_mode.h"
#include "drivers/net/mlx5raw/verbs.h"

namespace tagwire::mlx5raw {

struct TxCounters {
    uint64_t packets = 0;
    uint64_t bytes = 0;
    uint64_t doorbells = 0;
    uint64_t completions = 0;
    uint64_t ring_full = 0;          // bursts cut short because the ring was full
    uint64_t too_short = 0;          // dropped: shorter than an Ethernet header
    uint64_t too_many_segments = 0;  // dropped: more than a WQE has room for
    uint64_t bad_tso = 0;            // dropped: header, segment size or length of a large send
    uint64_t no_key = 0;             // dropped: memory that cannot be registered
    uint64_t errors = 0;             // error completions
    uint64_t error_dropped = 0;      // packets given up by a recovery
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

    Status create(const Device& device, MemoryTable& memory, const TxMode& mode);  // QP in RESET
    void destroy();
    Status start();  // RESET -> RTS
    Status stop();   // -> RESET, mbufs back to their pools

    const TxQueueConfig& config() const { return config_; }
    TxCounters counters() const { return counters_; }
    ibv_qp* qp() const { return qp_.get(); }
    bool running() const { return running_; }
    uint32_t descriptors() const { return segment_mask_ + 1; }
    // Mbufs that the device may still read, or blocks, whichever are more.
    uint32_t used_descriptors() const;
    std::string describe() const;

    // Frees what the device is done with, `limit` mbufs at most; returns how many. Asks
    // for the completion of what was sent without one, so that a later call frees that.
    uint32_t cleanup(uint32_t limit);

    static TxBurst burst_of(TxPath path);
    static uint16_t prepare(void* queue, rte_mbuf** packets, uint16_t count);

  private:
    // Where both rings stood when a completion was requested.
    struct Mark {
        uint32_t block;
        uint32_t segment;
    };
    // What a burst has written so far.
    struct Written {
        uint32_t last_block = 0;  // where its last WQE starts
        uint32_t packets = 0;
        uint64_t bytes = 0;
    };
    enum class Outcome : uint8_t { kSent, kDropped, kFull };

    // tx_burst.cc
    template <bool kOffloads, auto kWrite>
    static uint16_t burst(void* queue, rte_mbuf** packets, uint16_t count);
    static uint16_t burst_send_inline(void* queue, rte_mbuf** packets, uint16_t count);
    bool begin_burst();
    uint16_t end_burst(const Written& written, uint32_t done, uint16_t count);
    uint32_t free_blocks() const { return consumer_ + mask_ + 1 - producer_; }
    uint32_t free_segments() const {
        return segment_consumer_ + segment_mask_ + 1 - segment_producer_;
    }

    // tx_singles.h: a WQE for each of the first packets, as far as they are simple.
    template <bool kOffloads, bool kInlineHeader>
    uint32_t write_singles(rte_mbuf** packets, uint32_t count, Written& written);

    // tx_session.h: as many of the first packets in one WQE as fit.
    template <bool kOffloads>
    uint32_t write_session(rte_mbuf** packets, uint32_t count, Written& written);
    template <bool kOffloads>
    bool send_one(rte_mbuf* packet);
    template <bool kOffloads>
    uint32_t write_inline_session(rte_mbuf** packets, uint32_t count, Written& written);
    template <bool kOffloads>
    uint32_t write_pointers(uint8_t* segments, rte_mbuf** packets, rte_mbuf** kept, uint32_t count,
                            uint64_t flags, uint64_t& bytes);
    void close_session(uint32_t octowords, uint64_t flags, uint32_t packets, Written& written);

    // tx_send.cc: any packet, in a WQE of its own.
    Outcome send_alone(rte_mbuf* packet, Written& written);
    bool good_large_send(const rte_mbuf& packet) const;
    Outcome drop(rte_mbuf* packet, uint64_t TxCounters::*counter);

    // tx_prepare.cc: zero, or why the packet cannot be sent.
    int check_packet(const rte_mbuf& packet) const;

    // tx_complete.cc
    // The next completion, or an error, is there.
    bool has_completion() const {
        const uint8_t op_own =
            *const_cast<const volatile uint8_t*>(&cqes_[cq_consumer_ & cq_mask_].op_own);
        return ((op_own ^ cq_consumer_ >> cq_log_) & kCqeOwnerMask) == 0 &&
               op_own >> 4 != kCqeInvalid;
    }
    void post(uint32_t last_block);
    void ask_for_completion();
    void ring_doorbell(ControlSegment& control);
    uint32_t reap(uint32_t limit = UINT32_MAX);
    void release(uint32_t to_segment);
    void release_now(rte_mbuf** mbufs, uint32_t count);

    // Cold: txq.cc and tx_recover.cc.
    Status create_verbs(const Device& device);
    Status map_rings();
    void choose_loops();
    Status to_ready();
    Status to_reset();
    void reset_rings();
    void skip_completions();
    void restore_completion_index();
    void recover();
    uint32_t count_packets(uint32_t from_block) const;

    // Per packet.
    BasicBlock* wqes_ = nullptr;
    rte_mbuf** mbufs_ = nullptr;
    uint32_t mask_ = 0;          // of the ring of blocks
    uint32_t segment_mask_ = 0;  // of the ring of mbufs
    uint32_t producer_ = 0;
    uint32_t consumer_ = 0;
    uint32_t segment_producer_ = 0;
    uint32_t segment_consumer_ = 0;
    uint32_t qpn_shifted_ = 0;
    uint32_t inline_packet_ = 0;
    WritePointers vector_write_ = nullptr;  // nullptr: the scalar loop does it all
    AllSimple vector_simple_ = nullptr;
    MemoryCache memory_;

    // Per burst.
    alignas(RTE_CACHE_LINE_SIZE) const Cqe* cqes_ = nullptr;
    uint32_t cq_consumer_ = 0;
    uint32_t cq_mask_ = 0;
    uint32_t cq_log_ = 0;
    uint32_t threshold_ = 0;     // blocks or segments per requested completion
    uint32_t segment_done_ = 0;  // the device is through with mbufs up to here
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
    TxMode mode_;
    TxQueueConfig config_;
    MemoryTable* table_ = nullptr;
    uint8_t port_ = 1;
    CompletionQueue cq_;
    QueuePair qp_;
};

}  // namespace tagwire::mlx5raw
