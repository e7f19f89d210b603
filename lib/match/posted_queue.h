// SPDX-License-Identifier: BSD-3-Clause
// Posted receives, searched by incoming messages.
//
// The receive that was posted first among those that match wins (fi_tagged(3)).
// Receives are grouped in classes by ignore mask and by directed or any source;
// inside a class a hash finds the oldest match, and between classes the posting
// sequence decides. Receives whose class has no number left are kept in a list
// that is scanned.
#pragma once

#include "lib/match/mask_classes.h"
#include "lib/match/run_index.h"

namespace tagwire::match {

class PostedQueue {
  public:
    static size_t bytes_needed(const QueueConfig& config);

    PostedQueue(const PostedQueue&) = delete;
    PostedQueue& operator=(const PostedQueue&) = delete;

    // `memory` has bytes_needed(config) bytes, aligned to Arena::kAlignment, and outlives the
    // queue.
    PostedQueue(const QueueConfig& config, void* memory);

    // The slot must be free. A receive of any source passes kAnySource.
    void post(Slot slot, uint64_t tag, uint64_t ignore, uint32_t source);

    // The receive that a message from `source` with `tag` belongs to, or kNone; it stays posted.
    Slot find(uint64_t tag, uint32_t source) const;

    // As find, and removes it.
    Slot take(uint64_t tag, uint32_t source);

    // Cancels a posted receive, in constant time.
    void remove(Slot slot);

    // The oldest posted receive, or kNone: to empty the queue in order. Costs a pass over the
    // slots.
    Slot oldest() const;

    uint32_t size() const { return size_; }

    // Receives now in the scanned list, and how many ever were put there.
    uint32_t overflow_size() const { return overflow_size_; }
    uint64_t overflow_total() const { return overflow_total_; }

  private:
    // The low bits of a node's order hold its class and the posting sequence stands above
    // them, so orders of different classes compare by age directly.
    static constexpr uint32_t kClassBits = 6;
    static constexpr uint32_t kClassMask = (1u << kClassBits) - 1;
    static constexpr uint32_t kOverflowClass = kClassMask;
    static_assert(MaskClasses::kMax <= kOverflowClass);
    static constexpr uint64_t kFree = 0;  // the order of a free slot; sequences start at 1

    struct Layout;
    static Layout lay_out(const QueueConfig& config, Arena& arena);
    PostedQueue(const QueueConfig& config, Arena arena);
    PostedQueue(const QueueConfig& config, const Layout& layout);

    Slot search(uint64_t tag, uint32_t source) const;
    void append_overflow(Slot slot, uint64_t order, uint64_t tag, uint64_t ignore, uint32_t source);
    void remove_overflow(Slot slot);
    Slot scan_overflow(uint64_t tag, uint32_t source, Slot best) const;

    RunIndex index_;
    MaskClasses classes_;
    uint64_t* overflow_ignore_;
    uint64_t next_sequence_ = 1;
    uint64_t overflow_total_ = 0;
    uint32_t capacity_;
    uint32_t size_ = 0;
    uint32_t overflow_size_ = 0;
    Slot overflow_first_ = kNone;
    Slot overflow_last_ = kNone;
};

}  // namespace tagwire::match
