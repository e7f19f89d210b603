// SPDX-License-Identifier: BSD-3-Clause
// Counts operations that ended, fi_cntr(3).
#pragma once

#include <cstdint>

#include "tagwire/cntr.h"

namespace tagwire {

class Worker;

class CompletionCounter {
  public:
    explicit CompletionCounter(Worker& worker) : worker_(worker) {}

    Worker& worker() const { return worker_; }

    void ended(int error) { ++(error == 0 ? value : errors); }

    void bind() { ++bindings_; }
    void unbind() { --bindings_; }
    bool bound() const { return bindings_ != 0; }

    uint64_t value = 0;
    uint64_t errors = 0;

  private:
    Worker& worker_;
    uint32_t bindings_ = 0;
};

}  // namespace tagwire

struct tw_cntr final : tagwire::CompletionCounter {
    using CompletionCounter::CompletionCounter;
};
