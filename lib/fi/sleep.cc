// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/sleep.h"

#include <poll.h>

#include <algorithm>
#include <climits>

#include "lib/fi/domain.h"
#include "lib/fi/provider.h"

namespace tagwire::fi {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

tw_wait* SleepPool::take(tw_worker* worker) {
    const std::lock_guard guard(mutex_);
    tw_wait* wait = nullptr;
    if (!idle_.empty()) {
        wait = idle_.back();
        idle_.pop_back();
    } else if (const int result = tw_wait_open(worker, &wait); result != 0) {
        log_failure("no descriptor to sleep on", result);
        return nullptr;
    }
    taken_.push_back(wait);
    return wait;
}

void SleepPool::give(tw_wait* wait) {
    const std::lock_guard guard(mutex_);
    std::erase(taken_, wait);
    idle_.push_back(wait);
}

void SleepPool::add(tw_wait* wait) {
    const std::lock_guard guard(mutex_);
    taken_.push_back(wait);
}

void SleepPool::remove(tw_wait* wait) {
    const std::lock_guard guard(mutex_);
    std::erase(taken_, wait);
    tw_wait_close(wait);
}

void SleepPool::wake() {
    const std::lock_guard guard(mutex_);
    for (tw_wait* wait : taken_) {
        tw_wait_signal(wait);
    }
}

void SleepPool::close() {
    const std::lock_guard guard(mutex_);
    for (tw_wait* wait : idle_) {
        tw_wait_close(wait);
    }
    idle_.clear();
}

Sleep::Sleep(Domain& domain) : domain_(domain) {
    const Guard guard(domain);
    wait_ = domain.sleepers.take(domain.worker);
    if (wait_ != nullptr && tw_wait_arm(wait_) == 0) {
        tw_wait_fd(wait_, &fd_);
    }
}

Sleep::~Sleep() {
    if (wait_ != nullptr) {
        domain_.sleepers.give(wait_);
    }
}

Patience::Patience(int timeout)
    : endless_(timeout < 0), end_(steady_clock::now() + milliseconds(timeout)) {}

bool Patience::over() const {
    return !endless_ && steady_clock::now() >= end_;
}

int Patience::left_ms() const {
    if (endless_) {
        return -1;
    }
    const auto left = std::chrono::ceil<milliseconds>(end_ - steady_clock::now()).count();
    return static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX));
}

void sleep_on(const Sleep& sleep, const Patience& patience) {
    if (sleep.may_sleep()) {
        // The helper wakes for what it finds, a moment after the look of somebody else may miss.
        constexpr int kLongestMs = 1;
        const int left = patience.left_ms();
        pollfd waiting{.fd = sleep.fd(), .events = POLLIN, .revents = 0};
        poll(&waiting, 1, left < 0 || left > kLongestMs ? kLongestMs : left);
    }
}

}  // namespace tagwire::fi
