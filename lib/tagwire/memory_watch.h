// SPDX-License-Identifier: BSD-3-Clause
// Tells when memory of the process goes away under what is known of it: munmap,
// mremap, madvise(MADV_DONTNEED) and the like. One per process.
//
// The kernel tells it through userfaultfd(2): a range that is registered there
// makes the thread that unmaps it wait until the event was read. A thread of
// ours reads, and marks the range.
//
// Another thread may get the same addresses anew before that. So whoever is to
// trust a range asks settled() first: the kernel knows of every unmapping that
// has begun and was not read.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace tagwire {

// A range that is watched. Its owner keeps it where it is until unwatch().
struct WatchedRange {
    uintptr_t base = 0;
    uintptr_t end = 0;
    std::atomic<bool> gone{false};  // all or part of it
    WatchedRange* next = nullptr;
};

class MemoryWatch {
  public:
    // nullptr when the kernel refuses; *reason says why and what to do.
    static MemoryWatch* get(const char** reason);

    // Whole pages. False when the kernel does not watch this kind of memory
    // (files).
    bool watch(WatchedRange& range);
    void unwatch(WatchedRange& range);

    // The marks are those of all unmapping so far. False for a moment after each,
    // when the kernel or our thread is not through with it: ask later.
    bool settled() const;
    // Grows with each mark.
    uint64_t marks() const { return marks_.load(std::memory_order_acquire); }

  private:
    explicit MemoryWatch(int fd) : fd_(fd) {}
    bool map_sentinel();
    bool start();
    void read_events();
    void mark_gone(uintptr_t base, uintptr_t end);

    int fd_;
    std::atomic<bool> busy_{false};
    std::atomic<uint64_t> marks_{0};
    uintptr_t sentinel_ = 0;  // a page that is watched and never goes
    std::mutex mutex_;
    WatchedRange* first_ = nullptr;
};

}  // namespace tagwire
