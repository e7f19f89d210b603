// SPDX-License-Identifier: BSD-3-Clause
#include "lib/match/posted_queue.h"

namespace tagwire::match {

struct PostedQueue::Layout {
    RunIndex::Node* nodes;
    uint32_t* tables;
    uint64_t* overflow_ignore;
    uint32_t buckets_each;
};

PostedQueue::Layout PostedQueue::lay_out(const QueueConfig& config, Arena& arena) {
    Layout layout;
    layout.buckets_each = RunIndex::buckets_for(config.capacity);
    layout.nodes = arena.take<RunIndex::Node>(config.capacity);
    layout.overflow_ignore = arena.take<uint64_t>(config.capacity);
    layout.tables =
        arena.take<uint32_t>(size_t{layout.buckets_each} * MaskClasses::limit(config.max_classes));
    return layout;
}

size_t PostedQueue::bytes_needed(const QueueConfig& config) {
    Arena arena(nullptr);
    lay_out(config, arena);
    return arena.used();
}

PostedQueue::PostedQueue(const QueueConfig& config, void* memory)
    : PostedQueue(config, Arena(memory)) {}

PostedQueue::PostedQueue(const QueueConfig& config, Arena arena)
    : PostedQueue(config, lay_out(config, arena)) {}

PostedQueue::PostedQueue(const QueueConfig& config, const Layout& layout)
    : index_(layout.nodes, layout.tables, layout.buckets_each, config.seed),
      classes_(config, index_),
      overflow_ignore_(layout.overflow_ignore),
      capacity_(config.capacity) {
    assert(config.capacity > 0 && config.capacity <= kMaxCapacity);
    for (Slot slot = 0; slot < capacity_; ++slot) {
        index_.node(slot).order = kFree;
    }
}

void PostedQueue::post(Slot slot, uint64_t tag, uint64_t ignore, uint32_t source) {
    assert(slot < capacity_ && index_.node(slot).order == kFree);
    ++size_;
    const uint64_t sequence = next_sequence_++ << kClassBits;
    const uint32_t cls = classes_.acquire(ignore, source).cls;
    if (cls == MaskClasses::kNoClass) [[unlikely]] {
        append_overflow(slot, sequence | kOverflowClass, tag, ignore, source);
        return;
    }
    classes_.entry_added(cls);
    const MaskClass& mask = classes_[cls];
    index_.insert(mask.table, slot, mask.key(tag, source));
    index_.node(slot).order = sequence | cls;
}

Slot PostedQueue::find(uint64_t tag, uint32_t source) const {
    return search(tag, source);
}

Slot PostedQueue::take(uint64_t tag, uint32_t source) {
    const Slot slot = search(tag, source);
    if (slot == kNone) {
        return kNone;
    }
    const uint32_t cls = index_.node(slot).order & kClassMask;
    if (cls == kOverflowClass) [[unlikely]] {
        remove(slot);
        return slot;
    }
    --size_;
    index_.node(slot).order = kFree;
    classes_.entry_removed(cls);
    index_.remove_first(slot);
    return slot;
}

void PostedQueue::remove(Slot slot) {
    assert(slot < capacity_ && index_.node(slot).order != kFree);
    --size_;
    const uint32_t cls = index_.node(slot).order & kClassMask;
    index_.node(slot).order = kFree;
    if (cls == kOverflowClass) [[unlikely]] {
        remove_overflow(slot);
        return;
    }
    classes_.entry_removed(cls);
    index_.remove(slot);
}

inline Slot PostedQueue::search(uint64_t tag, uint32_t source) const {
    const uint64_t source_place = MaskClass::source_place(source);
    Slot best = kNone;
    uint64_t best_order = UINT64_MAX;
    for (const MaskClass& mask : classes_) {
        const Slot slot = index_.find(mask.table, mask.key(tag, source, source_place));
        if (slot != kNone && index_.node(slot).order < best_order) {
            best = slot;
            best_order = index_.node(slot).order;
        }
    }
    if (overflow_first_ != kNone) [[unlikely]] {
        best = scan_overflow(tag, source, best);
    }
    return best;
}

Slot PostedQueue::oldest() const {
    Slot best = kNone;
    uint64_t best_order = UINT64_MAX;
    for (Slot slot = 0; slot < capacity_; ++slot) {
        if (index_.node(slot).order != kFree && index_.node(slot).order < best_order) {
            best = slot;
            best_order = index_.node(slot).order;
        }
    }
    return best;
}

void PostedQueue::append_overflow(Slot slot, uint64_t order, uint64_t tag, uint64_t ignore,
                                  uint32_t source) {
    ++overflow_size_;
    ++overflow_total_;
    overflow_ignore_[slot] = ignore;
    RunIndex::Node& node = index_.node(slot);
    node.tag = tag;
    node.order = order;
    node.source = source;
    node.next = kNone;
    node.prev = overflow_last_;
    if (overflow_last_ == kNone) {
        overflow_first_ = slot;
    } else {
        index_.node(overflow_last_).next = slot;
    }
    overflow_last_ = slot;
}

void PostedQueue::remove_overflow(Slot slot) {
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

// The list is in posting order: nothing behind an entry younger than `best` can win.
Slot PostedQueue::scan_overflow(uint64_t tag, uint32_t source, Slot best) const {
    const uint64_t limit = best == kNone ? UINT64_MAX : index_.node(best).order;
    for (Slot slot = overflow_first_; slot != kNone && index_.node(slot).order < limit;
         slot = index_.node(slot).next) {
        if (tags_match(tag, index_.node(slot).tag, overflow_ignore_[slot]) &&
            sources_match(source, index_.node(slot).source)) {
            return slot;
        }
    }
    return best;
}

}  // namespace tagwire::match
