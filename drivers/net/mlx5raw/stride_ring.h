// SPDX-License-Identifier: BSD-3-Clause
// The posted buffers of a striding receive queue, and the one that is being emptied.
//
// A packet leaves in place, as an external buffer, when another buffer stands ready for
// the WQE that it came in; otherwise, and when it is short, it is copied. So a WQE can
// always be posted again.
#pragma once

#include <vector>

#include "drivers/net/mlx5raw/rx_ring.h"
#include "drivers/net/mlx5raw/rx_session.h"
#include "drivers/net/mlx5raw/stride_pool.h"

namespace tagwire::mlx5raw {

// PRM, "Striding RQ": a WQE is a segment of link data that a work queue does not use,
// and one data segment.
struct StridingWqe {
    uint8_t next[16];
    DataSegment data;
};
static_assert(sizeof(StridingWqe) == 32);

// byte_count of a completion: bytes, strides taken, and whether these were only skipped
// because the next packet did not fit.
inline constexpr uint32_t kStrideBytesMask = 0xffff;
inline constexpr uint32_t kStridesShift = 16;
inline constexpr uint32_t kStridesMask = 0x7fff;
inline constexpr uint32_t kStrideFiller = 1u << 31;

class StrideRing {
  public:
    Status create(const std::string& owner, const StrideGeometry& geometry, int socket,
                  MemoryTable& table);
    void destroy() { pool_.destroy(); }
    void attach(void* wqes) { wqes_ = static_cast<StridingWqe*>(wqes); }
    const StrideGeometry& geometry() const { return geometry_; }

    // Posts a buffer in every WQE.
    bool fill(RxRing& ring);
    // Gives all back to the pool.
    void clear(RxRing& ring);
    // After RESET the ring begins at zero, and so does a buffer that was used in part.
    void restart(RxRing& ring);

    // Puts packets into mbufs, from the `count` completions at cq_consumer (plain ones that
    // do not wrap) or the next ones of the session. Stops at skipped strides.
    uint32_t deliver(RxRing& ring, rte_mbuf** mbufs, uint32_t count);
    uint32_t deliver(RxRing& ring, CqeSession& session, rte_mbuf** mbufs, uint32_t count);
    // Passes over skipped strides; false when the completion is a packet.
    bool skip(RxRing& ring, const Cqe& cqe);

  private:
    template <typename Source>
    uint32_t deliver_from(RxRing& ring, Source& source, rte_mbuf** mbufs, uint32_t count);
    void begin(RxRing& ring);
    void end_wqe(RxRing& ring);
    void next_wqe(RxRing& ring);
    void post(RxRing& ring, uint32_t slot, StrideBuffer* buffer);

    StridingWqe* wqes_ = nullptr;
    StrideGeometry geometry_;
    std::vector<StrideBuffer*> buffers_;  // by slot
    StrideBuffer* replacement_ = nullptr;
    bool begun_ = false;       // the WQE at the consumer is being emptied
    uint32_t handed_out_ = 0;  // strides of it that packets hold
    StridePool pool_;
};

}  // namespace tagwire::mlx5raw
