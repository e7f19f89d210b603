// SPDX-License-Identifier: BSD-3-Clause
// SIGINT and SIGTERM ask the program to end; a second one ends it at once.
#pragma once

#include <csignal>

namespace tagwire::perf {

extern volatile std::sig_atomic_t g_interrupted;  // the signal's number; 0: none

void install_interrupt_handlers();

}  // namespace tagwire::perf
