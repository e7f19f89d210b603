// SPDX-License-Identifier: BSD-3-Clause
#include "lib/match/posted_queue.h"

#include <algorithm>

namespace tagwire::match {

PostedQueue::Layout PostedQueue::lay_out(const QueueConfig& config, Arena& arena) {
    return {arena.take<SlotStates::State>(config.capacity), PostedIndex::lay_out(config, arena)};
}

size_t PostedQueue::bytes_needed(const QueueConfig& config) {
    Arena arena(nullptr);
    lay_out(config, arena);
    return arena.used();
}

PostedQueue::PostedQueue(const QueueConfig& config, void* memory)
    : PostedQueue(config, Arena(memory)) {}

PostedQueue::PostedQueue(const QueueConfig& config, Arena arena)
    : PostedQueue(config, lay_out(config, arena)) {}

PostedQueue::PostedQueue(const QueueConfig& config, const Layout& layout)
    : short_(config.seed, kSlotMask),
      states_(layout.states, config.capacity),
      deep_(config, layout.deep) {
    assert(config.capacity > 0 && config.capacity <= kMaxCapacity);
}

Slot PostedQueue::find(uint64_t tag, uint32_t source, uint32_t key) const {
    if (short_.empty()) {
        return deep_.size() == 0 ? kNone : deep_.find(tag, source, key);
    }
    const size_t oldest = ShortList::first(short_.occupied());
    const size_t position =
        matches(short_[oldest], tag, source, key) ? oldest : search_younger(tag, source, key);
    return position == kNowhere ? kNone : short_.slot(position);
}

inline size_t PostedQueue::search_younger(uint64_t tag, uint32_t source, uint32_t key) const {
    for (uint64_t left = short_.candidates(tag); left != 0; left &= left - 1) {
        if (matches(short_[ShortList::first(left)], tag, source, key)) {
            return ShortList::first(left);
        }
    }
    return kNowhere;
}

Slot PostedQueue::take_younger(uint64_t tag, uint32_t source, uint32_t key) {
    const size_t position = search_younger(tag, source, key);
    return position == kNowhere ? kNone : take_at(position);
}

void PostedQueue::remove(Slot slot) {
    assert(holds(slot));
    if (states_.place(slot) == SlotStates::kDeep) {
        deep_.remove(slot);
    } else {
        short_.erase(states_.place(slot));
    }
}

bool PostedQueue::cancel(Handle handle) {
    if (!is_posted(handle)) {
        return false;
    }
    remove(slot_of(handle));
    return true;
}

bool PostedQueue::is_posted(Handle handle) const {
    return states_.is_latest(handle) && holds(slot_of(handle));
}

bool PostedQueue::holds(Slot slot) const {
    const uint32_t place = states_.place(slot);
    return place == SlotStates::kDeep ? deep_.holds(slot) : short_.holds(place, slot);
}

std::vector<Slot> PostedQueue::slots() const {
    std::vector<Slot> result;
    result.reserve(size());
    for (uint64_t left = short_.occupied(); left != 0; left &= left - 1) {
        result.push_back(short_.slot(ShortList::first(left)));
    }
    if (deep_.size() != 0) {
        for (Slot slot = 0; slot < states_.capacity(); ++slot) {
            if (deep_.holds(slot)) {
                result.push_back(slot);
            }
        }
        std::sort(result.begin(), result.end(),
                  [this](Slot a, Slot b) { return deep_.order(a) < deep_.order(b); });
    }
    return result;
}

void PostedQueue::go_deep() {
    ++times_deep_;
    for (uint64_t left = short_.occupied(); left != 0; left &= left - 1) {
        const ShortList::Entry& entry = short_[ShortList::first(left)];
        const Slot slot = entry.slot & kSlotMask;
        deep_.insert(slot, entry.tag, ~entry.keep, entry.source, slot != entry.slot);
        states_.move(slot, SlotStates::kDeep);
    }
    short_.clear();
}

Handle PostedQueue::post_unhashed(Slot slot, uint64_t tag, uint64_t ignore, uint32_t source,
                                  Life life) {
    short_.admit(~ignore);
    return post_short(short_.next_position(), slot, tag, ignore, source, life);
}

// The short list has no position left.
Handle PostedQueue::post_beyond(Slot slot, uint64_t tag, uint64_t ignore, uint32_t source,
                                Life life) {
    if (!short_.has_gaps()) {
        go_deep();
        return post_deep(slot, tag, ignore, source, life);
    }
    short_.compact(states_);
    return post(slot, tag, ignore, source, life);
}

Handle PostedQueue::post_deep(Slot slot, uint64_t tag, uint64_t ignore, uint32_t source,
                              Life life) {
    const Handle handle = states_.enter(slot, SlotStates::kDeep);
    deep_.insert(slot, tag, ignore, source, life == Life::kStays);
    return handle;
}

}  // namespace tagwire::match
