// SPDX-License-Identifier: BSD-3-Clause
// How many packets may be in the network. The seam for delay-based control: one
// call per acknowledgement, per loss event and per timeout. For now the window
// halves on loss and grows as in RFC 5681.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tagwire::transport {

class Congestion {
  public:
    static constexpr uint32_t kInitial = 64;
    static constexpr uint32_t kMinimum = 4;

    void reset(uint32_t maximum) noexcept {
        maximum_ = maximum;
        window_ = std::min(kInitial, maximum);
        threshold_ = maximum;
        partial_ = 0;
    }

    uint32_t window() const noexcept { return window_; }

    void on_ack(uint32_t packets) noexcept {
        if (window_ == maximum_) [[likely]] {
            return;
        }
        grow(packets);
    }

    void on_loss() noexcept {  // once per round trip
        window_ = threshold_ = std::max(window_ / 2, std::min(kMinimum, maximum_));
        partial_ = 0;
    }

    void on_timeout() noexcept {
        threshold_ = std::max(window_ / 2, std::min(kMinimum, maximum_));
        window_ = 1;
        partial_ = 0;
    }

  private:
    void grow(uint32_t packets) noexcept {
        if (window_ < threshold_) {
            window_ = std::min(window_ + packets, maximum_);
            return;
        }
        partial_ += packets;
        if (partial_ >= window_) {
            partial_ -= window_;
            window_ = std::min(window_ + 1, maximum_);
        }
    }

    uint32_t window_ = kInitial;
    uint32_t threshold_ = kInitial;
    uint32_t maximum_ = kInitial;
    uint32_t partial_ = 0;
};

}  // namespace tagwire::transport
