// SPDX-License-Identifier: BSD-3-Clause
// Messages to stderr, filtered by SOFTCX_LOG.
#pragma once

namespace softcx {

// kSilent is for fuzzers alone.
enum class LogLevel : int { kSilent = -1, kError, kWarn, kInfo, kDebug };

LogLevel log_level() noexcept;
void set_log_level(LogLevel level) noexcept;

// One line, "softcx: warning: ...", written with a single write(2).
[[gnu::format(printf, 2, 3)]] void log(LogLevel level, const char* format, ...) noexcept;

}  // namespace softcx
