// SPDX-License-Identifier: BSD-3-Clause
// The lock of a device. A polling thread takes it a million times a second and nearly
// always finds it free, which std::recursive_mutex makes two calls and two locked
// instructions; here it is one, inlined. Who waits (a command, while a step runs) yields.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace softcx {

class DeviceLock {
  public:
    bool try_lock() noexcept {
        const void* me = &self;
        if (owner_.load(std::memory_order_relaxed) == me) {
            ++depth_;
            return true;
        }
        const void* nobody = nullptr;
        return owner_.compare_exchange_strong(nobody, me, std::memory_order_acquire,
                                              std::memory_order_relaxed);
    }
    void lock() noexcept {
        while (!try_lock())
            ::sched_yield();
    }
    void unlock() noexcept {
        if (depth_ != 0)
            --depth_;
        else
            owner_.store(nullptr, std::memory_order_release);
    }

  private:
    // Its address names the thread. The library is there when the program starts.
    [[gnu::tls_model("initial-exec")]] static inline thread_local char self = 0;

    std::atomic<const void*> owner_{nullptr};
    uint32_t depth_ = 0;  // of the owner: how often it holds the lock once more
};

}  // namespace softcx
