// SPDX-License-Identifier: BSD-3-Clause
// Counts operations that ended, fi_cntr(3).
#pragma once

#include <cstdint>

#include "tagwire/cntr.h"

namespace tagwire {

class Worker;

class CompletionCounter {
  public:
    explicit CompletionCounter(Worker& worker);

    Worker& worker() const { return worker_; }

    void ended(int error) {
        ++(error == 0 ? value : errors);
        ++activity_;
    }
    void change(uint64_t& which, uint64_t to) {
        which = to;
        ++activity_;
    }
    int wait(uint64_t threshold, int timeout_ms) noexcept;

    void bind() { ++bindings_; }
    void unbind() { --bindings_; }
    bool bound() const { return bindings_ != 0; }

    uint64_t value = 0;
    uint64_t errors = 0;

  private:
    Worker& worker_;
    uint64_t& activity_;  // the worker's
    uint32_t bindings_ = 0;
};

}  // namespace tagwire

struct tw_cntr final : tagwire::CompletionCounter {
    using CompletionCounter::CompletionCounter;
};
