// SPDX-License-Identifier: BSD-3-Clause
// Messages that no receive was posted for, searched by receives in arrival order.
//
// All messages stand in one list in arrival order, which is the truth; hashes over
// its front part make searches fast. A hash reaches up to its cursor: a search looks
// into the hash, which holds the older messages, and then walks on from the cursor,
// adding to the hash what it passes. So an arrival costs an append, and a message is
// hashed at most once for a hash, and only when searches reach it.
//
// All classes of receives (ignore mask, directed or any source) share one hash, over
// the tag bits that all of them keep: what matches a receive is in one run of it, in
// arrival order. A class whose searches step over many messages in their runs gets a
// hash of its own. A short list is scanned.
#pragma once

#include "lib/match/mask_classes.h"
#include "lib/match/run_index.h"

namespace tagwire::match {

class UnexpectedQueue {
  public:
    // Up to this length a scan is cheaper than keeping hashes.
    static constexpr uint32_t kShortList = 8;

    static size_t bytes_needed(const QueueConfig& config);

    // `memory` has bytes_needed(config) bytes, aligned to Arena::kAlignment, and outlives the
    // queue. Parts that belong to hashes never used are never touched. config.max_classes limits
    // the classes with a hash of their own.
    UnexpectedQueue(const QueueConfig& config, void* memory);
    UnexpectedQueue(const UnexpectedQueue&) = delete;
    UnexpectedQueue& operator=(const UnexpectedQueue&) = delete;

    // A message arrived. The slot must be free; the source is a peer, never kAnySource.
    void append(Slot slot, uint64_t tag, uint32_t source);

    // The oldest message that a receive would take, or kNone; it stays in the queue.
    Slot find(uint64_t tag, uint64_t ignore, uint32_t source);

    // As find, and removes it.
    Slot take(uint64_t tag, uint64_t ignore, uint32_t source);

    // Removes a message: claimed, discarded, or its sender is gone. Constant time for each hash.
    void remove(Slot slot);

    // The oldest message, or kNone.
    Slot oldest() const { return messages_[end_].next == end_ ? kNone : messages_[end_].next; }

    uint32_t size() const { return size_; }

    // Messages stepped over in runs of the shared hash, and classes with a hash of their own.
    uint64_t steps() const { return steps_; }
    uint32_t own_hashes() const { return static_cast<uint32_t>(std::popcount(own_)); }

  private:
    struct Message {
        uint64_t tag;
        uint32_t source;
        Slot next;
        Slot prev;
        uint32_t hashed;   // numbers of the hashes that hold the message
        uint32_t cursors;  // numbers of the hashes whose cursor stands on it
    };
    static_assert(sizeof(Message) == 32);

    struct Wanted {
        uint64_t tag;
        uint64_t ignore;
        uint32_t source;
    };

    // A hash of a class has the class's number; the shared one has the last.
    static constexpr uint32_t kMaxOwn = 31;
    // Steps that a search may make in its run before its class is charged.
    static constexpr uint32_t kFreeSteps = 8;
    // No hash of its own for less than the length of the list and this many steps.
    static constexpr uint32_t kOwnHashAtLeast = 64;

    struct Layout;
    static QueueConfig limited(const QueueConfig& config);
    static Layout lay_out(const QueueConfig& config, Arena& arena);
    UnexpectedQueue(const QueueConfig& config, Arena arena);
    UnexpectedQueue(const QueueConfig& config, const Layout& layout);

    bool matches(Slot slot, const Wanted& wanted) const {
        return tags_match(messages_[slot].tag, wanted.tag, wanted.ignore) &&
               sources_match(messages_[slot].source, wanted.source);
    }

    Slot scan(const Wanted& wanted) const;
    Slot search(const Wanted& wanted);
    Slot search_own(uint32_t cls, const Wanted& wanted);
    Slot search_run(Slot node, const Wanted& wanted);
    Slot walk_on(const MaskClass& mask, const Wanted& wanted);
    void widen_shared(const Wanted& wanted);
    void narrow_shared();
    void charge(const Wanted& wanted, uint32_t steps);
    void give_up_empty_hashes();
    void unlink(Slot slot);
    void move_cursor(uint32_t number, Slot to);

    RunIndex index_;     // the node of a slot in a hash is number * capacity + slot
    Message* messages_;  // one more than the capacity: the last is both ends of the list
    Slot end_;
    uint32_t size_ = 0;
    uint32_t own_ = 0;  // classes with a hash of their own
    MaskClass shared_;
    uint32_t entries_[kMaxOwn + 1] = {};
    Slot cursors_[kMaxOwn + 1];  // the last message that was hashed, or end_
    uint64_t steps_ = 0;
    uint64_t searches_ = 0;
    // What a class's searches cost beyond their free steps, which come back with time.
    struct Debt {
        uint64_t steps;
        uint64_t search;
    };
    Debt debts_[kMaxOwn] = {};
    MaskClasses classes_;
};

}  // namespace tagwire::match
