// SPDX-License-Identifier: BSD-3-Clause
// The lock of a worker: taken by every call, so uncontended it must cost next to nothing.
// The thread that holds it may take it again (callbacks call back).
#pragma once

#include <sched.h>

#include <atomic>

namespace tagwire::ucp {

class WorkerLock {
  public:
    void lock() {
        const void* self = thread();
        if (owner_.load(std::memory_order_relaxed) == self) {
            ++depth_;
            return;
        }
        for (unsigned spins = 0;; ++spins) {
            const void* nobody = nullptr;
            if (owner_.compare_exchange_strong(nobody, self, std::memory_order_acquire,
                                               std::memory_order_relaxed)) [[likely]] {
                return;
            }
            if (spins % kSpins == kSpins - 1) {
                sched_yield();
            }
        }
    }
    bool try_lock() {
        const void* nobody = nullptr;
        return owner_.compare_exchange_strong(nobody, thread(), std::memory_order_acquire,
                                              std::memory_order_relaxed);
    }
    void unlock() {
        if (depth_ != 0) {
            --depth_;
        } else {
            owner_.store(nullptr, std::memory_order_release);
        }
    }

  private:
    static constexpr unsigned kSpins = 64;
    static const void* thread() {
        static thread_local char mark;
        return &mark;
    }

    std::atomic<const void*> owner_{nullptr};
    unsigned depth_ = 0;
};

}  // namespace tagwire::ucp
