// SPDX-License-Identifier: BSD-3-Clause
// Events of one poll() go straight into the caller's span. What does not fit
// (one acknowledgement can finish thousands of messages) waits here, in order.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lib/transport/transport.h"

namespace tagwire::transport {

class EventQueue {
  public:
    // Grows only in a burst larger than any before; never per packet.
    explicit EventQueue(size_t capacity) { waiting_.reserve(capacity); }

    void begin(std::span<Event> events) noexcept {
        first_ = next_ = events.data();
        end_ = first_ + events.size();
        if (!empty()) [[unlikely]] {
            hand_over();
        }
    }

    uint32_t finish() noexcept {
        const auto count = static_cast<uint32_t>(next_ - first_);
        first_ = next_ = end_ = nullptr;
        return count;
    }

    void push(const Event& event) noexcept { add() = event; }

    // One to be filled in: what its type does not use may be of an earlier event.
    Event& add() noexcept {
        // Events wait only while the span is full: begin() fills it from them first.
        if (next_ != end_) [[likely]] {
            return *next_++;
        }
        return add_waiting();
    }

    // No events wait: they all fit the caller's span.
    bool empty() const noexcept { return left_ == 0; }

    template <typename Visit>
    void for_each_waiting(Visit visit) const noexcept {
        for (size_t i = waiting_.size() - left_; i < waiting_.size(); ++i) {
            visit(waiting_[i]);
        }
    }

  private:
    [[gnu::noinline]] Event& add_waiting() noexcept {
        ++left_;
        return waiting_.emplace_back();
    }
    void hand_over() noexcept {
        while (next_ != end_ && !empty()) {
            *next_++ = waiting_[waiting_.size() - left_--];
        }
        if (left_ < waiting_.size() / 2) {
            waiting_.erase(waiting_.begin(), waiting_.end() - static_cast<ptrdiff_t>(left_));
        }
    }

    Event* first_ = nullptr;
    Event* next_ = nullptr;
    Event* end_ = nullptr;
    size_t left_ = 0;  // the last ones of `waiting_`
    std::vector<Event> waiting_;
};

}  // namespace tagwire::transport
