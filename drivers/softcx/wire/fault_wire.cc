// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/wire/fault_wire.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "drivers/softcx/wire/frame_ring.h"

namespace softcx {

static_assert(kMaxFrame <= 10240, "a slot holds any frame");

uint64_t FaultWire::monotonic_clock() noexcept {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

FaultWire::FaultWire(std::unique_ptr<Wire> inner, const FaultPlan& plan, PortCounters& counters,
                     Clock clock)
    : inner_(std::move(inner)),
      plan_(plan),
      counters_(counters),
      clock_(clock),
      loss_(plan.seed ^ 0x6c6f7373),
      duplication_(plan.seed ^ 0x64757021),
      corruption_(plan.seed ^ 0x636f7272),
      order_(plan.seed ^ 0x6f726472) {
    // One more for the frame that is on its way through.
    const uint32_t slots = plan.reorder + plan.queue + 1;
    frames_ = std::make_unique_for_overwrite<uint8_t[]>(size_t{slots} * kSlotBytes);
    lengths_.resize(slots);
    waiting_.resize(plan.queue);
    held_.reserve(plan.reorder + 1);
    free_.reserve(slots);
    for (Slot slot = slots; slot-- > 0;)
        free_.push_back(slot);
}

bool FaultWire::send(std::span<const Piece> pieces, uint32_t total) noexcept {
    if (total > kMaxFrame)
        return false;
    sent_since_poll_ = true;
    send_what_is_due();
    if (loss_.happens(plan_.loss)) {
        ++counters_.fault_lost;
        return true;
    }
    const bool twice = duplication_.happens(plan_.duplication);
    counters_.fault_duplicated += twice ? 1 : 0;
    bool sent = hold(copy(pieces, total));
    if (twice)
        sent = hold(copy(pieces, total)) || sent;
    return sent;
}

FaultWire::Slot FaultWire::copy(std::span<const Piece> pieces, uint32_t total) noexcept {
    const Slot slot = free_.back();
    free_.pop_back();
    lengths_[slot] = total;
    gather(pieces, frame(slot));
    if (corruption_.happens(plan_.corruption)) {
        // What a switch's memory would do: the FCS is made anew and hides it.
        const uint32_t bit = corruption_.below(total * 8);
        frame(slot)[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
        ++counters_.fault_corrupted;
    }
    return slot;
}

// The window of reordering. False: a frame was dropped.
bool FaultWire::hold(Slot slot) noexcept {
    if (plan_.reorder == 0)
        return queue(slot);
    held_.push_back(slot);
    return held_.size() <= plan_.reorder || release_one();
}

bool FaultWire::release_one() noexcept {
    const uint32_t which = order_.below(static_cast<uint32_t>(held_.size()));
    const Slot slot = held_[which];
    held_.erase(held_.begin() + which);
    counters_.fault_reordered += which != 0 ? 1 : 0;
    return queue(slot);
}

// The line: its rate, its length, and the queue in front of it.
bool FaultWire::queue(Slot slot) noexcept {
    if (plan_.delay == 0 && plan_.rate == 0) {
        const Piece piece{frame(slot), lengths_[slot]};
        const bool sent = inner_->send({&piece, 1}, piece.length);
        give_back(slot);
        return sent;
    }
    if (waiting_count_ == waiting_.size()) {
        ++counters_.fault_tail_dropped;
        give_back(slot);
        return false;
    }
    constexpr uint64_t kNanoseconds = 1'000'000'000;
    const uint64_t now = clock_();
    line_free_ = std::max(line_free_, now);
    if (plan_.rate != 0)
        line_free_ += uint64_t{lengths_[slot]} * 8 * kNanoseconds / plan_.rate;
    waiting_[(waiting_first_ + waiting_count_++) % waiting_.size()] = {slot,
                                                                       line_free_ + plan_.delay};
    ++counters_.fault_delayed;
    return true;
}

void FaultWire::send_what_is_due() noexcept {
    if (waiting_count_ == 0)
        return;
    const uint64_t now = clock_();
    while (waiting_count_ != 0 && waiting_[waiting_first_].due <= now) {
        leave(waiting_[waiting_first_].slot);
        waiting_first_ = (waiting_first_ + 1) % waiting_.size();
        --waiting_count_;
    }
}

// The sender was told long ago that the frame is gone.
void FaultWire::leave(Slot slot) noexcept {
    const Piece piece{frame(slot), lengths_[slot]};
    if (!inner_->send({&piece, 1}, piece.length))
        ++counters_.fault_tail_dropped;
    give_back(slot);
}

// A sender that pauses gets what is held back delivered, a frame for each poll.
std::span<const uint8_t> FaultWire::receive() noexcept {
    if (!sent_since_poll_ && !held_.empty())
        release_one();
    sent_since_poll_ = false;
    send_what_is_due();
    return inner_->receive();
}

}  // namespace softcx
