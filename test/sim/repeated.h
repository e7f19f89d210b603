// SPDX-License-Identifier: BSD-3-Clause
// Address space in which every MiB is the same memory, and the last one its own if that is
// wanted: operations of the largest size for next to no memory.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace sim {

class Repeated {
  public:
    static constexpr size_t kPeriod = 1 << 20;

    explicit Repeated(size_t size, bool own_tail = false) : size_(size) {
        const int file = memfd_create("repeated", 0);
        EXPECT_EQ(ftruncate(file, kPeriod), 0);
        base_ = static_cast<uint8_t*>(
            mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        for (size_t at = 0; at < size; at += kPeriod) {
            EXPECT_NE(mmap(base_ + at, std::min(kPeriod, size - at), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_FIXED, file, 0),
                      MAP_FAILED);
        }
        close(file);
        if (own_tail) {
            EXPECT_NE(mmap(tail(), kPeriod, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                      MAP_FAILED);
        }
    }
    ~Repeated() { munmap(base_, size_); }
    Repeated(const Repeated&) = delete;
    Repeated& operator=(const Repeated&) = delete;

    uint8_t* base() const { return base_; }
    uint8_t* tail() const { return base_ + size_ - kPeriod; }  // of a size in whole MiB
    size_t size() const { return size_; }

  private:
    uint8_t* base_;
    size_t size_;
};

}  // namespace sim
