// SPDX-License-Identifier: BSD-3-Clause
// The device runs inside the doorbell store: doorbell pages can't be written, a store faults,
// is executed as a single step with the page open, and then the device looks at what was
// announced. x86-64 only (the trap flag).
#pragma once

#include <signal.h>

#include <cstddef>

namespace softcx::trap {

using Run = void (*)() noexcept;

#if defined(__x86_64__)
inline constexpr bool kAvailable = true;
#else
inline constexpr bool kAvailable = false;
#endif

// Guards the pages of a mapping; `run` (the same for all) is called after each store, on
// the thread that stores, with asynchronous signals blocked. A store of another thread that
// slips through while the page is open comes before that call. False: errno says why.
bool guard(void* address, size_t length, Run run) noexcept;

// The mapping is about to go.
void forget(const void* address, size_t length) noexcept;

// True for SIGSEGV and SIGTRAP once a page is guarded: the program's own actions for them are
// kept here, and get the faults that are not ours.
bool keeps_action_of(int signal) noexcept;
int exchange_action(int signal, const struct sigaction* action, struct sigaction* old) noexcept;

}  // namespace softcx::trap
