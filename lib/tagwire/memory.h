// SPDX-License-Identifier: BSD-3-Clause
// Memory of a worker: taken once when something is opened, never on the data path.
#pragma once

#include <rte_eal.h>
#include <rte_log.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "lib/tagwire/huge_memory.h"

namespace tagwire {

// Zeroed memory: hugepages of EAL, as long as it has them. Otherwise pages that become real
// when they are touched: a pool is sized for the most that may be outstanding, and costs what
// is used.
class Pages {
  public:
    Pages() = default;
    explicit Pages(size_t bytes) : bytes_(bytes) {
        if (rte_eal_has_hugepages() != 0) {
            huge_ = zeroed_huge_memory("tagwire_pool", bytes, kAlignment);
            memory_ = huge_.get();
        }
        if (memory_ != nullptr) {
            return;
        }
        if (rte_eal_has_hugepages() != 0) {
            rte_log(RTE_LOG_NOTICE, RTE_LOGTYPE_USER1,
                    "tagwire: no hugepages left for a pool of %zu KiB, which takes small pages: "
                    "give EAL more (-m)\n",
                    bytes >> 10);
        }
        memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory_ == MAP_FAILED) {
            memory_ = nullptr;
            throw std::bad_alloc();
        }
    }
    Pages(Pages&& other) noexcept
        : huge_(std::move(other.huge_)),
          memory_(std::exchange(other.memory_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0)) {}
    Pages& operator=(Pages&& other) noexcept {
        std::swap(huge_, other.huge_);
        std::swap(memory_, other.memory_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~Pages() {
        if (memory_ != nullptr && huge_ == nullptr) {
            munmap(memory_, bytes_);
        }
    }

    void* get() const { return memory_; }

  private:
    static constexpr unsigned kAlignment = 64;

    HugeMemory huge_;
    void* memory_ = nullptr;
    size_t bytes_ = 0;
};

// A fixed number of objects, named by their index. T is trivially destructible
// and has a member `T* next_free`.
template <typename T>
class Pool {
  public:
    explicit Pool(uint32_t capacity)
        : pages_(size_t{capacity} * sizeof(T)),
          items_(static_cast<T*>(pages_.get())),
          capacity_(capacity) {}

    // nullptr when all are taken.
    T* acquire() {
        if (has_freed()) {
            return acquire_freed();
        }
        if (touched_ == capacity_) {
            return nullptr;
        }
        ++in_use_;
        return new (items_ + touched_++) T;
    }

    // The same for one that was in use before, when has_freed() says yes.
    bool has_freed() const { return first_free_ != nullptr; }
    T* acquire_freed() {
        T* item = first_free_;
        first_free_ = item->next_free;
        ++in_use_;
        return item;
    }

    void release(T* item) {
        item->next_free = first_free_;
        first_free_ = item;
        --in_use_;
    }

    T& operator[](uint32_t index) { return items_[index]; }
    uint32_t index_of(const T* item) const { return static_cast<uint32_t>(item - items_); }
    uint32_t in_use() const { return in_use_; }
    uint32_t capacity() const { return capacity_; }
    // Items from this index on were never acquired.
    uint32_t touched() const { return touched_; }

  private:
    Pages pages_;
    T* items_;
    T* first_free_ = nullptr;
    uint32_t capacity_;
    uint32_t touched_ = 0;
    uint32_t in_use_ = 0;
};

}  // namespace tagwire
