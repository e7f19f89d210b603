// SPDX-License-Identifier: BSD-3-Clause
// The unexpected messages of a queue that is not short.
//
// All messages stand in one list in arrival order, which is the truth; hashes over
// its front part make searches fast. A hash reaches up to its cursor: a search looks
// into the hash, which holds the older messages, and then walks on from the cursor,
// adding to the hash what it passes. So an arrival costs an append, and a message is
// hashed at most once for a hash, and only when searches reach it.
//
// All classes of receives (ignore mask, kind of source) share one hash, over the tag
// bits that all of them keep: what matches a receive is in one run of it, in arrival
// order. A class whose searches step over many messages in their runs gets a hash of
// its own.
#pragma once

#include "lib/match/mask_classes.h"
#include "lib/match/run_index.h"

namespace tagwire::match {

class UnexpectedIndex {
  public:
    // Up to this length a scan is cheaper than the hashes.
    static constexpr uint32_t kScanned = 8;

    struct Message;
    struct Memory {
        Message* messages;
        RunIndex::Node* nodes;
        uint32_t* buckets;
    };
    static Memory lay_out(const QueueConfig& config, Arena& arena);

    // config.max_classes limits the classes with a hash of their own.
    UnexpectedIndex(const QueueConfig& config, const Memory& memory);
    UnexpectedIndex(const UnexpectedIndex&) = delete;
    UnexpectedIndex& operator=(const UnexpectedIndex&) = delete;

    void append(Slot slot, uint64_t tag, uint32_t source, uint32_t key);
    Slot find(uint64_t tag, uint64_t ignore, uint32_t source);
    Slot take(uint64_t tag, uint64_t ignore, uint32_t source);
    // Constant time for each hash.
    void remove(Slot slot);

    Slot oldest() const;
    uint32_t size() const { return size_; }

    // Messages stepped over in runs of the shared hash, and classes with a hash of their own.
    uint64_t steps() const { return steps_; }
    uint32_t own_hashes() const { return static_cast<uint32_t>(std::popcount(own_)); }

    struct Message {
        uint64_t tag;
        uint32_t source;
        uint32_t key;
        Slot next;
        Slot prev;
        uint32_t hashed;   // numbers of the hashes that hold the message
        uint32_t cursors;  // numbers of the hashes whose cursor stands on it
    };
    static_assert(sizeof(Message) == 32);

  private:
    struct Wanted {
        uint64_t tag;
        uint64_t ignore;
        uint32_t source;  // a peer, a key group, or any
    };

    // A hash of a class has the class's number; the shared one has the last.
    static constexpr uint32_t kMaxOwn = 31;
    // Steps that a search may make in its run before its class is charged.
    static constexpr uint32_t kFreeSteps = 8;
    // No hash of its own for less than the length of the list and this many steps.
    static constexpr uint32_t kOwnHashAtLeast = 64;

    static QueueConfig limited(const QueueConfig& config);
    // Keeps everything, for the classes to come.
    static MaskClass shared_class(uint32_t number) {
        return {UINT64_MAX,
                0,
                UINT64_MAX,
                number << MaskClass::kSourceBits,
                static_cast<uint16_t>(number),
                SourceKind::kPeer};
    }

    // The shared hash covers nothing that this class ignores.
    bool is_shared(const Wanted& wanted) const {
        return (shared_.keep & wanted.ignore) == 0 &&
               (shared_.directed == 0 || kind_of(wanted.source) == SourceKind::kPeer);
    }

    bool matches(Slot slot, const Wanted& wanted) const {
        return tags_match(messages_[slot].tag, wanted.tag, wanted.ignore) &&
               sources_match(messages_[slot].source, messages_[slot].key, wanted.source);
    }

    Slot scan(const Wanted& wanted) const;
    Slot search_quickly(const Wanted& wanted);
    Slot search(const Wanted& wanted);
    Slot take_slowly(uint64_t tag, uint64_t ignore, uint32_t source);
    Slot search_own(uint32_t cls, const Wanted& wanted);
    Slot search_run(Slot node, const Wanted& wanted);
    Slot walk_on(const MaskClass& mask, const Wanted& wanted);
    void widen_shared(const Wanted& wanted);
    void narrow_shared();
    void charge(const Wanted& wanted, uint32_t steps);
    void give_up_empty_hashes();
    void unlink(Slot slot);
    void forget_hashed(uint32_t number);
    void move_cursor(uint32_t number, Slot to);

    RunIndex index_;     // the node of a slot in a hash is number * capacity + slot
    Message* messages_;  // one more than the capacity: the last is both ends of the list
    Slot end_;
    uint32_t size_ = 0;
    uint32_t own_ = 0;  // classes with a hash of their own
    MaskClass shared_;
    uint32_t shared_base_;  // its node of slot 0
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
