// SPDX-License-Identifier: BSD-3-Clause
// Completions in the order in which operations ended, errors among them.
//
// Every operation reserves the entry of its completion when it is posted, and is
// refused when there is none: so no completion is ever lost or held back.
#pragma once

#include <atomic>

#include "lib/tagwire/memory.h"
#include "tagwire/tagwire.h"

namespace tagwire {

class Worker;

struct Completion {
    tw_cq_entry entry;
    size_t message_length;  // with an error
    int error;              // 0 or positive
    int provider_error;
};

class CompletionQueue {
  public:
    // Room for at least `entries`.
    CompletionQueue(Worker& worker, uint32_t entries);

    Worker& worker() const { return worker_; }

    bool has_room() const { return used_ <= mask_; }
    bool reserve() {
        if (!has_room()) {
            return false;
        }
        ++used_;
        return true;
    }
    void take_room() { ++used_; }  // has_room() said yes
    void unreserve() { --used_; }

    // The entry reserved before, for the caller to fill.
    Completion& write() {
        ++activity_;
        return ring_[tail_++ & mask_];
    }

    // Fills several reserved entries in a row. Nothing else writes meanwhile.
    class Writer {
      public:
        explicit Writer(CompletionQueue& queue) : queue_(queue), tail_(queue.tail_) {}
        Writer(const Writer&) = delete;
        Writer& operator=(const Writer&) = delete;
        ~Writer() { pause(); }

        Completion& next() { return queue_.ring_[tail_++ & queue_.mask_]; }
        // Others may write between these two.
        void pause() {
            queue_.activity_ += tail_ - queue_.tail_;
            queue_.tail_ = tail_;
        }
        void resume() { tail_ = queue_.tail_; }

      private:
        CompletionQueue& queue_;
        uint32_t tail_;
    };

    ssize_t read(tw_cq_entry* entries, size_t count);
    ssize_t read_or_sleep(tw_cq_entry* entries, size_t count, int timeout_ms) noexcept;
    void signal() noexcept;  // any thread
    ssize_t read_error(tw_cq_error* error);

    void bind() { ++bindings_; }
    void unbind() { --bindings_; }
    bool bound() const { return bindings_ != 0; }

  private:
    ssize_t read_some(tw_cq_entry* entries, size_t count);

    Worker& worker_;
    uint64_t& activity_;  // the worker's
    Pages pages_;
    Completion* ring_;
    uint32_t mask_;
    uint32_t head_ = 0;
    uint32_t tail_ = 0;
    uint32_t used_ = 0;  // reserved, or written and not read
    uint32_t bindings_ = 0;
    std::atomic<uint32_t> signals_ = 0;
    uint32_t signals_taken_ = 0;
};

}  // namespace tagwire

struct tw_cq final : tagwire::CompletionQueue {
    using CompletionQueue::CompletionQueue;
};
