// SPDX-License-Identifier: BSD-3-Clause
// Connection tags, first PSNs and keys. From the system's generator, or from a
// seed so that a simulation repeats.
#pragma once

#include <cstdint>

namespace tagwire::transport {

class Random {
  public:
    explicit Random(uint64_t seed) noexcept : state_(seed) {}

    uint64_t next() noexcept;

  private:
    uint64_t state_;  // 0: the system's generator
};

}  // namespace tagwire::transport
