// SPDX-License-Identifier: BSD-3-Clause
// Queues with memory of their own, and slots handed out for them.
#pragma once

#include <memory>
#include <new>
#include <vector>

#include "lib/match/posted_queue.h"
#include "lib/match/unexpected_queue.h"

namespace tagwire::match::test {

struct Release {
    void operator()(void* memory) const {
        ::operator delete (memory, std::align_val_t{Arena::kAlignment});
    }
};

// Starts with garbage, so that a read of memory that was never set does harm.
inline std::unique_ptr<void, Release> garbage(size_t bytes) {
    void* memory = ::operator new (bytes, std::align_val_t{Arena::kAlignment});
    std::memset(memory, 0xa5, bytes);
    return std::unique_ptr<void, Release>(memory);
}

template <typename Queue>
class Owned : public Queue {
  public:
    explicit Owned(const QueueConfig& config)
        : Owned(config, garbage(Queue::bytes_needed(config))) {}

  private:
    Owned(const QueueConfig& config, std::unique_ptr<void, Release> memory)
        : Queue(config, memory.get()), memory_(std::move(memory)) {}

    std::unique_ptr<void, Release> memory_;
};

class Slots {
  public:
    explicit Slots(uint32_t count) {
        for (Slot slot = count; slot > 0; --slot) {
            free_.push_back(slot - 1);
        }
    }
    bool empty() const { return free_.empty(); }
    Slot take() {
        const Slot slot = free_.back();
        free_.pop_back();
        return slot;
    }
    void give(Slot slot) { free_.push_back(slot); }

  private:
    std::vector<Slot> free_;
};

}  // namespace tagwire::match::test
