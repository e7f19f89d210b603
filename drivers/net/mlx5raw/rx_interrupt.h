// SPDX-License-Identifier: BSD-3-Clause
// Completion events of a receive queue: a descriptor that wakes epoll when a packet
// comes. The completion queue must be armed for each event.
#pragma once

#include <infiniband/mlx5dv.h>

#include <cstdint>

#include "drivers/net/mlx5raw/device.h"
#include "drivers/net/mlx5raw/prm.h"
#include "drivers/net/mlx5raw/status.h"
#include "drivers/net/mlx5raw/verbs.h"

namespace tagwire::mlx5raw {

class RxInterrupt {
  public:
    // The channel comes first: a completion queue is made with it.
    Status create(const Device& device);
    void attach(const mlx5dv_cq& cq);
    // After the completion queue went.
    void destroy() { channel_.reset(); }

    ibv_comp_channel* channel() const { return channel_.get(); }
    int fd() const { return channel_ != nullptr ? channel_->fd : -1; }

    // The next completion from `consumer` (a free-running index) on makes an event; one
    // that is there already makes it at once.
    void arm(uint32_t consumer);

    // Takes the events that came; false when the channel is broken.
    bool take();

  private:
    CompletionChannel channel_;
    DoorbellRecord arm_record_;
    volatile uint64_t* arm_register_ = nullptr;
    uint32_t cqn_ = 0;
    uint32_t sequence_ = 0;  // grows with each event, so that a late arm is told apart
};

}  // namespace tagwire::mlx5raw
