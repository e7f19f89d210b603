// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/domain_lock.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tagwire::fi {

bool DomainLock::prefer_one_thread() {
    shared_ = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0;
    return !shared_;
}

void DomainLock::wait_for_helper() {
    while (helper_.load(std::memory_order_acquire)) {
        in_call_.store(false, std::memory_order_release);
        while (helper_.load(std::memory_order_acquire)) {
            sched_yield();
        }
        in_call_.store(true, std::memory_order_seq_cst);
    }
}

bool DomainLock::helper_try_lock() {
    if (shared_) {
        return mutex_.try_lock();
    }
    if (!helpers_.try_lock()) {
        return false;
    }
    helper_.store(true, std::memory_order_seq_cst);
    // From here on every thread of the process sees the mark, or we see that of its call.
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    if (in_call_.load(std::memory_order_acquire)) {
        helper_.store(false, std::memory_order_release);
        helpers_.unlock();
        return false;
    }
    return true;
}

void DomainLock::helper_unlock() {
    if (shared_) {
        mutex_.unlock();
        return;
    }
    helper_.store(false, std::memory_order_release);
    helpers_.unlock();
}

}  // namespace tagwire::fi
