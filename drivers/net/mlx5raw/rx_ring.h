// SPDX-License-Identifier: BSD-3-Clause
// What the receive paths of one queue share: its rings and positions, and nothing
// with code in it. The vector paths are compiled for other processors, and a function
// of this header that the linker shared among the files would not run everywhere.
//
// Ring counters run freely; position = counter & mask. The slots from consumer to
// producer hold posted mbufs.
#pragma once

#include <rte_common.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <cstdint>

#include "drivers/net/mlx5raw/cqe_class.h"
#include "drivers/net/mlx5raw/prm.h"

namespace tagwire::mlx5raw {

struct RxCounters {
    uint64_t packets = 0;
    uint64_t bytes = 0;
    uint64_t sessions = 0;          // of compressed completions
    uint64_t no_mbuf = 0;           // refills that the mempool could not serve
    uint64_t no_stride_buffer = 0;  // WQEs whose packets were copied for want of another buffer
    uint64_t errors = 0;            // error completions
    uint64_t flushed = 0;           // of those, receives flushed behind an error
    uint64_t recoveries = 0;        // ERR -> RESET -> RDY
    uint64_t recovery_failures = 0;
};

// What some queues report of a packet beside what its class says.
enum RxExtra : uint8_t {
    kRxVlan = 1,  // the tag that the device stripped
    kRxMark = 2,  // marks of flow rules (flow_mark.h)
    kRxTime = 4,  // the device's clock
};

// Where mbufs have the time of their arrival (rte_mbuf_dyn_rx_timestamp_register).
struct RxTimestamp {
    uint16_t field = 0;  // offset in the mbuf
    uint64_t flag = 0;   // zero: not registered
};

struct RxRing {
    // Per packet.
    Cqe* cqes = nullptr;
    rte_mbuf** mbufs = nullptr;
    const CqeClass* classes = nullptr;
    uint32_t cq_consumer = 0;
    uint32_t cq_mask = 0;
    uint32_t cq_log = 0;
    uint32_t consumer = 0;
    uint32_t producer = 0;
    uint32_t mask = 0;
    uint32_t ready = 0;       // mbufs from consumer on that a session has filled in
    uint8_t extras = 0;       // RxExtra
    uint16_t time_field = 0;  // offset in the mbuf, with kRxTime
    RxCounters counters;

    // Per refill, of queues with one buffer per packet out of one memory region.
    rte_mempool* pool = nullptr;
    DataSegment* wqes = nullptr;
    uint64_t segment_head = 0;   // byte count and key of every data segment, as in memory
    uint32_t buffer_offset = 0;  // from the mbuf to its data
};

// Takes packets until the next completion is not there or is no plain packet.
using RxDecode = uint16_t (*)(RxRing& ring, rte_mbuf** packets, uint16_t count);
// Posts `batch` fresh buffers from producer on, which do not wrap; false when the pool
// has too few.
using RxRefill = bool (*)(RxRing& ring, uint32_t batch);

// Fills in the mbufs of the compressed session at cq_consumer: they are `ready`, and the
// entries of the session are free.
using RxExpand = void (*)(RxRing& ring);

uint16_t rx_decode_scalar(RxRing& ring, rte_mbuf** packets, uint16_t count);
bool rx_refill_scalar(RxRing& ring, uint32_t batch);
uint16_t rx_decode_avx2(RxRing& ring, rte_mbuf** packets, uint16_t count);
bool rx_refill_avx2(RxRing& ring, uint32_t batch);
uint16_t rx_decode_avx512(RxRing& ring, rte_mbuf** packets, uint16_t count);
bool rx_refill_avx512(RxRing& ring, uint32_t batch);

void rx_expand_scalar(RxRing& ring);
void rx_expand_avx2(RxRing& ring);
void rx_expand_avx512(RxRing& ring);

// Sets what `extras` says, after the fields of the class. `step` is 1 when each mbuf has
// an entry of its own, 0 when all have the same.
void rx_report_extras(const RxRing& ring, const Cqe* cqe, uint32_t step, rte_mbuf* const* mbufs,
                      uint32_t count);

// Parts of a session. `first` counts packets from the title.
const MiniCqe* rx_mini_array(const RxRing& ring, uint32_t title, uint32_t first);
void rx_expand_some(RxRing& ring, const Cqe& title, const MiniCqe* minis, uint32_t first,
                    uint32_t count);
void rx_release_entries(RxRing& ring, uint32_t first, uint32_t count);

}  // namespace tagwire::mlx5raw
