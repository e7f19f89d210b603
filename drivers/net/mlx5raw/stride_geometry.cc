// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/stride_geometry.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <bit>
#include <cerrno>

namespace tagwire::mlx5raw {
namespace {

constexpr uint32_t kUsualLogStrides = 6;
constexpr uint32_t kUsualLogBytes = 11;
constexpr uint32_t kUsuallyCopied = 128;

Status choose_bytes(const RxArguments& arguments, const StridingLimits& limits, uint32_t frame_size,
                    uint32_t& out) {
    const uint32_t needed = frame_size + RTE_PKTMBUF_HEADROOM;
    const auto fitting = static_cast<uint32_t>(std::countr_zero(std::bit_ceil(needed)));
    out = arguments.log_stride_bytes.value_or(
        std::max({fitting, limits.min_log_bytes, std::min(kUsualLogBytes, limits.max_log_bytes)}));
    if (arguments.log_stride_bytes && (out < limits.min_log_bytes || out > limits.max_log_bytes)) {
        return failure(EINVAL, "mprq_log_stride_size=%u: this device takes %u to %u", out,
                       limits.min_log_bytes, limits.max_log_bytes);
    }
    if (out > limits.max_log_bytes) {
        return failure(EINVAL,
                       "mprq_en=1: a frame of %u bytes with its headroom does not fit the largest "
                       "stride of this device (%u bytes); lower the MTU or leave mprq_en away",
                       frame_size, 1u << limits.max_log_bytes);
    }
    if (out < fitting) {
        return failure(EINVAL,
                       "mprq_log_stride_size=%u: a frame of %u bytes and a headroom of %u need %u",
                       out, frame_size, RTE_PKTMBUF_HEADROOM, fitting);
    }
    return {};
}

Status choose_count(const RxArguments& arguments, const StridingLimits& limits,
                    uint32_t descriptors, StrideGeometry& out) {
    // Two WQEs at least: one is filled while the other is emptied.
    const auto most = static_cast<uint32_t>(std::countr_zero(descriptors)) - 1;
    out.log_strides = arguments.log_strides.value_or(std::clamp(
        std::min(kUsualLogStrides, most), limits.min_log_strides, limits.max_log_strides));
    if (out.log_strides < limits.min_log_strides || out.log_strides > limits.max_log_strides) {
        return failure(EINVAL, "mprq_log_stride_num=%u: this device takes %u to %u",
                       out.log_strides, limits.min_log_strides, limits.max_log_strides);
    }
    if (out.log_strides > most) {
        return failure(EINVAL,
                       "mprq_log_stride_num=%u: %u descriptors make less than two buffers of %u "
                       "strides; use more descriptors or fewer strides",
                       out.log_strides, descriptors, out.strides());
    }
    out.wqes = descriptors >> out.log_strides;
    return {};
}

}  // namespace

Status choose_strides(const RxArguments& arguments, const StridingLimits& limits,
                      uint32_t frame_size, uint32_t descriptors, uint32_t room,
                      StrideGeometry& out) {
    if (limits.max_log_strides == 0) {
        return failure(ENOTSUP,
                       "mprq_en=1: this device has no striding receive queues; leave it away");
    }
    if (Status status = choose_bytes(arguments, limits, frame_size, out.log_bytes); !status.ok()) {
        return status;
    }
    if (Status status = choose_count(arguments, limits, descriptors, out); !status.ok()) {
        return status;
    }
    if (room < RTE_ALIGN_CEIL(frame_size, kCopyBlock)) {
        return failure(EINVAL,
                       "mprq_en=1: a frame of %u bytes, rounded up to %u, must fit an mbuf of the "
                       "pool (%u), because packets are copied when buffers run out; use larger "
                       "mbufs",
                       frame_size, kCopyBlock, room);
    }
    out.most_copied = arguments.most_copied.value_or(kUsuallyCopied);
    return {};
}

}  // namespace tagwire::mlx5raw
