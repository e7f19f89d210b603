// SPDX-License-Identifier: BSD-3-Clause
#include "lib/port/give_way.h"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <initializer_list>

namespace tagwire::port {
namespace {

uint64_t read_ns(clockid_t clock) noexcept {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

bool more_ranks_than_cores() {
    for (const char* name : {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"}) {
        if (const char* ranks = std::getenv(name); ranks != nullptr) {
            return std::atol(ranks) > sysconf(_SC_NPROCESSORS_ONLN);
        }
    }
    return false;
}

bool give_way() noexcept {
    static const bool may_nap = more_ranks_than_cores();
    thread_local CoreShare share;
    if (!may_nap || !share.crowded(read_ns(CLOCK_MONOTONIC), read_ns(CLOCK_THREAD_CPUTIME_ID))) {
        sched_yield();
        return false;
    }
    // The kernel adds its timer slack of 50 us.
    const timespec nap{.tv_sec = 0, .tv_nsec = 10'000};
    nanosleep(&nap, nullptr);
    return true;
}

}  // namespace tagwire::port
