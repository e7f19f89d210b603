// SPDX-License-Identifier: BSD-3-Clause
// The set of mask classes in use: one for each (ignore mask, kind of source).
#pragma once

#include "lib/match/run_index.h"
#include "lib/match/types.h"

namespace tagwire::match {

enum class SourceKind : uint16_t { kAny, kPeer, kKey };

constexpr SourceKind kind_of(uint32_t source) {
    return source == kAnySource       ? SourceKind::kAny
           : (source & kKeyFlag) != 0 ? SourceKind::kKey
                                      : SourceKind::kPeer;
}

// Two to a cache line: a search goes through all that have entries.
struct MaskClass {
    uint64_t keep;      // ~ignore
    uint64_t salt;      // of the class, in the hash
    uint64_t directed;  // all ones when the source is part of the hash
    uint32_t who;       // the class above the source's bits, and those all ones for any source
    uint16_t number;
    SourceKind kind;

    static constexpr uint32_t kSourceBits = 24;
    static constexpr uint32_t kSourceMask = (1u << kSourceBits) - 1;

    // What messages bring along: a peer's number or a key's, without flag. Multiplied once for
    // all classes that a message is looked up in.
    struct Source {
        explicit constexpr Source(uint32_t source)
            : number(source & kSourceMask), place(number * 0x9e3779b97f4a7c15u) {}
        uint32_t number;
        uint64_t place;
    };

    RunIndex::Key key(uint64_t tag, const Source& source) const {
        return {tag & keep, (source.place & directed) + salt, source.number | who};
    }
    RunIndex::Key key(uint64_t tag, uint32_t source) const { return key(tag, Source(source)); }

    // Of a message's two names, the one that this class goes by.
    RunIndex::Key key(uint64_t tag, uint32_t source, uint32_t key_group) const {
        return key(tag, kind == SourceKind::kKey ? key_group : source);
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

    // Numbers its classes from `base` on.
    explicit MaskClasses(const QueueConfig& config, uint32_t base = 0)
        : salt_(mix(config.seed + 2)), base_(base), max_(limit(config.max_classes)) {}

    struct Acquired {
        uint32_t cls;
        bool fresh;  // the number stands for another class than before, or for its first
    };

    // The class of a receive, or kNoClass when it has no number.
    uint32_t find(uint64_t ignore, uint32_t source) const {
        const uint32_t cls = find_quickly(ignore, source);
        return cls != kNoClass ? cls : find_slowly(ignore, source);
    }

    // find() without the search when that has been asked for before; kNoClass otherwise.
    uint32_t find_quickly(uint64_t ignore, uint32_t source) const {
        const uint32_t hint = hints_[hint_of(~ignore, kind_of(source))];
        return is(hint, ~ignore, kind_of(source)) ? base_ + hint : kNoClass;
    }

    // As find, and gives it a number. kNoClass when all numbers are taken by classes that have
    // entries.
    Acquired acquire(uint64_t ignore, uint32_t source) {
        uint8_t& hint = hints_[hint_of(~ignore, kind_of(source))];
        if (is(hint, ~ignore, kind_of(source))) {
            return {base_ + hint, false};
        }
        return acquire_slowly(ignore, source, hint);
    }

    const MaskClass& operator[](uint32_t cls) const { return classes_[cls - base_]; }

    // The classes that have entries, in no order.
    const MaskClass* begin() const { return live_; }
    const MaskClass* end() const { return live_ + live_count_; }

    void entry_added(uint32_t cls) {
        if (entries_[cls - base_]++ == 0) {
            enliven(cls - base_);
        }
    }

    void entry_removed(uint32_t cls) {
        if (--entries_[cls - base_] == 0) {
            retire(cls - base_);
        }
    }

  private:
    static constexpr uint32_t kHints = 64;

    static uint32_t hint_of(uint64_t keep, SourceKind kind) {
        return static_cast<uint32_t>((keep * 0x9e3779b97f4a7c15u) >> 58) ^
               static_cast<uint32_t>(kind);
    }

    bool is(uint32_t index, uint64_t keep, SourceKind kind) const {
        return classes_[index].keep == keep && classes_[index].kind == kind && index < known_;
    }

    uint32_t find_slowly(uint64_t ignore, uint32_t source) const;
    Acquired acquire_slowly(uint64_t ignore, uint32_t source, uint8_t& hint);

    void enliven(uint32_t index) {
        position_[index] = static_cast<uint8_t>(live_count_);
        live_[live_count_++] = classes_[index];
    }

    void retire(uint32_t index) {
        const MaskClass& last = live_[--live_count_];
        const uint32_t position = position_[index];
        position_[last.number - base_] = static_cast<uint8_t>(position);
        live_[position] = last;
    }

    MaskClass live_[kMax] = {};
    uint32_t live_count_ = 0;
    uint32_t known_ = 0;
    uint32_t entries_[kMax] = {};
    uint8_t hints_[kHints] = {};
    uint8_t position_[kMax] = {};  // in live_
    MaskClass classes_[kMax] = {};
    uint64_t salt_;
    uint32_t base_;
    uint32_t max_;
};

}  // namespace tagwire::match
