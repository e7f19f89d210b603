// SPDX-License-Identifier: BSD-3-Clause
// The completions of a compressed session one by one, for the paths that take packets
// one by one.
#pragma once

#include <cstdint>
#include <vector>

#include "drivers/net/mlx5raw/rx_ring.h"

namespace tagwire::mlx5raw {

class CqeSession {
  public:
    // Room for the largest session of a completion queue.
    void reserve(uint32_t entries) { minis_.resize(entries); }

    bool empty() const { return next_ == count_; }
    uint32_t count() const { return count_ - next_; }
    void clear() { next_ = count_ = 0; }

    // The next packet as if it had an entry of its own. When empty, first takes the
    // session at cq_consumer off the completion queue.
    const Cqe& next(RxRing& ring);

  private:
    void open(RxRing& ring);

    Cqe cqe_ = {};
    uint32_t next_ = 0;
    uint32_t count_ = 0;
    std::vector<MiniCqe> minis_;
};

}  // namespace tagwire::mlx5raw
