// SPDX-License-Identifier: BSD-3-Clause
// Sizes as people type and read them: "64", "4K", "1M"; lists and ranges.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tagwire::perf {

// "8", "64K", "1M", "1G" (binary multiples). Throws Failure (usage).
uint64_t parse_size(const std::string& text);

// A comma list of sizes and ranges: "8,4K" or "1:64K" (powers of two between the two ends).
std::vector<uint64_t> parse_sizes(const std::string& text, uint64_t limit);

std::string format_size(uint64_t bytes);       // "64 B", "4 KiB", "1.5 MiB"
std::string format_duration_ns(double value);  // "812 ns", "7.31 us", "1.2 ms"

}  // namespace tagwire::perf
