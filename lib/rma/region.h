// SPDX-License-Identifier: BSD-3-Clause
// A region: memory that peers may reach, with what is under way into and out of it.
#pragma once

#include <sys/uio.h>

#include <cstdint>

#include "lib/tagwire/counter.h"
#include "tagwire/mr.h"

namespace tagwire {

class Worker;
struct Placement;
struct Reply;

class Region {
  public:
    Region(Worker& worker, const tw_mr_attr& attr, uint64_t key);

    Worker& worker() const { return worker_; }
    uint64_t key() const { return key_; }
    void* context() const { return context_; }
    bool counts() const { return counts_; }

    // 0, or the positive errno with which such an access is refused: EACCES, EFAULT.
    int check(uint64_t access, uint64_t address, uint64_t length) const;
    // The memory of an access that was checked. Returns the number of pieces.
    uint32_t pieces(uint64_t address, uint64_t length, iovec* to) const;

    int bind(CompletionCounter& counter, uint64_t flags);
    void unbind_counters();
    void count_write() {
        if (write_counter_ != nullptr) [[unlikely]] {
            write_counter_->ended(0);
        }
    }
    void count_read() {
        if (read_counter_ != nullptr) [[unlikely]] {
            read_counter_->ended(0);
        }
    }

    Placement* placements = nullptr;  // puts under way
    Reply* replies = nullptr;         // that are sent straight from the memory

  private:
    Worker& worker_;
    iovec iov_[TW_IOV_LIMIT];
    uint32_t iov_count_;
    bool counts_;
    uint64_t base_;  // the remote address of the first byte
    uint64_t length_ = 0;
    uint64_t access_;
    uint64_t key_;
    void* context_;
    CompletionCounter* write_counter_ = nullptr;
    CompletionCounter* read_counter_ = nullptr;
};

}  // namespace tagwire

struct tw_mr final : tagwire::Region {
    using Region::Region;
};
