// SPDX-License-Identifier: BSD-3-Clause
#include "lib/match/posted_index.h"

namespace tagwire::match {

PostedIndex::Memory PostedIndex::lay_out(const QueueConfig& config, Arena& arena) {
    Memory memory;
    memory.nodes = arena.take<RunIndex::Node>(config.capacity);
    memory.buckets = arena.take<uint32_t>(RunIndex::buckets_for(config.capacity));
    memory.overflow_ignore = arena.take<uint64_t>(config.capacity);
    return memory;
}

PostedIndex::PostedIndex(const QueueConfig& config, const Memory& memory)
    : index_(memory.nodes, memory.buckets, RunIndex::buckets_for(config.capacity), config.seed),
      classes_(config),
      key_classes_(config, kFirstKeyClass),
      overflow_ignore_(memory.overflow_ignore) {
    for (Slot slot = 0; slot < config.capacity; ++slot) {
        index_.node(slot).order = kFree;
    }
}

void PostedIndex::insert(Slot slot, uint64_t tag, uint64_t ignore, uint32_t source, bool stays) {
    assert(index_.node(slot).order == kFree);
    ++size_;
    const uint64_t stays_bit = stays ? kStays : 0;
    const uint32_t cls = classes_.find_quickly(ignore, source);
    if (cls == MaskClasses::kNoClass) [[unlikely]] {
        insert_slowly(slot, tag, ignore, source, stays_bit);
        return;
    }
    classes_.entry_added(cls);
    insert_in(classes_[cls], slot, tag, source, stays_bit);
}

inline void PostedIndex::insert_in(const MaskClass& mask, Slot slot, uint64_t tag, uint32_t source,
                                   uint64_t stays) {
    index_.insert(slot, mask.key(tag, source));
    index_.node(slot).order = next_order(mask.number, stays);
}

void PostedIndex::insert_slowly(Slot slot, uint64_t tag, uint64_t ignore, uint32_t source,
                                uint64_t stays) {
    const bool keyed = is_key_group(source);
    MaskClasses& classes = keyed ? key_classes_ : classes_;
    const uint32_t cls = classes.acquire(ignore, source).cls;
    if (cls == MaskClasses::kNoClass) {
        append_overflow(slot, tag, ignore, source, stays);
        return;
    }
    uncommon_ += keyed;
    classes.entry_added(cls);
    insert_in(classes[cls], slot, tag, source, stays);
}

Slot PostedIndex::find(uint64_t tag, uint32_t source, uint32_t key) const {
    return uncommon_ == 0 ? search(tag, source).slot : search_uncommon(tag, source, key).slot;
}

Slot PostedIndex::take(uint64_t tag, uint32_t source, uint32_t key) {
    if (uncommon_ != 0) [[unlikely]] {
        return take_uncommon(tag, source, key);
    }
    const Best best = search(tag, source);
    if (best.slot == kNone || (best.order & kStays) != 0) {
        return best.slot;
    }
    --size_;
    index_.node(best.slot).order = kFree;
    classes_.entry_removed(best.order & kClassMask);
    index_.remove_first(best.slot);
    return best.slot;
}

Slot PostedIndex::take_uncommon(uint64_t tag, uint32_t source, uint32_t key) {
    const Best best = search_uncommon(tag, source, key);
    if (best.slot != kNone && (best.order & kStays) == 0) {
        remove(best.slot);
    }
    return best.slot;
}

void PostedIndex::remove(Slot slot) {
    const uint32_t cls = index_.node(slot).order & kClassMask;
    assert(index_.node(slot).order != kFree);
    --size_;
    index_.node(slot).order = kFree;
    if (cls == kOverflowClass) {
        remove_overflow(slot);
        return;
    }
    if (cls >= kFirstKeyClass) {
        --uncommon_;
        key_classes_.entry_removed(cls);
    } else {
        classes_.entry_removed(cls);
    }
    index_.remove(slot);
}

inline PostedIndex::Best PostedIndex::search(uint64_t tag, uint32_t source) const {
    const MaskClass::Source from(source);
    Best best;
    for (const MaskClass& mask : classes_) {
        search_class(mask, tag, from, best);
    }
    return best;
}

inline void PostedIndex::search_class(const MaskClass& mask, uint64_t tag,
                                      const MaskClass::Source& source, Best& best) const {
    const Slot slot = index_.find(mask.key(tag, source));
    if (slot != kNone && index_.node(slot).order < best.order) {
        best = {slot, index_.node(slot).order};
    }
}

// The scanned list is in posting order: nothing behind an entry younger than the best can win.
PostedIndex::Best PostedIndex::search_uncommon(uint64_t tag, uint32_t source, uint32_t key) const {
    Best best = search(tag, source);
    const MaskClass::Source from(key);
    for (const MaskClass& mask : key_classes_) {
        search_class(mask, tag, from, best);
    }
    for (Slot slot = overflow_first_; slot != kNone && index_.node(slot).order < best.order;
         slot = index_.node(slot).next) {
        const RunIndex::Node& node = index_.node(slot);
        if (tags_match(tag, node.tag, overflow_ignore_[slot]) &&
            sources_match(source, key, node.who)) {
            return {slot, node.order};
        }
    }
    return best;
}

void PostedIndex::append_overflow(Slot slot, uint64_t tag, uint64_t ignore, uint32_t source,
                                  uint64_t stays) {
    ++uncommon_;
    ++overflow_size_;
    ++overflow_total_;
    overflow_ignore_[slot] = ignore;
    RunIndex::Node& node = index_.node(slot);
    node.tag = tag;
    node.order = next_order(kOverflowClass, stays);
    node.who = source;
    node.next = kNone;
    node.prev = overflow_last_;
    if (overflow_last_ == kNone) {
        overflow_first_ = slot;
    } else {
        index_.node(overflow_last_).next = slot;
    }
    overflow_last_ = slot;
}

void PostedIndex::remove_overflow(Slot slot) {
    --uncommon_;
    --overflow_size_;
    const RunIndex::Node& node = index_.node(slot);
    if (node.prev == kNone) {
        overflow_first_ = node.next;
    } else {
        index_.node(node.prev).next = node.next;
    }
    if (node.next == kNone) {
        overflow_last_ = node.prev;
    } else {
        index_.node(node.next).prev = node.prev;
    }
}

}  // namespace tagwire::match
