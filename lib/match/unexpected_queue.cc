// SPDX-License-Identifier: BSD-3-Clause
#include "lib/match/unexpected_queue.h"

namespace tagwire::match {

UnexpectedQueue::Layout UnexpectedQueue::lay_out(const QueueConfig& config, Arena& arena) {
    Layout layout;
    layout.states = arena.take<SlotStates::State>(config.capacity);
    layout.links = ClaimedList::lay_out(config.capacity, arena);
    layout.deep = UnexpectedIndex::lay_out(config, arena);
    return layout;
}

size_t UnexpectedQueue::bytes_needed(const QueueConfig& config) {
    Arena arena(nullptr);
    lay_out(config, arena);
    return arena.used();
}

UnexpectedQueue::UnexpectedQueue(const QueueConfig& config, void* memory)
    : UnexpectedQueue(config, Arena(memory)) {}

UnexpectedQueue::UnexpectedQueue(const QueueConfig& config, Arena arena)
    : UnexpectedQueue(config, lay_out(config, arena)) {}

UnexpectedQueue::UnexpectedQueue(const QueueConfig& config, const Layout& layout)
    : short_(config.seed, UINT32_MAX),
      states_(layout.states, config.capacity),
      claimed_(layout.links, config.capacity),
      deep_(config, layout.deep) {
    assert(config.capacity > 0 && config.capacity <= kMaxCapacity);
}

Slot UnexpectedQueue::find(uint64_t tag, uint64_t ignore, uint32_t source) {
    if (short_.empty()) {
        return deep_.size() == 0 ? kNone : deep_.find(tag, ignore, source);
    }
    const uint64_t candidates =
        short_.is_hashed(~ignore) ? short_.candidates(tag) : short_.candidates_for(tag, ~ignore);
    const size_t position = search(candidates, tag, ignore, source);
    return position == kNowhere ? kNone : short_[position].slot;
}

inline size_t UnexpectedQueue::search(uint64_t candidates, uint64_t tag, uint64_t ignore,
                                      uint32_t source) const {
    for (uint64_t left = candidates; left != 0; left &= left - 1) {
        if (matches(short_[ShortList::first(left)], tag, ignore, source)) {
            return ShortList::first(left);
        }
    }
    return kNowhere;
}

Slot UnexpectedQueue::take_younger(uint64_t tag, uint64_t ignore, uint32_t source) {
    if (!short_.is_hashed(~ignore)) [[unlikely]] {
        return take_unhashed(tag, ignore, source);
    }
    const size_t position = search(short_.candidates(tag), tag, ignore, source);
    return position == kNowhere ? kNone : take_at(position);
}

Slot UnexpectedQueue::take_unhashed(uint64_t tag, uint64_t ignore, uint32_t source) {
    const uint64_t candidates = short_.candidates_for(tag, ~ignore);
    const size_t position = search(candidates, tag, ignore, source);
    return position == kNowhere ? kNone : take_at(position);
}

void UnexpectedQueue::remove(Slot slot) {
    assert(holds(slot));
    if (states_.place(slot) == SlotStates::kDeep) {
        deep_.remove(slot);
        states_.move(slot, SlotStates::kFree);
    } else {
        short_.erase(states_.place(slot));
    }
}

Handle UnexpectedQueue::claim(Slot slot) {
    remove(slot);
    claimed_.append(slot);
    states_.move(slot, SlotStates::kClaimed);
    return states_.handle(slot);
}

Slot UnexpectedQueue::redeem(Handle handle) {
    if (!is_claimed(handle)) {
        return kNone;
    }
    claimed_.remove(slot_of(handle));
    states_.move(slot_of(handle), SlotStates::kFree);
    return slot_of(handle);
}

bool UnexpectedQueue::discard(Handle handle) {
    if (redeem(handle) != kNone) {
        return true;
    }
    if (!states_.is_latest(handle) || !holds(slot_of(handle))) {
        return false;
    }
    remove(slot_of(handle));
    return true;
}

bool UnexpectedQueue::is_claimed(Handle handle) const {
    return states_.is_latest(handle) && states_.place(slot_of(handle)) == SlotStates::kClaimed;
}

Slot UnexpectedQueue::oldest() const {
    return short_.empty() ? deep_.oldest() : short_[ShortList::first(short_.occupied())].slot;
}

bool UnexpectedQueue::holds(Slot slot) const {
    const uint32_t place = states_.place(slot);
    return place == SlotStates::kDeep || short_.holds(place, slot);
}

void UnexpectedQueue::go_deep() {
    ++times_deep_;
    for (uint64_t left = short_.occupied(); left != 0; left &= left - 1) {
        const ShortList::Entry& entry = short_[ShortList::first(left)];
        deep_.append(entry.slot, entry.tag, entry.source, entry.key);
        states_.move(entry.slot, SlotStates::kDeep);
    }
    short_.clear();
}

Slot UnexpectedQueue::take_deep(uint64_t tag, uint64_t ignore, uint32_t source) {
    const Slot slot = deep_.take(tag, ignore, source);
    if (slot != kNone) {
        states_.move(slot, SlotStates::kFree);
    }
    return slot;
}

// The short list has no position left.
Handle UnexpectedQueue::append_beyond(Slot slot, uint64_t tag, uint32_t source, uint32_t key) {
    if (!short_.has_gaps()) {
        go_deep();
        return append_deep(slot, tag, source, key);
    }
    short_.compact(states_);
    return append(slot, tag, source, key);
}

Handle UnexpectedQueue::append_deep(Slot slot, uint64_t tag, uint32_t source, uint32_t key) {
    const Handle handle = states_.enter(slot, SlotStates::kDeep);
    deep_.append(slot, tag, source, key);
    return handle;
}

}  // namespace tagwire::match
