// SPDX-License-Identifier: BSD-3-Clause
#include "lib/ucp/log.h"

#include <cstdarg>
#include <cstdio>

namespace tagwire::ucp {
namespace {

void print(const char* level, const char* format, va_list arguments) {
    char text[512];
    std::vsnprintf(text, sizeof(text), format, arguments);
    std::fprintf(stderr, "tagwire ucp: %s: %s\n", level, text);
}

}  // namespace

void log_error(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print("error", format, arguments);
    va_end(arguments);
}

void log_warning(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print("warning", format, arguments);
    va_end(arguments);
}

}  // namespace tagwire::ucp
