// SPDX-License-Identifier: BSD-3-Clause
// The set of mask classes in use: one for each (ignore mask, directed or any).
#pragma once

#include "lib/match/run_index.h"
#include "lib/match/types.h"

namespace tagwire::match {

// Two to a cache line: a search goes through all that have entries.
struct MaskClass {
    uint64_t keep;          // ~ignore
    uint64_t directed;      // all ones for a directed class: the source is part of the hash
    RunIndex::Table table;  // the class's buckets
    uint32_t any_source;    // all ones otherwise: the source of the key is kAnySource
    uint32_t cls;

    // Multiplied once for all classes that a message is looked up in.
    static constexpr uint64_t source_place(uint32_t source) { return source * 0x9e3779b97f4a7c15u; }

    RunIndex::Key key(uint64_t tag, uint32_t source) const {
        return key(tag, source, source_place(source));
    }
    RunIndex::Key key(uint64_t tag, uint32_t source, uint64_t source_place) const {
        return {tag & keep, source_place & directed, source | any_source};
    }
};
static_assert(sizeof(MaskClass) == 32);

class MaskClasses {
  public:
    static constexpr uint32_t kMax = 32;  // sets of classes are kept as bits of a uint32_t
    static constexpr uint32_t kNoClass = UINT32_MAX;

    // What QueueConfig::max_classes stands for.
    static constexpr uint32_t limit(uint32_t configured) {
        return configured == 0 || configured > kMax ? kMax : configured;
    }

    MaskClasses(const QueueConfig& config, const RunIndex& index)
        : index_(index), max_(limit(config.max_classes)) {}

    struct Acquired {
        uint32_t cls;
        bool fresh;  // the number stands for another class than before, or for its first
    };

    // The class of a receive, or kNoClass when it has no number.
    uint32_t find(uint64_t ignore, uint32_t source) const {
        const uint64_t keep = ~ignore;
        const uint32_t any_source = source == kAnySource ? UINT32_MAX : 0;
        const uint8_t hint = hints_[hint_of(keep, any_source)];
        return is(hint, keep, any_source) ? hint : find_slowly(keep, any_source);
    }

    // As find, and gives it a number; its table is ready for use. kNoClass when all numbers are
    // taken by classes that have entries.
    Acquired acquire(uint64_t ignore, uint32_t source) {
        const uint64_t keep = ~ignore;
        const uint32_t any_source = source == kAnySource ? UINT32_MAX : 0;
        uint8_t& hint = hints_[hint_of(keep, any_source)];
        if (is(hint, keep, any_source)) {
            return {hint, false};
        }
        return acquire_slowly(keep, any_source, hint);
    }

    const MaskClass& operator[](uint32_t cls) const { return classes_[cls]; }

    // The classes that have entries, in no order.
    const MaskClass* begin() const { return live_; }
    const MaskClass* end() const { return live_ + live_count_; }

    void entry_added(uint32_t cls) {
        if (entries_[cls]++ == 0) {
            enliven(cls);
        }
    }

    void entry_removed(uint32_t cls) {
        if (--entries_[cls] == 0) {
            retire(cls);
        }
    }

  private:
    static constexpr uint32_t kHints = 64;

    static uint32_t hint_of(uint64_t keep, uint32_t any_source) {
        return static_cast<uint32_t>((keep * 0x9e3779b97f4a7c15u) >> 58) ^ (any_source & 1);
    }

    bool is(uint32_t cls, uint64_t keep, uint32_t any_source) const {
        return classes_[cls].keep == keep && classes_[cls].any_source == any_source && cls < known_;
    }

    uint32_t find_slowly(uint64_t keep, uint32_t any_source) const;
    Acquired acquire_slowly(uint64_t keep, uint32_t any_source, uint8_t& hint);
    void enliven(uint32_t cls);
    void retire(uint32_t cls);

    MaskClass live_[kMax] = {};
    uint32_t live_count_ = 0;
    uint32_t known_ = 0;
    uint32_t entries_[kMax] = {};
    uint8_t hints_[kHints] = {};
    uint8_t position_[kMax] = {};  // in live_
    MaskClass classes_[kMax] = {};
    const RunIndex& index_;
    uint32_t max_;
};

}  // namespace tagwire::match
