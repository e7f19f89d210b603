// SPDX-License-Identifier: BSD-3-Clause
#include "lib/transport/random.h"

#include <sys/random.h>

#include <cstdlib>

namespace tagwire::transport {

uint64_t Random::next() noexcept {
    if (state_ == 0) {
        uint64_t value;
        // Never short for 8 bytes once the pool is initialised: getrandom(2).
        if (getrandom(&value, sizeof(value), 0) != sizeof(value)) {
            std::abort();
        }
        return value;
    }
    // SplitMix64 (Steele, Lea, Flood 2014).
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

}  // namespace tagwire::transport
