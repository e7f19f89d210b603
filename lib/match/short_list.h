// SPDX-License-Identifier: BSD-3-Clause
// The entries of a queue while it is short: an array in order of age, with gaps
// where entries left.
//
// A small table tells for each hash of a tag which positions have it, as bits of one
// word, so the entries that a search has to look at are the bits left of an AND, and
// the lowest is the oldest. The hash covers the tag bits that all masks keep, so one
// hash serves every mask. A mask that keeps too little for that is left out of it: its
// entries are looked at always, or its searches look at every entry.
#pragma once

#include <bit>
#include <cassert>

#include "lib/match/slot_states.h"

namespace tagwire::match {

class ShortList {
  public:
    struct Entry {
        uint64_t tag;
        uint64_t keep;    // receives: ~ignore; messages: every bit
        uint32_t source;  // receives: the wanted one
        uint32_t key;     // messages: the sender's key group
        uint32_t slot;    // the low bits; above them the caller's
        uint32_t unused;
    };
    static_assert(sizeof(Entry) == 32);

    static constexpr uint32_t kPositions = 64;
    // More entries than this are better off in the hashes of a long queue.
    static constexpr uint32_t kMost = kPositions / 2;
    // The hash covers at least this many bits of the tag.
    static constexpr int kLeastBits = 8;
    // After so many times compact() the hash covers what the masks of that time keep.
    static constexpr uint32_t kRenewAfter = 16;

    // Slots are the bits of `slot_mask` in Entry::slot.
    ShortList(uint64_t seed, uint32_t slot_mask) : factor_(mix(seed) | 1), slot_mask_(slot_mask) {}

    bool empty() const { return occupied_ == 0; }
    uint32_t size() const { return static_cast<uint32_t>(std::popcount(occupied_)); }
    uint64_t occupied() const { return occupied_; }  // a bit for each position
    const Entry& operator[](size_t position) const { return entries_[position]; }
    Slot slot(size_t position) const { return entries_[position].slot & slot_mask_; }

    static size_t first(uint64_t positions) {
        return static_cast<size_t>(std::countr_zero(positions));
    }

    bool holds(uint32_t position, Slot wanted) const {
        return position < kPositions && (occupied_ >> position & 1) != 0 &&
               slot(position) == wanted;
    }

    // Whether there is a position left, and whether compact() makes one.
    bool is_full() const { return end_ == kPositions; }
    bool has_gaps() const { return size() <= kMost; }

    // Whether the hash covers no more than these bits. If it does, an entry with them needs
    // admit() before append(), and a search candidates_for() instead of candidates().
    bool is_hashed(uint64_t keep) const { return (keep_ & ~keep) == 0; }

    // Where the next append() puts its entry.
    uint32_t next_position() const { return end_; }

    // The list is not full. The rest of the entry is the caller's to set.
    Entry& append(uint64_t tag) {
        const uint32_t position = end_++;
        occupied_ |= uint64_t{1} << position;
        positions_[hash(tag)] |= uint64_t{1} << position;
        Entry& entry = entries_[position];
        entry.tag = tag;
        return entry;
    }

    void admit(uint64_t keep) {
        if (covers_enough(keep)) {
            narrow(keep);
        } else {
            always_ |= uint64_t{1} << end_;
        }
    }

    void erase(size_t position) { occupied_ &= ~(uint64_t{1} << position); }
    void clear() { occupied_ = 0; }

    // Positions that an entry for this tag may be at.
    uint64_t candidates(uint64_t tag) const {
        return (positions_[hash(tag)] | always_) & occupied_;
    }

    uint64_t candidates_for(uint64_t tag, uint64_t keep) {
        if (!covers_enough(keep)) {
            return occupied_;
        }
        narrow(keep);
        return candidates(tag);
    }

    // Closes the gaps.
    void compact(SlotStates& states);

  private:
    static constexpr int kHashBits = 7;

    uint64_t hash(uint64_t tag) const { return (tag & keep_) * factor_ >> (64 - kHashBits); }
    bool covers_enough(uint64_t keep) const { return std::popcount(keep_ & keep) >= kLeastBits; }
    void narrow(uint64_t keep);
    void hash_all();
    void renew();

    alignas(64) Entry entries_[kPositions];
    uint64_t occupied_ = 0;
    uint64_t always_ = 0;  // positions of entries that the hash is silent on
    uint64_t keep_ = UINT64_MAX;
    uint64_t factor_;
    uint32_t end_ = 0;  // positions from here on were not used since compact()
    uint32_t compacted_ = 0;
    uint32_t slot_mask_;
    alignas(64) uint64_t positions_[1 << kHashBits] = {};
};

}  // namespace tagwire::match
