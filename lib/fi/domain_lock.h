// SPDX-License-Identifier: BSD-3-Clause
// Who may touch a worker: the application's thread, or the helper that works while the application
// does something else.
//
// With FI_THREAD_DOMAIN the application promises one thread at a time, and its calls pay next to
// nothing: they leave a mark and look for the helper's (a biased lock). The helper, which comes
// once in a millisecond, pays for the order of the two with membarrier(2), and gives way when it
// finds the mark. With other thread models, or without membarrier, both take a mutex.
#pragma once

#include <atomic>
#include <mutex>

namespace tagwire::fi {

class DomainLock {
  public:
    // Before other threads know of it. False: nothing but the mutex is to be had.
    bool prefer_one_thread();

    void lock() {
        if (!lock_alone()) {
            mutex_.lock();
        }
    }
    void unlock() {
        if (shared_) {
            mutex_.unlock();
            return;
        }
        unlock_alone();
    }

    // False, and nothing done, where a mutex is needed. For calls whose fast path has no room for
    // it: a call in it makes the compiler save more registers.
    bool lock_alone() {
        if (shared_) [[unlikely]] {
            return false;
        }
        in_call_.store(true, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (helper_.load(std::memory_order_relaxed)) [[unlikely]] {
            wait_for_helper();
        }
        return true;
    }
    void unlock_alone() { in_call_.store(false, std::memory_order_release); }

    // Of the helper, and of threads that come for its sake. False: the application is in a call,
    // or another one is here.
    bool helper_try_lock();
    void helper_unlock();

  private:
    void wait_for_helper();

    bool shared_ = true;
    std::atomic<bool> in_call_{false};
    std::atomic<bool> helper_{false};
    std::mutex mutex_;
    std::mutex helpers_;
};

}  // namespace tagwire::fi
