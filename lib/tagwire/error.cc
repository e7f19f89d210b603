// SPDX-License-Identifier: BSD-3-Clause
#include "lib/tagwire/error.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "tagwire/tagwire.h"

namespace tagwire {
namespace {

thread_local char formatted[512];
thread_local const char* last_text = "";

// strerrordesc_np (glibc 2.32) is a static string, unlike strerror.
const char* describe(int error) {
    switch (error) {
        case TW_EOTHER:
            return "unspecified error";
        case TW_EOPBADSTATE:
            return "not possible in this state of the object";
        case TW_EAVAIL:
            return "the next completion is an error: read it with tw_cq_readerr";
        case TW_ENOEQ:
            return "the endpoint has no event queue";
        case TW_ENOCQ:
            return "the endpoint has no completion queue";
        case TW_ETRUNC:
            return "the message was longer than the receive buffer";
        case TW_ENOAV:
            return "the endpoint has no address vector";
        default: {
            const char* text = strerrordesc_np(error);
            return text == nullptr ? "unknown error" : text;
        }
    }
}

}  // namespace

int fail(int error, const char* format, ...) noexcept {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(formatted, sizeof(formatted), format, arguments);
    va_end(arguments);
    last_text = formatted;
    return -error;
}

int refuse(int error, const char* text) noexcept {
    last_text = text;
    return -error;
}

}  // namespace tagwire

const char* tw_strerror(int error) {
    return tagwire::describe(error < 0 ? -error : error);
}

const char* tw_last_error(void) {
    return tagwire::last_text;
}
