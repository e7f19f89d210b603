// SPDX-License-Identifier: BSD-3-Clause
// Striding receive queues: a WQE is a buffer of many strides, and the device puts one
// packet after the other into them. What shape that takes follows from what the user
// said, what the device can, and the frames.
#pragma once

#include <cstdint>

#include "drivers/net/mlx5raw/rx_arguments.h"
#include "drivers/net/mlx5raw/status.h"

namespace tagwire::mlx5raw {

// What the device can (mlx5dv_striding_rq_caps); all zero: it has no such queues.
struct StridingLimits {
    uint32_t min_log_bytes = 0, max_log_bytes = 0;
    uint32_t min_log_strides = 0, max_log_strides = 0;
};

// Packets are copied in blocks of this.
inline constexpr uint32_t kCopyBlock = 64;

struct StrideGeometry {
    uint32_t wqes = 0;
    uint32_t log_strides = 0;  // of a WQE
    uint32_t log_bytes = 0;    // of a stride
    uint32_t most_copied = 0;  // bytes of the packets that are copied out

    uint32_t strides() const { return 1u << log_strides; }
    uint32_t bytes() const { return 1u << log_bytes; }
};

// `room` is what an mbuf of the queue's pool takes. Each packet fits one stride and
// leaves the headroom of the packet in the next one untouched.
Status choose_strides(const RxArguments& arguments, const StridingLimits& limits,
                      uint32_t frame_size, uint32_t descriptors, uint32_t room,
                      StrideGeometry& out);

}  // namespace tagwire::mlx5raw
