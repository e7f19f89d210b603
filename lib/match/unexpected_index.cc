// SPDX-License-Identifier: BSD-3-Clause
#include "lib/match/unexpected_index.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace tagwire::match {

namespace {

// Seldom more than two hashes are in use.
uint32_t buckets(const QueueConfig& config) {
    return RunIndex::buckets_for(uint64_t{2} * config.capacity);
}

}  // namespace

QueueConfig UnexpectedIndex::limited(const QueueConfig& config) {
    QueueConfig result = config;
    result.max_classes = std::min(MaskClasses::limit(config.max_classes), kMaxOwn);
    return result;
}

UnexpectedIndex::Memory UnexpectedIndex::lay_out(const QueueConfig& config, Arena& arena) {
    const size_t hashes = limited(config).max_classes + 1;
    Memory memory;
    memory.messages = arena.take<Message>(size_t{config.capacity} + 1);
    memory.nodes = arena.take<RunIndex::Node>(config.capacity * hashes);
    memory.buckets = arena.take<uint32_t>(buckets(config));
    return memory;
}

UnexpectedIndex::UnexpectedIndex(const QueueConfig& config, const Memory& memory)
    : index_(memory.nodes, memory.buckets, buckets(config), config.seed),
      messages_(memory.messages),
      end_(config.capacity),
      shared_(shared_class(limited(config).max_classes)),
      shared_base_(shared_.number * end_),
      classes_(limited(config)) {
    messages_[end_] = {0, kAnySource, kNoKey, end_, end_, 0, 0};
    std::fill(std::begin(cursors_), std::end(cursors_), end_);
}

void UnexpectedIndex::append(Slot slot, uint64_t tag, uint32_t source, uint32_t key) {
    const Slot last = messages_[end_].prev;
    messages_[slot] = {tag, source, key, end_, last, 0, 0};
    messages_[last].next = slot;
    messages_[end_].prev = slot;
    ++size_;
}

Slot UnexpectedIndex::find(uint64_t tag, uint64_t ignore, uint32_t source) {
    return search({tag, ignore, source});
}

Slot UnexpectedIndex::take(uint64_t tag, uint64_t ignore, uint32_t source) {
    const Slot slot = search_quickly({tag, ignore, source});
    if (slot == kNone) [[unlikely]] {
        return take_slowly(tag, ignore, source);
    }
    unlink(slot);
    return slot;
}

Slot UnexpectedIndex::take_slowly(uint64_t tag, uint64_t ignore, uint32_t source) {
    const Slot slot = search({tag, ignore, source});
    if (slot != kNone) {
        unlink(slot);
    }
    return slot;
}

void UnexpectedIndex::remove(Slot slot) {
    assert(slot < end_ && size_ > 0);
    unlink(slot);
}

Slot UnexpectedIndex::oldest() const {
    return messages_[end_].next == end_ ? kNone : messages_[end_].next;
}

// What the shared hash tells at once, or kNone: search() decides then.
inline Slot UnexpectedIndex::search_quickly(const Wanted& wanted) {
    if (size_ <= kScanned || own_ != 0 || entries_[shared_.number] == 0 || !is_shared(wanted))
        [[unlikely]] {
        return kNone;
    }
    const Slot node = index_.find(shared_.key(wanted.tag, wanted.source));
    if (node == kNone) {
        return kNone;
    }
    const Slot slot = node - shared_base_;
    if (!matches(slot, wanted)) {
        return kNone;
    }
    ++searches_;
    return slot;
}

Slot UnexpectedIndex::search(const Wanted& wanted) {
    if (size_ <= kScanned) {
        return scan(wanted);
    }
    ++searches_;
    if (own_ != 0) {
        const uint32_t cls = classes_.find(wanted.ignore, wanted.source);
        if (cls != MaskClasses::kNoClass && (own_ & 1u << cls) != 0) {
            return search_own(cls, wanted);
        }
    }
    if (!is_shared(wanted)) {
        widen_shared(wanted);
    }
    const Slot node = index_.find(shared_.key(wanted.tag, wanted.source));
    if (node != kNone) {
        const Slot slot = node - shared_base_;
        const Slot found = matches(slot, wanted) ? slot : search_run(node, wanted);
        if (found != kNone) {
            return found;
        }
    }
    return walk_on(shared_, wanted);
}

