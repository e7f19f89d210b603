// SPDX-License-Identifier: BSD-3-Clause
// One wake-up time per session, in a binary heap. A session's deadline moves
// with every packet, mostly later; so the heap holds a time at or before it and
// is touched only when a deadline moves before that, or when the time comes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tagwire::transport {

class TimerHeap {
  public:
    static constexpr uint64_t kNever = UINT64_MAX;

    explicit TimerHeap(uint32_t timers) : position_(timers, kOut), wake_(timers, kNever) {
        heap_.reserve(timers);
    }

    // Wakes `timer` at `time` at the latest.
    void schedule(uint32_t timer, uint64_t time) noexcept {
        if (time < wake_[timer]) [[unlikely]] {
            move_earlier(timer, time);
        }
    }

    uint64_t next() const noexcept { return next_; }

    // Takes out the first timer; it must be scheduled again.
    uint32_t pop() noexcept {
        const uint32_t timer = heap_.front();
        wake_[timer] = kNever;
        position_[timer] = kOut;
        const uint32_t last = heap_.back();
        heap_.pop_back();
        if (last != timer) {
            place(0, last);
            sift_down(0);
        }
        next_ = heap_.empty() ? kNever : wake_[heap_.front()];
        return timer;
    }

  private:
    static constexpr uint32_t kOut = UINT32_MAX;

    void place(uint32_t at, uint32_t timer) noexcept {
        heap_[at] = timer;
        position_[timer] = at;
    }

    void move_earlier(uint32_t timer, uint64_t time) noexcept {
        wake_[timer] = time;
        if (position_[timer] == kOut) {
            heap_.push_back(timer);
            position_[timer] = static_cast<uint32_t>(heap_.size() - 1);
        }
        uint32_t at = position_[timer];
        while (at > 0 && wake_[heap_[(at - 1) / 2]] > time) {
            place(at, heap_[(at - 1) / 2]);
            at = (at - 1) / 2;
        }
        place(at, timer);
        next_ = wake_[heap_.front()];
    }

    void sift_down(uint32_t at) noexcept {
        const uint32_t timer = heap_[at];
        const auto size = static_cast<uint32_t>(heap_.size());
        for (uint32_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
            if (child + 1 < size && wake_[heap_[child + 1]] < wake_[heap_[child]]) {
                ++child;
            }
            if (wake_[heap_[child]] >= wake_[timer]) {
                break;
            }
            place(at, heap_[child]);
            at = child;
        }
        place(at, timer);
    }

    uint64_t next_ = kNever;
    std::vector<uint32_t> heap_;
    std::vector<uint32_t> position_;
    std::vector<uint64_t> wake_;
};

}  // namespace tagwire::transport
