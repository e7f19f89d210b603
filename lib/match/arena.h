// SPDX-License-Identifier: BSD-3-Clause
// Cuts the caller's block of memory into arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace tagwire::match {

class Arena {
  public:
    static constexpr size_t kAlignment = 64;

    // Constructed with null it only adds up what would be needed.
    explicit Arena(void* memory) : base_(static_cast<std::byte*>(memory)) {}

    template <typename T>
    T* take(size_t count) {
        static_assert(alignof(T) <= kAlignment);
        std::byte* at = base_ == nullptr ? nullptr : base_ + used_;
        used_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
        return reinterpret_cast<T*>(at);
    }

    size_t used() const { return used_; }

  private:
    std::byte* base_;
    size_t used_ = 0;
};

}  // namespace tagwire::match
