// SPDX-License-Identifier: BSD-3-Clause
// Memory of a worker: taken once when something is opened, never on the data path.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace tagwire {

// Zeroed pages that become real when they are touched: a pool is sized for the
// most that may be outstanding, and costs what is used.
class Pages {
  public:
    Pages() = default;
    explicit Pages(size_t bytes) : bytes_(bytes) {
        memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory_ == MAP_FAILED) {
            memory_ = nullptr;
            throw std::bad_alloc();
        }
    }
    Pages(Pages&& other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Pages& operator=(Pages&& other) noexcept {
        std::swap(memory_, other.memory_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~Pages() {
        if (memory_ != nullptr) {
            munmap(memory_, bytes_);
        }
    }

    void* get() const { return memory_; }

  private:
    void* memory_ = nullptr;
    size_t bytes_ = 0;
};

// A fixed number of objects, named by their index. T is trivially destructible
// and has a member `uint32_t next_free`.
template <typename T>
class Pool {
  public:
    explicit Pool(uint32_t capacity)
        : pages_(size_t{capacity} * sizeof(T)),
          items_(static_cast<T*>(pages_.get())),
          capacity_(capacity) {}

    // nullptr when all are taken.
    T* acquire() {
        if (first_free_ != kNone) {
            T* item = items_ + first_free_;
            first_free_ = item->next_free;
            ++in_use_;
            return item;
        }
        if (touched_ == capacity_) {
            return nullptr;
        }
        ++in_use_;
        return new (items_ + touched_++) T;
    }

    void release(T* item) {
        item->next_free = first_free_;
        first_free_ = index_of(item);
        --in_use_;
    }

    T& operator[](uint32_t index) { return items_[index]; }
    uint32_t index_of(const T* item) const { return static_cast<uint32_t>(item - items_); }
    uint32_t in_use() const { return in_use_; }
    uint32_t capacity() const { return capacity_; }
    // Items from this index on were never acquired.
    uint32_t touched() const { return touched_; }

  private:
    static constexpr uint32_t kNone = UINT32_MAX;

    Pages pages_;
    T* items_;
    uint32_t capacity_;
    uint32_t first_free_ = kNone;
    uint32_t touched_ = 0;
    uint32_t in_use_ = 0;
};

}  // namespace tagwire
