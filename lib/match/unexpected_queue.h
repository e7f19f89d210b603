// SPDX-License-Identifier: BSD-3-Clause
// Messages that no receive was posted for, searched by receives in arrival order.
//
// While the queue is short, all messages are in a ShortList; when it has grown too
// long for that, they all are in an UnexpectedIndex until the queue is empty again.
//
// A claimed message has left the matching: no search finds it. It keeps its slot, and
// with it its part of the caller's budget, until it is redeemed by its handle.
#pragma once

#include "lib/match/claimed_list.h"
#include "lib/match/short_list.h"
#include "lib/match/unexpected_index.h"

namespace tagwire::match {

class UnexpectedQueue {
  public:
    static size_t bytes_needed(const QueueConfig& config);

    // `memory` has bytes_needed(config) bytes, aligned to Arena::kAlignment, and outlives the
    // queue. config.max_classes limits the classes with a hash of their own.
    UnexpectedQueue(const QueueConfig& config, void* memory);
    UnexpectedQueue(const UnexpectedQueue&) = delete;
    UnexpectedQueue& operator=(const UnexpectedQueue&) = delete;

    // A message arrived from a peer, of which `key` is the key group. The slot must be free.
    Handle append(Slot slot, uint64_t tag, uint32_t source, uint32_t key = kNoKey);

    // The oldest message that a receive would take, or kNone; it stays in the queue.
    Slot find(uint64_t tag, uint64_t ignore, uint32_t source);

    // As find, and removes it.
    Slot take(uint64_t tag, uint64_t ignore, uint32_t source);

    // Removes a message that is not claimed: it is discarded, or its sender is gone. Constant
    // time for each hash.
    void remove(Slot slot);

    // Takes a message that is not claimed out of the matching; its handle redeems it.
    Handle claim(Slot slot);

    // Removes the claimed message of this handle, and returns its slot; kNone when there is none.
    Slot redeem(Handle handle);

    // Removes the message of this handle, claimed or not; false when there is none.
    bool discard(Handle handle);

    bool is_claimed(Handle handle) const;
    Handle handle(Slot slot) const { return states_.handle(slot); }

    // The oldest message that is not claimed, and the one that was claimed first; or kNone.
    Slot oldest() const;
    Slot oldest_claimed() const { return claimed_.oldest(); }

    // Messages that searches may find, and those that are claimed.
    uint32_t size() const { return short_.size() + deep_.size(); }
    bool empty() const { return short_.empty() && deep_.size() == 0; }
    uint32_t claimed() const { return claimed_.size(); }

    // Messages stepped over in runs of the shared hash, and classes with a hash of their own.
    uint64_t steps() const { return deep_.steps(); }
    uint32_t own_hashes() const { return deep_.own_hashes(); }
    // How often the queue became too long for the short list.
    uint64_t times_deep() const { return times_deep_; }

  private:
    static constexpr size_t kNowhere = SIZE_MAX;  // no position of the short list

    struct Layout {
        SlotStates::State* states;
        ClaimedList::Link* links;
        UnexpectedIndex::Memory deep;
    };
    static Layout lay_out(const QueueConfig& config, Arena& arena);
    UnexpectedQueue(const QueueConfig& config, Arena arena);
    UnexpectedQueue(const QueueConfig& config, const Layout& layout);

    static bool matches(const ShortList::Entry& entry, uint64_t tag, uint64_t ignore,
                        uint32_t source) {
        if (!tags_match(entry.tag, tag, ignore)) {
            return false;
        }
        if (source == kAnySource) [[likely]] {
            return true;
        }
        return entry.source == source || entry.key == source;
    }

    size_t search(uint64_t candidates, uint64_t tag, uint64_t ignore, uint32_t source) const;
    Slot take_at(size_t position);
    Slot take_younger(uint64_t tag, uint64_t ignore, uint32_t source);
    Slot take_unhashed(uint64_t tag, uint64_t ignore, uint32_t source);
    Slot take_deep(uint64_t tag, uint64_t ignore, uint32_t source);
    bool holds(Slot slot) const;
    void go_deep();
    Handle append_deep(Slot slot, uint64_t tag, uint32_t source, uint32_t key);
    Handle append_beyond(Slot slot, uint64_t tag, uint32_t source, uint32_t key);

    ShortList short_;
    SlotStates states_;
    uint64_t times_deep_ = 0;
    ClaimedList claimed_;
    UnexpectedIndex deep_;
};

inline Handle UnexpectedQueue::append(Slot slot, uint64_t tag, uint32_t source, uint32_t key) {
    assert(slot < states_.capacity());
    if (deep_.size() != 0) [[unlikely]] {
        return append_deep(slot, tag, source, key);
    }
    if (short_.is_full()) [[unlikely]] {
        return append_beyond(slot, tag, source, key);
    }
    const uint32_t position = short_.next_position();
    ShortList::Entry& entry = short_.append(tag);
    entry.keep = UINT64_MAX;
    entry.source = source;
    entry.key = key;
    entry.slot = slot;
    return states_.enter(slot, position);
}

// Most often it is the oldest: nothing is hashed before that has been tried.
inline Slot UnexpectedQueue::take(uint64_t tag, uint64_t ignore, uint32_t source) {
    if (short_.empty()) {
        return deep_.size() == 0 ? kNone : take_deep(tag, ignore, source);
    }
    const size_t oldest = ShortList::first(short_.occupied());
    return matches(short_[oldest], tag, ignore, source) ? take_at(oldest)
                                                        : take_younger(tag, ignore, source);
}

inline Slot UnexpectedQueue::take_at(size_t position) {
    short_.erase(position);
    return short_[position].slot;
}

}  // namespace tagwire::match
