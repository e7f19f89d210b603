// SPDX-License-Identifier: BSD-3-Clause
// Every public call holds one while it uses an object of the worker: the lock, when
// several threads use it, and on the way out a look at those who sleep. A worker of
// one thread, on which nobody sleeps, pays two predicted branches.
#pragma once

#include "lib/tagwire/worker.h"

namespace tagwire {

class Guard {
  public:
    explicit Guard(const Worker& worker) noexcept : worker_(const_cast<Worker&>(worker)) {
        if (worker_.shared()) [[unlikely]] {
            worker_.lock().lock();
        }
    }
    ~Guard() {
        if (worker_.waiting().armed()) [[unlikely]] {
            worker_.waiting().leave();
        }
        if (worker_.shared()) [[unlikely]] {
            worker_.lock().unlock();
        }
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

  private:
    Worker& worker_;
};

}  // namespace tagwire
