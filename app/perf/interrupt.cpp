// SPDX-License-Identifier: BSD-3-Clause
#include "interrupt.h"

#include <initializer_list>

namespace tagwire::perf {

volatile std::sig_atomic_t g_interrupted = 0;

namespace {

void on_signal(int signal) {
    g_interrupted = signal;
}

}  // namespace

void install_interrupt_handlers() {
    for (const int signal : {SIGINT, SIGTERM}) {
        struct sigaction action {};
        action.sa_handler = on_signal;
        action.sa_flags = static_cast<int>(SA_RESETHAND);
        sigaction(signal, &action, nullptr);
    }
}

}  // namespace tagwire::perf