[[gnu::always_inline]] inline void UnexpectedIndex::unlink(Slot slot) {
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
        shared_ = shared_class(shared_.number);
    }
}

Slot UnexpectedIndex::scan(const Wanted& wanted) const {
    for (Slot slot = messages_[end_].next; slot != end_; slot = messages_[slot].next) {
        if (matches(slot, wanted)) {
            return slot;
        }
    }
    return kNone;
}

Slot UnexpectedIndex::search_own(uint32_t cls, const Wanted& wanted) {
    const MaskClass& mask = classes_[cls];
    const Slot node = index_.find(mask.key(wanted.tag, wanted.source));
    return node != kNone ? node - cls * end_ : walk_on(mask, wanted);
}

// The first of the run did not match; the others may.
Slot UnexpectedIndex::search_run(Slot node, const Wanted& wanted) {
    uint32_t steps = 1;
    Slot slot = kNone;
    while ((node = index_.next_in_run(node)) != kNone) {
        if (matches(node - shared_base_, wanted)) {
            slot = node - shared_base_;
            break;
        }
        ++steps;
    }
    if (steps > kFreeSteps) {
        charge(wanted, steps);
    }
    return slot;
}

Slot UnexpectedIndex::walk_on(const MaskClass& mask, const Wanted& wanted) {
    const uint32_t number = mask.number;
    const uint32_t base = number * end_;
    uint32_t hashed = 0;
    Slot slot = messages_[cursors_[number]].next;
    for (; slot != end_ && !matches(slot, wanted); slot = messages_[slot].next) {
        Message& message = messages_[slot];
        index_.insert(base + slot, mask.key(message.tag, message.source, message.key));
        message.hashed |= 1u << number;
        ++hashed;
    }
    entries_[number] += hashed;
    move_cursor(number, messages_[slot].prev);
    return slot == end_ ? kNone : slot;
}

// The shared hash must keep no bit that this class ignores, nor the source when it is not by that
// that it looks. It is built again from the start of the list; until the queue is empty the next
// time, that happens at most once for each tag bit.
void UnexpectedIndex::widen_shared(const Wanted& wanted) {
    if (entries_[shared_.number] != 0) {
        forget_hashed(shared_.number);
    }
    shared_.keep &= ~wanted.ignore;
    if (kind_of(wanted.source) != SourceKind::kPeer) {
        shared_.directed = 0;
        shared_.who |= MaskClass::kSourceMask;
    }
}

void UnexpectedIndex::forget_hashed(uint32_t number) {
    const uint32_t bit = 1u << number;
    for (Slot slot = cursors_[number]; slot != end_; slot = messages_[slot].prev) {
        if ((messages_[slot].hashed & bit) != 0) {
            messages_[slot].hashed &= ~bit;
            index_.remove(number * end_ + slot);
        }
    }
    entries_[number] = 0;
    move_cursor(number, end_);
}

// A hash of its own costs a class about kFreeSteps steps for each message, and first of
// all a pass over the list; it gets one when what it spends in shared runs is beyond both.
void UnexpectedIndex::charge(const Wanted& wanted, uint32_t steps) {
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

void UnexpectedIndex::give_up_empty_hashes() {
    for (uint32_t left = own_; left != 0; left &= left - 1) {
        const auto cls = static_cast<uint32_t>(std::countr_zero(left));
        if (entries_[cls] == 0) {
            own_ &= ~(1u << cls);
            classes_.entry_removed(cls);
        }
    }
}

void UnexpectedIndex::move_cursor(uint32_t number, Slot to) {
    messages_[cursors_[number]].cursors &= ~(1u << number);
    messages_[to].cursors |= 1u << number;
    cursors_[number] = to;
}

}  // namespace tagwire::match
