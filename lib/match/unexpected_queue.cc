// SPDX-License-Identifier: BSD-3-Clause
#include "lib/match/unexpected_queue.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace tagwire::match {

struct UnexpectedQueue::Layout {
    Message* messages;
    RunIndex::Node* nodes;
    uint32_t* tables;
    uint32_t buckets_each;
};

UnexpectedQueue::Layout UnexpectedQueue::lay_out(const QueueConfig& config, Arena& arena) {
    const size_t classes = MaskClasses::limit(config.max_classes);
    Layout layout;
    layout.buckets_each = RunIndex::buckets_for(config.capacity);
    layout.messages = arena.take<Message>(size_t{config.capacity} + 1);
    layout.nodes = arena.take<RunIndex::Node>(config.capacity * classes);
    layout.tables = arena.take<uint32_t>(layout.buckets_each * classes);
    return layout;
}

size_t UnexpectedQueue::bytes_needed(const QueueConfig& config) {
    Arena arena(nullptr);
    lay_out(config, arena);
    return arena.used();
}

UnexpectedQueue::UnexpectedQueue(const QueueConfig& config, void* memory)
    : UnexpectedQueue(config, Arena(memory)) {}

UnexpectedQueue::UnexpectedQueue(const QueueConfig& config, Arena arena)
    : UnexpectedQueue(config, lay_out(config, arena)) {}

UnexpectedQueue::UnexpectedQueue(const QueueConfig& config, const Layout& layout)
    : index_(layout.nodes, layout.tables, layout.buckets_each, config.seed),
      classes_(config, index_),
      messages_(layout.messages),
      end_(config.capacity) {
    assert(config.capacity > 0 && config.capacity <= kMaxCapacity);
    messages_[end_] = {0, kAnySource, end_, end_, 0, 0};
    std::fill(std::begin(cursors_), std::end(cursors_), end_);
}

void UnexpectedQueue::append(Slot slot, uint64_t tag, uint32_t source) {
    assert(slot < end_ && source != kAnySource);
    const Slot last = messages_[end_].prev;
    messages_[slot] = {tag, source, end_, last, 0, 0};
    messages_[last].next = slot;
    messages_[end_].prev = slot;
    ++size_;
}

Slot UnexpectedQueue::find(uint64_t tag, uint64_t ignore, uint32_t source) {
    if (size_ <= kShortList) {
        return scan(tag, ignore, source);
    }
    const auto [cls, fresh] = classes_.acquire(ignore, source);
    if (cls == MaskClasses::kNoClass) [[unlikely]] {
        ++overflow_searches_;
        return scan(tag, ignore, source);
    }
    if (fresh) [[unlikely]] {
        move_cursor(cls, end_);
    }
    const MaskClass& mask = classes_[cls];
    const Slot node =
        index_.find(mask.table, mask.key(tag, source, MaskClass::source_place(source)));
    return node != kNone ? node - cls * end_ : walk_on(mask, tag, source);
}

void UnexpectedQueue::remove(Slot slot) {
    assert(slot < end_ && size_ > 0);
    const Message& message = messages_[slot];
    for (uint32_t left = message.hashed; left != 0; left &= left - 1) {
        const auto cls = static_cast<uint32_t>(std::countr_zero(left));
        index_.remove(cls * end_ + slot);
        classes_.entry_removed(cls);
    }
    for (uint32_t left = message.cursors; left != 0; left &= left - 1) {
        cursors_[std::countr_zero(left)] = message.prev;
    }
    messages_[message.prev].cursors |= message.cursors;
    messages_[message.prev].next = message.next;
    messages_[message.next].prev = message.prev;
    --size_;
}

Slot UnexpectedQueue::scan(uint64_t tag, uint64_t ignore, uint32_t source) const {
    for (Slot slot = messages_[end_].next; slot != end_; slot = messages_[slot].next) {
        if (tags_match(messages_[slot].tag, tag, ignore) &&
            sources_match(messages_[slot].source, source)) {
            return slot;
        }
    }
    return kNone;
}

Slot UnexpectedQueue::walk_on(const MaskClass& mask, uint64_t tag, uint32_t source) {
    const uint32_t cls = mask.cls;
    Slot slot = messages_[cursors_[cls]].next;
    for (; slot != end_; slot = messages_[slot].next) {
        Message& message = messages_[slot];
        if (tags_match(message.tag, tag, ~mask.keep) && sources_match(message.source, source)) {
            break;
        }
        index_.insert(
            mask.table, cls * end_ + slot,
            mask.key(message.tag, message.source, MaskClass::source_place(message.source)));
        classes_.entry_added(cls);
        message.hashed |= 1u << cls;
    }
    move_cursor(cls, messages_[slot].prev);
    return slot == end_ ? kNone : slot;
}

void UnexpectedQueue::move_cursor(uint32_t cls, Slot to) {
    messages_[cursors_[cls]].cursors &= ~(1u << cls);
    messages_[to].cursors |= 1u << cls;
    cursors_[cls] = to;
}

}  // namespace tagwire::match
