// SPDX-License-Identifier: BSD-3-Clause
#include "sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

#include "failure.h"

namespace tagwire::perf {
namespace {

Failure bad_size(const std::string& text) {
    return Failure(fmt::format("'{}' is no size", text),
                   "give bytes with an optional K, M or G; lists '8,64,4K'; ranges '1:64K'",
                   ExitCode::kUsage);
}

uint64_t multiplier(char suffix) {
    switch (suffix) {
        case 'k':
        case 'K':
            return uint64_t{1} << 10;
        case 'm':
        case 'M':
            return uint64_t{1} << 20;
        case 'g':
        case 'G':
            return uint64_t{1} << 30;
        default:
            return 0;
    }
}

void append_range(uint64_t first, uint64_t last, std::vector<uint64_t>& sizes) {
    for (uint64_t size = first; size < last; size = size == 0 ? 1 : size * 2) {
        sizes.push_back(size);
    }
    sizes.push_back(last);
}

}  // namespace

uint64_t parse_size(const std::string& text) {
    uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{}) {
        throw bad_size(text);
    }
    if (rest == end) {
        return value;
    }
    const uint64_t factor = multiplier(*rest);
    if (factor == 0 || rest + 1 != end || value > UINT64_MAX / factor) {
        throw bad_size(text);
    }
    return value * factor;
}

std::vector<uint64_t> parse_sizes(const std::string& text, uint64_t limit) {
    std::vector<uint64_t> sizes;
    std::istringstream items(text);
    for (std::string item; std::getline(items, item, ',');) {
        const size_t colon = item.find(':');
        const uint64_t first = parse_size(item.substr(0, colon));
        const uint64_t last =
            colon == std::string::npos ? first : parse_size(item.substr(colon + 1));
        if (first > last) {
            throw bad_size(item);
        }
        append_range(first, last, sizes);
    }
    if (sizes.empty()) {
        throw bad_size(text);
    }
    const uint64_t largest = *std::max_element(sizes.begin(), sizes.end());
    if (largest > limit) {
        throw Failure(fmt::format("a message of {} bytes is too long", largest),
                      fmt::format("the limit is {} bytes", limit), ExitCode::kUsage);
    }
    return sizes;
}

std::string format_size(uint64_t bytes) {
    static constexpr std::array<const char*, 4> kUnits{"B", "KiB", "MiB", "GiB"};
    auto value = static_cast<double>(bytes);
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < kUnits.size()) {
        value /= 1024;
        ++unit;
    }
    return value == static_cast<double>(static_cast<uint64_t>(value))
               ? fmt::format("{} {}", static_cast<uint64_t>(value), kUnits[unit])
               : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_duration_ns(double value) {
    if (value < 1e3) {
        return fmt::format("{:.0f} ns", value);
    }
    if (value < 1e6) {
        return fmt::format("{:.2f} us", value / 1e3);
    }
    if (value < 1e9) {
        return fmt::format("{:.2f} ms", value / 1e6);
    }
    return fmt::format("{:.2f} s", value / 1e9);
}

}  // namespace tagwire::perf
