// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

namespace softcx {

namespace {

std::atomic<int> current_level{static_cast<int>(LogLevel::kWarn)};

const char* prefix(LogLevel level) {
    switch (level) {
        case LogLevel::kSilent:
            break;
        case LogLevel::kError:
            return "softcx: error: ";
        case LogLevel::kWarn:
            return "softcx: warning: ";
        case LogLevel::kInfo:
            return "softcx: ";
        case LogLevel::kDebug:
            return "softcx: debug: ";
    }
    return "softcx: ";
}

}  // namespace

LogLevel log_level() noexcept {
    return static_cast<LogLevel>(current_level.load(std::memory_order_relaxed));
}

void set_log_level(LogLevel level) noexcept {
    current_level.store(static_cast<int>(level), std::memory_order_relaxed);
}

void log(LogLevel level, const char* format, ...) noexcept {
    if (level > log_level())
        return;
    const int saved_errno = errno;
    char line[512];
    int used = std::snprintf(line, sizeof(line), "%s", prefix(level));
    va_list arguments;
    va_start(arguments, format);
    const int body = std::vsnprintf(line + used, sizeof(line) - used - 1, format, arguments);
    va_end(arguments);
    if (body > 0)
        used += body;
    if (used > static_cast<int>(sizeof(line)) - 2)
        used = sizeof(line) - 2;
    line[used++] = '\n';
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, used);
    errno = saved_errno;
}

}  // namespace softcx
