// SPDX-License-Identifier: BSD-3-Clause
// Errors of the public calls: a negative errno, and a text for tw_last_error().
#pragma once

#include <cerrno>
#include <new>

namespace tagwire {

// Control path: keeps the formatted text for this thread. Returns -error.
[[gnu::format(printf, 2, 3)]] int fail(int error, const char* format, ...) noexcept;

// Data path: keeps a pointer to a static text, nothing else. Returns -error.
int refuse(int error, const char* text) noexcept;

// Runs a control call whose containers may run out of memory.
template <typename Call>
int guarded(Call&& call) noexcept {
    try {
        return call();
    } catch (const std::bad_alloc&) {
        return refuse(ENOMEM, "out of memory");
    }
}

}  // namespace tagwire
