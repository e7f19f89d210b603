// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace tagwire::perf {

// Nearest rank: the smallest sample that at least `percent` of all do not exceed.
// `sorted` is ascending and not empty.
inline double percentile(const std::vector<double>& sorted, double percent) {
    const double rank = std::ceil(percent * static_cast<double>(sorted.size()) / 100.0);
    const auto index = static_cast<size_t>(std::max(rank, 1.0)) - 1;
    return sorted[std::min(index, sorted.size() - 1)];
}

}  // namespace tagwire::perf
