// SPDX-License-Identifier: BSD-3-Clause
// Round-trip time and the timeouts derived from it (RFC 6298).
#pragma once

#include <algorithm>
#include <cstdint>

namespace tagwire::transport {

class RttEstimator {
  public:
    void reset() noexcept { *this = RttEstimator{}; }

    void sample(uint64_t rtt_ns) noexcept {
        rtt_ns = std::max<uint64_t>(rtt_ns, 1);
        minimum_ = std::min(minimum_, rtt_ns);
        if (smoothed_ == 0) {
            smoothed_ = rtt_ns;
            variation_ = rtt_ns / 2;
            return;
        }
        const uint64_t error = rtt_ns > smoothed_ ? rtt_ns - smoothed_ : smoothed_ - rtt_ns;
        variation_ += error / 4 - variation_ / 4;
        smoothed_ += rtt_ns / 8 - smoothed_ / 8;
    }

    bool known() const noexcept { return smoothed_ != 0; }
    uint64_t smoothed() const noexcept { return smoothed_; }
    uint64_t minimum() const noexcept { return minimum_; }

    // Without backoff; the caller clamps.
    uint64_t timeout() const noexcept { return smoothed_ + 4 * variation_; }

  private:
    uint64_t smoothed_ = 0;
    uint64_t variation_ = 0;
    uint64_t minimum_ = UINT64_MAX;
};

}  // namespace tagwire::transport
