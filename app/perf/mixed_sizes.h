// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace tagwire::perf {

// The length of each message of a file: spread evenly over the orders of magnitude
// from 1 byte to max_message, the same for the same seed.
class MixedSizes {
  public:
    MixedSizes(uint64_t seed, uint64_t max_message) : state_(seed), max_message_(max_message) {}
    uint64_t next(uint64_t left) noexcept;

  private:
    uint64_t state_;
    uint64_t max_message_;
};

}  // namespace tagwire::perf
