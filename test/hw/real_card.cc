// SPDX-License-Identifier: BSD-3-Clause
// In place of softcx, for the port tests on a real card: nothing to run, only time to
// wait for. A test that asks more of the device than a card can do has NEEDS_SOFTCX().
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "drivers/softcx/softcx.h"
#include "test/mlx5raw/port_fixture.h"

namespace {

// What a frame takes from the doorbell to its completion at the other end, with a margin.
constexpr std::chrono::microseconds kStep{100};
constexpr int kStepsToSettle = 20;

int steps = 0;

int unable(const char* what) {
    ADD_FAILURE() << what << " on a real card: this test lacks NEEDS_SOFTCX()";
    return -ENOTSUP;
}

}  // namespace

namespace tagwire::mlx5raw {
bool on_softcx() {
    return false;
}
}  // namespace tagwire::mlx5raw

extern "C" {

// The tests step until nothing moves; here that is a number of pauses.
int softcx_step(void) {
    std::this_thread::sleep_for(kStep);
    steps = (steps + 1) % kStepsToSettle;
    return steps == 0 ? 0 : 1;
}

int softcx_inject_wq_error(const char*, unsigned int, unsigned int) {
    return unable("an injected WQ error");
}

int softcx_inject_qp_error(const char*, unsigned int, unsigned int) {
    return unable("an injected QP error");
}

int softcx_inject_cq_overrun(const char*, unsigned int) {
    return unable("an injected CQ overrun");
}

int softcx_inject_device_fatal(const char*) {
    return unable("an injected device error");
}

int softcx_set_link(const char*, int) {
    return unable("a link set from the test");
}

int softcx_refuse_command(const char*, int, int) {
    return unable("a command that is refused");
}

unsigned long long softcx_objects(const char*) {
    return 0;
}

// The client checks are the model's alone: a card counts no client errors.
unsigned long long softcx_counter(const char*, const char*) {
    return 0;
}
}
