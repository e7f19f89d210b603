// SPDX-License-Identifier: BSD-3-Clause
// The lock of a worker whose objects several threads use (TW_THREAD_SAFE).
#pragma once

#include <rte_pause.h>
#include <sched.h>

#include <atomic>
#include <mutex>

namespace tagwire {

class WorkerLock {
  public:
    void lock() noexcept {
        for (int i = 0; i < kSpins; ++i) {
            if (mutex_.try_lock()) {
                return;
            }
            rte_pause();
        }
        waiting_.fetch_add(1, std::memory_order_relaxed);
        mutex_.lock();
        waiting_.fetch_sub(1, std::memory_order_relaxed);
    }

    void unlock() noexcept { mutex_.unlock(); }

    // Threads that wait for it.
    int waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }

    // After unlock(), by a thread that is about to come again, as one that polls is. A mutex
    // is not fair: it would have it back before those that wait for it are awake.
    void give_way() const noexcept {
        for (int i = 0; i < kYields && waiting() != 0; ++i) {
            sched_yield();
        }
    }

  private:
    static constexpr int kSpins = 64;
    static constexpr int kYields = 64;

    std::mutex mutex_;
    std::atomic<int> waiting_ = 0;
};

}  // namespace tagwire
