// SPDX-License-Identifier: BSD-3-Clause
// The posted receives of a queue that is not short.
//
// Receives are grouped in classes by ignore mask and kind of source; a hash finds
// the oldest match of each class, and between classes the posting sequence decides.
// Receives whose class has no number left are kept in a list that is scanned. Classes
// that go by key group are kept apart, so that a search pays for them only while there
// are some.
#pragma once

#include "lib/match/mask_classes.h"
#include "lib/match/run_index.h"

namespace tagwire::match {

class PostedIndex {
  public:
    struct Memory {
        RunIndex::Node* nodes;
        uint32_t* buckets;
        uint64_t* overflow_ignore;
    };
    static Memory lay_out(const QueueConfig& config, Arena& arena);

    PostedIndex(const QueueConfig& config, const Memory& memory);

    void insert(Slot slot, uint64_t tag, uint64_t ignore, uint32_t source, bool stays);

    Slot find(uint64_t tag, uint32_t source, uint32_t key) const;

    // As find, and removes it unless it stays.
    Slot take(uint64_t tag, uint32_t source, uint32_t key);

    bool holds(Slot slot) const { return index_.node(slot).order != kFree; }
    void remove(Slot slot);

    // For sorting by age.
    uint64_t order(Slot slot) const { return index_.node(slot).order; }

    uint32_t size() const { return size_; }
    uint32_t overflow_size() const { return overflow_size_; }
    uint64_t overflow_total() const { return overflow_total_; }

  private:
    // The low bits of a node's order hold its class, and whether it stays; the posting sequence
    // stands above them, so orders of different classes compare by age directly.
    static constexpr uint32_t kOrderBits = 8;
    static constexpr uint64_t kStays = 1u << 7;
    static constexpr uint32_t kClassMask = kStays - 1;
    static constexpr uint32_t kOverflowClass = kClassMask;
    static constexpr uint32_t kFirstKeyClass = MaskClasses::kMax;
    static_assert(2 * MaskClasses::kMax <= kOverflowClass);
    static constexpr uint64_t kFree = 0;  // the order of a free slot; sequences start at 1

    // One of those that a message may meet.
    struct Best {
        Slot slot = kNone;
        uint64_t order = UINT64_MAX;
    };

    Best search(uint64_t tag, uint32_t source) const;
    void search_class(const MaskClass& mask, uint64_t tag, const MaskClass::Source& source,
                      Best& best) const;
    Best search_uncommon(uint64_t tag, uint32_t source, uint32_t key) const;
    Slot take_uncommon(uint64_t tag, uint32_t source, uint32_t key);
    void insert_in(const MaskClass& mask, Slot slot, uint64_t tag, uint32_t source, uint64_t stays);
    void insert_slowly(Slot slot, uint64_t tag, uint64_t ignore, uint32_t source, uint64_t stays);
    void append_overflow(Slot slot, uint64_t tag, uint64_t ignore, uint32_t source, uint64_t stays);
    void remove_overflow(Slot slot);
    uint64_t next_order(uint32_t cls, uint64_t stays) {
        return next_sequence_++ << kOrderBits | stays | cls;
    }

    RunIndex index_;
    MaskClasses classes_;
    MaskClasses key_classes_;
    uint64_t next_sequence_ = 1;
    uint32_t size_ = 0;
    uint32_t uncommon_ = 0;  // receives that name a key group, or are in the scanned list
    uint64_t* overflow_ignore_;
    uint64_t overflow_total_ = 0;
    uint32_t overflow_size_ = 0;
    Slot overflow_first_ = kNone;
    Slot overflow_last_ = kNone;
};

}  // namespace tagwire::match
