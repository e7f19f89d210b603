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

    // Takes the session at cq_consumer off the completion queue.
    void open(RxRing& ring);
    // What the packets have in common, and what each has for itself, from the next one on.
    const Cqe& title() const { return cqe_; }
    const MiniCqe* minis() const { return &minis_[next_]; }
    // Passes over packets; the next one begins at `stride` (of a striding ring).
    void consume(uint32_t count, uint32_t stride) {
        next_ += count;
        cqe_.wqe_counter = Be16::of(static_cast<uint16_t>(stride));
    }

    // The next packet as if it had an entry of its own. When empty, opens a session
    // first.
    const Cqe& next(RxRing& ring);

  private:
    Cqe cqe_ = {};
    uint32_t next_ = 0;
    uint32_t count_ = 0;
    std::vector<MiniCqe> minis_;
};

}  // namespace tagwire::mlx5raw
