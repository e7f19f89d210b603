// SPDX-License-Identifier: BSD-3-Clause
#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "sizes.h"

namespace tagwire::perf {
namespace {

std::string quantity(double value, Progress::Unit unit) {
    return unit == Progress::Unit::kBytes ? format_size(static_cast<uint64_t>(value))
                                          : fmt::format("{:.0f}", value);
}

}  // namespace

Progress::Progress(std::string label, uint64_t total, Unit unit, bool enabled)
    : label_(std::move(label)),
      total_(total),
      unit_(unit),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(rte_rdtsc()),
      interval_(terminal_ ? rte_get_tsc_hz() / 5 : rte_get_tsc_hz() * 5),
      next_(enabled ? start_ + interval_ : UINT64_MAX) {}

Progress::~Progress() {
    if (shown_ && terminal_) {
        std::fputs("\r\033[K", stderr);  // the line makes room for the result
    }
}

void Progress::show(uint64_t done) noexcept {
    const uint64_t now = rte_rdtsc();
    const double seconds =
        static_cast<double>(now - start_) / static_cast<double>(rte_get_tsc_hz());
    const double rate = static_cast<double>(done) / seconds;
    const double percent =
        total_ == 0 ? 100.0 : 100.0 * static_cast<double>(done) / static_cast<double>(total_);
    const double left = rate > 0 && done < total_ ? static_cast<double>(total_ - done) / rate : 0;
    fmt::print(stderr, "{}{}: {:.0f} % of {}, {}/s, {:.0f} s left{}", terminal_ ? "\r\033[K" : "",
               label_, percent, quantity(static_cast<double>(total_), unit_), quantity(rate, unit_),
               left, terminal_ ? "" : "\n");
    std::fflush(stderr);
    shown_ = true;
    next_ = now + interval_;
}

}  // namespace tagwire::perf
