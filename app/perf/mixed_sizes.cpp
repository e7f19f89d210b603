// SPDX-License-Identifier: BSD-3-Clause
#include "mixed_sizes.h"

#include <algorithm>
#include <cmath>

namespace tagwire::perf {

uint64_t MixedSizes::next(uint64_t left) noexcept {
    // Knuth's MMIX generator; its upper bits are the good ones.
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    const double unit = static_cast<double>(state_ >> 11) / static_cast<double>(uint64_t{1} << 53);
    const double length = std::exp(unit * std::log(static_cast<double>(max_message_)));
    return std::clamp<uint64_t>(static_cast<uint64_t>(std::lround(length)), 1,
                                std::min(left, max_message_));
}

}  // namespace tagwire::perf
