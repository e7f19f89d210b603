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

QueueConfig UnexpectedQueue::limited(const QueueConfig& config) {
    QueueConfig result = config;
    result.max_classes = std::min(MaskClasses::limit(config.max_classes), kMaxOwn);
    return result;
}

UnexpectedQueue::Layout UnexpectedQueue::lay_out(const QueueConfig& config, Arena& arena) {
    const size_t hashes = limited(config).max_classes + 1;
    Layout layout;
    layout.buckets_each = RunIndex::buckets_for(config.capacity) * 2;
    layout.messages = arena.take<Message>(size_t{config.capacity} + 1);
    layout.nodes = arena.take<RunIndex::Node>(config.capacity * hashes);
    layout.tables = arena.take<uint32_t>(layout.buckets_each * hashes);
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
    : UnexpectedQueue(limited(config), lay_out(config, arena)) {}

UnexpectedQueue::UnexpectedQueue(const QueueConfig& config, const Layout& layout)
    : index_(layout.nodes, layout.tables, layout.buckets_each, config.seed),
      messages_(layout.messages),
      end_(config.capacity),
      shared_{UINT64_MAX, UINT64_MAX, index_.table(config.max_classes), 0, config.max_classes},
      classes_(config, index_) {
    assert(config.capacity > 0 && config.capacity <= kMaxCapacity);
    messages_[end_] = {0, kAnySource, end_, end_, 0, 0};
    std::fill(std::begin(cursors_), std::end(cursors_), end_);
    index_.clear(shared_.table);
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
    return search({tag, ignore, source});
}

Slot UnexpectedQueue::take(uint64_t tag, uint64_t ignore, uint32_t source) {
    const Slot slot = search({tag, ignore, source});
    if (slot != kNone) {
        unlink(slot);
    }
    return slot;
}

void UnexpectedQueue::remove(Slot slot) {
    assert(slot < end_ && size_ > 0);
    unlink(slot);
}

inline Slot UnexpectedQueue::search(const Wanted& wanted) {
    if (size_ <= kShortList) {
        return scan(wanted);
    }
    ++searches_;
    if (own_ != 0) {
        const uint32_t cls = classes_.find(wanted.ignore, wanted.source);
        if (cls != MaskClasses::kNoClass && (own_ & 1u << cls) != 0) {
            return search_own(cls, wanted);
        }
    }
    const bool any = wanted.source == kAnySource;
    if ((shared_.keep & wanted.ignore) != 0 || (any && shared_.directed != 0)) [[unlikely]] {
        widen_shared(wanted);
    }
    const Slot node = index_.find(shared_.table, shared_.key(wanted.tag, wanted.source));
    if (node != kNone) [[likely]] {
        const Slot slot = node - shared_.cls * end_;
        if (matches(slot, wanted)) [[likely]] {
            return slot;
        }
        const Slot later = search_run(node, wanted);
        if (later != kNone) {
            return later;
        }
    }
    return walk_on(shared_, wanted);
}

inline void UnexpectedQueue::unlink(Slot slot) {
    const Message& message = messages_[slot];
    for (uint32_t left = message.hashed; left != 0; left &= left - 1) {
        const auto number = static_cast<uint32_t>(std::countr_zero(left));
        index_.remove(number * end_ + slot);
        --entries_[number];
    }
    if (message.cursors != 0) [[unlikely]] {
        for (uint32_t left = message.cursors; left != 0; left &= left - 1) {
            cursors_[std::countr_zero(left)] = message.prev;
        }
        messages_[message.prev].cursors |= message.cursors;
    }
    messages_[message.prev].next = message.next;
    messages_[message.next].prev = message.prev;
    if (--size_ == 0) {
        narrow_shared();
    }
}

Slot UnexpectedQueue::scan(const Wanted& wanted) const {
    for (Slot slot = messages_[end_].next; slot != end_; slot = messages_[slot].next) {
        if (matches(slot, wanted)) {
            return slot;
        }
    }
    return kNone;
}

Slot UnexpectedQueue::search_own(uint32_t cls, const Wanted& wanted) {
    const MaskClass& mask = classes_[cls];
    const Slot node = index_.find(mask.table, mask.key(wanted.tag, wanted.source));
    return node != kNone ? node - cls * end_ : walk_on(mask, wanted);
}

// The first of the run did not match; the others may.
Slot UnexpectedQueue::search_run(Slot node, const Wanted& wanted) {
    uint32_t steps = 1;
    Slot slot = kNone;
    while ((node = index_.next_in_run(node)) != kNone) {
        if (matches(node - shared_.cls * end_, wanted)) {
            slot = node - shared_.cls * end_;
            break;
        }
        ++steps;
    }
    if (steps > kFreeSteps) {
        charge(wanted, steps);
    }
    return slot;
}

Slot UnexpectedQueue::walk_on(const MaskClass& mask, const Wanted& wanted) {
    const uint32_t number = mask.cls;
    const uint32_t base = number * end_;
    uint32_t hashed = 0;
    Slot slot = messages_[cursors_[number]].next;
    for (; slot != end_ && !matches(slot, wanted); slot = messages_[slot].next) {
        Message& message = messages_[slot];
        index_.insert(mask.table, base + slot, mask.key(message.tag, message.source));
        message.hashed |= 1u << number;
        ++hashed;
    }
    entries_[number] += hashed;
    move_cursor(number, messages_[slot].prev);
    return slot == end_ ? kNone : slot;
}

// The shared hash must keep no bit that this class ignores, nor the source when it ignores that.
// It is built again from the start of the list; until the queue is empty the next time, that
// happens at most once for each tag bit.
void UnexpectedQueue::widen_shared(const Wanted& wanted) {
    const uint32_t number = shared_.cls;
    shared_.keep &= ~wanted.ignore;
    if (wanted.source == kAnySource) {
        shared_.directed = 0;
        shared_.any_source = UINT32_MAX;
    }
    if (entries_[number] == 0) {
        return;
    }
    for (Slot slot = cursors_[number]; slot != end_; slot = messages_[slot].prev) {
        messages_[slot].hashed &= ~(1u << number);
    }
    index_.clear(shared_.table);
    entries_[number] = 0;
    move_cursor(number, end_);
}

// Keeps everything, for the classes to come.
void UnexpectedQueue::narrow_shared() {
    shared_.keep = UINT64_MAX;
    shared_.directed = UINT64_MAX;
    shared_.any_source = 0;
}

// A hash of its own costs a class about kFreeSteps steps for each message, and first of
// all a pass over the list; it gets one when what it spends in shared runs is beyond both.
void UnexpectedQueue::charge(const Wanted& wanted, uint32_t steps) {
    steps_ += steps;
    const auto [cls, fresh] = classes_.acquire(wanted.ignore, wanted.source);
    if (cls == MaskClasses::kNoClass) {
        give_up_empty_hashes();
        return;
    }
    Debt& debt = debts_[cls];
    if (fresh) {
        debt = {};
    }
    const uint64_t regained = (searches_ - debt.search) * kFreeSteps;
    debt.steps = steps + (debt.steps > regained ? debt.steps - regained : 0);
    debt.search = searches_;
    if (debt.steps > size_ + kOwnHashAtLeast) {
        own_ |= 1u << cls;
        classes_.entry_added(cls);  // keeps its number
        move_cursor(cls, end_);
    }
}

void UnexpectedQueue::give_up_empty_hashes() {
    for (uint32_t left = own_; left != 0; left &= left - 1) {
        const auto cls = static_cast<uint32_t>(std::countr_zero(left));
        if (entries_[cls] == 0) {
            own_ &= ~(1u << cls);
            classes_.entry_removed(cls);
        }
    }
}

void UnexpectedQueue::move_cursor(uint32_t number, Slot to) {
    messages_[cursors_[number]].cursors &= ~(1u << number);
    messages_[to].cursors |= 1u << number;
    cursors_[number] = to;
}

}  // namespace tagwire::match
