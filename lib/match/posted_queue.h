// SPDX-License-Identifier: BSD-3-Clause
// Posted receives, searched by incoming messages.
//
// The receive that was posted first among those that match wins (fi_tagged(3)). While
// the queue is short, all receives are in a ShortList; when it has grown too long for
// that, they all are in a PostedIndex until the queue is empty again.
#pragma once

#include <vector>

#include "lib/match/posted_index.h"
#include "lib/match/short_list.h"

namespace tagwire::match {

class PostedQueue {
  public:
    // What a receive does when it has matched.
    enum class Life : uint32_t {
        kOnce = 0,         // leaves the queue
        kStays = 1u << 31  // matches again and again until it is removed (FI_MULTI_RECV)
    };

    static size_t bytes_needed(const QueueConfig& config);

    PostedQueue(const PostedQueue&) = delete;
    PostedQueue& operator=(const PostedQueue&) = delete;

    // `memory` has bytes_needed(config) bytes, aligned to Arena::kAlignment, and outlives the
    // queue.
    PostedQueue(const QueueConfig& config, void* memory);

    // The slot must be free. A receive of any source passes kAnySource, one of a key group's
    // key_group(key).
    Handle post(Slot slot, uint64_t tag, uint64_t ignore, uint32_t source, Life life = Life::kOnce);

    // The receive that a message with `tag` belongs to, or kNone; it stays posted. The sender is
    // `source`, and its key group is `key`.
    Slot find(uint64_t tag, uint32_t source, uint32_t key = kNoKey) const;

    // As find, and removes the receive if its life is kOnce.
    Slot take(uint64_t tag, uint32_t source, uint32_t key = kNoKey);

    // Removes a posted receive, in constant time.
    void remove(Slot slot);

    // The same if this stay of it has not ended; false otherwise.
    bool cancel(Handle handle);

    bool is_posted(Handle handle) const;
    Handle handle(Slot slot) const { return states_.handle(slot); }

    // All posted receives in posting order. Not for the data path: it allocates and sorts.
    std::vector<Slot> slots() const;

    uint32_t size() const { return short_.size() + deep_.size(); }

    // The oldest receive whose slot `wanted` says yes to; kNone when there is none. Only while
    // the queue is short.
    bool is_short() const { return deep_.size() == 0; }
    template <typename Wanted>
    Slot oldest_short(Wanted wanted) const {
        for (uint64_t left = short_.occupied(); left != 0; left &= left - 1) {
            if (wanted(short_.slot(ShortList::first(left)))) {
                return short_.slot(ShortList::first(left));
            }
        }
        return kNone;
    }

    // Receives now in the list that is scanned for want of a class, and how many ever were.
    uint32_t overflow_size() const { return deep_.overflow_size(); }
    uint64_t overflow_total() const { return deep_.overflow_total(); }
    // How often the queue became too long for the short list.
    uint64_t times_deep() const { return times_deep_; }

  private:
    static constexpr uint32_t kSlotMask = ~static_cast<uint32_t>(Life::kStays);

    static constexpr size_t kNowhere = SIZE_MAX;  // no position of the short list

    struct Layout {
        SlotStates::State* states;
        PostedIndex::Memory deep;
    };
    static Layout lay_out(const QueueConfig& config, Arena& arena);
    PostedQueue(const QueueConfig& config, Arena arena);
    PostedQueue(const QueueConfig& config, const Layout& layout);

    static bool matches(const ShortList::Entry& entry, uint64_t tag, uint32_t source,
                        uint32_t key) {
        return ((entry.tag ^ tag) & entry.keep) == 0 && sources_match(source, key, entry.source);
    }

    size_t search_younger(uint64_t tag, uint32_t source, uint32_t key) const;
    Slot take_younger(uint64_t tag, uint32_t source, uint32_t key);
    Slot take_at(size_t position);
    bool holds(Slot slot) const;
    void go_deep();
    Handle post_short(uint32_t position, Slot slot, uint64_t tag, uint64_t ignore, uint32_t source,
                      Life life);
    Handle post_unhashed(Slot slot, uint64_t tag, uint64_t ignore, uint32_t source, Life life);
    Handle post_deep(Slot slot, uint64_t tag, uint64_t ignore, uint32_t source, Life life);
    Handle post_beyond(Slot slot, uint64_t tag, uint64_t ignore, uint32_t source, Life life);

    ShortList short_;
    SlotStates states_;
    uint64_t times_deep_ = 0;
    PostedIndex deep_;
};

// Most often it is the oldest: nothing is hashed before that has been tried.
inline Slot PostedQueue::take(uint64_t tag, uint32_t source, uint32_t key) {
    if (short_.empty()) {
        return deep_.size() == 0 ? kNone : deep_.take(tag, source, key);
    }
    const size_t oldest = ShortList::first(short_.occupied());
    return matches(short_[oldest], tag, source, key) ? take_at(oldest)
                                                     : take_younger(tag, source, key);
}

inline Slot PostedQueue::take_at(size_t position) {
    const uint32_t slot = short_[position].slot;
    if ((slot & ~kSlotMask) != 0) {
        return slot & kSlotMask;
    }
    short_.erase(position);
    return slot;
}

inline Handle PostedQueue::post(Slot slot, uint64_t tag, uint64_t ignore, uint32_t source,
                                Life life) {
    assert(slot < states_.capacity());
    if (deep_.size() != 0) [[unlikely]] {
        return post_deep(slot, tag, ignore, source, life);
    }
    if (short_.is_full()) [[unlikely]] {
        return post_beyond(slot, tag, ignore, source, life);
    }
    const uint32_t position = short_.next_position();
    if (!short_.is_hashed(~ignore)) [[unlikely]] {
        return post_unhashed(slot, tag, ignore, source, life);
    }
    return post_short(position, slot, tag, ignore, source, life);
}

inline Handle PostedQueue::post_short(uint32_t position, Slot slot, uint64_t tag, uint64_t ignore,
                                      uint32_t source, Life life) {
    ShortList::Entry& entry = short_.append(tag);
    entry.keep = ~ignore;
    entry.source = source;
    entry.slot = slot | static_cast<uint32_t>(life);
    return states_.enter(slot, position);
}

}  // namespace tagwire::match
