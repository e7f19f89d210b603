// SPDX-License-Identifier: BSD-3-Clause
// Messages that no receive was posted for, searched by receives in arrival order.
//
// All messages stand in one list in arrival order, which is the truth. Each class
// of receives (ignore mask, directed or any source) has a hash over the front part
// of the list, up to its cursor: a search looks into the hash, which holds the older
// messages, and then walks on from the cursor, adding to the hash what it passes.
// So an arrival costs an append, a message is hashed at most once for a class, and
// only for classes that search for it; a new class starts with an empty hash. A
// receive whose class has no number left, or a short list, is served by a scan.
#pragma once

#include "lib/match/mask_classes.h"
#include "lib/match/run_index.h"

namespace tagwire::match {

class UnexpectedQueue {
  public:
    // Up to this length a scan is cheaper than keeping hashes.
    static constexpr uint32_t kShortList = 8;

    static size_t bytes_needed(const QueueConfig& config);

    UnexpectedQueue(const UnexpectedQueue&) = delete;
    UnexpectedQueue& operator=(const UnexpectedQueue&) = delete;

    // `memory` has bytes_needed(config) bytes, aligned to Arena::kAlignment, and outlives the
    // queue. Parts that belong to classes never used are never touched.
    UnexpectedQueue(const QueueConfig& config, void* memory);

    // A message arrived. The slot must be free; the source is a peer, never kAnySource.
    void append(Slot slot, uint64_t tag, uint32_t source);

    // The oldest message that a receive would take, or kNone; it stays in the queue.
    Slot find(uint64_t tag, uint64_t ignore, uint32_t source);

    // As find, and removes it.
    Slot take(uint64_t tag, uint64_t ignore, uint32_t source) {
        const Slot slot = find(tag, ignore, source);
        if (slot != kNone) {
            remove(slot);
        }
        return slot;
    }

    // Removes a message: claimed, discarded, or its sender is gone. Constant time for each class.
    void remove(Slot slot);

    // The oldest message, or kNone.
    Slot oldest() const { return messages_[end_].next == end_ ? kNone : messages_[end_].next; }

    uint32_t size() const { return size_; }

    // Searches that scanned a long list because their class had no number left.
    uint64_t overflow_searches() const { return overflow_searches_; }

  private:
    struct Message {
        uint64_t tag;
        uint32_t source;
        Slot next;
        Slot prev;
        uint32_t hashed;   // classes whose hash holds the message
        uint32_t cursors;  // classes whose cursor stands on it
    };
    static_assert(sizeof(Message) == 32);

    struct Layout;
    static Layout lay_out(const QueueConfig& config, Arena& arena);
    UnexpectedQueue(const QueueConfig& config, Arena arena);
    UnexpectedQueue(const QueueConfig& config, const Layout& layout);

    Slot scan(uint64_t tag, uint64_t ignore, uint32_t source) const;
    Slot walk_on(const MaskClass& mask, uint64_t tag, uint32_t source);
    void move_cursor(uint32_t cls, Slot to);

    RunIndex index_;  // a class's node of a slot is class * capacity + slot
    MaskClasses classes_;
    Message* messages_;  // one more than the capacity: the last is both ends of the list
    uint64_t overflow_searches_ = 0;
    Slot end_;
    uint32_t size_ = 0;
    Slot cursors_[MaskClasses::kMax];  // the last message that the class has hashed, or end_
};

}  // namespace tagwire::match
