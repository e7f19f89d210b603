// SPDX-License-Identifier: BSD-3-Clause
// Zero-copy sending: lends the memory of large messages to the port. EAL's own
// memory the device knows; any other is registered through a cache.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "lib/tagwire/registration_cache.h"
#include "lib/transport/lender.h"

namespace tagwire {

struct LoanCounters {
    uint64_t messages = 0;  // whose memory was lent
    uint64_t copied = 0;    // large ones whose memory was not to be had
};

// Lives as long as a frame with lent memory does: a port may hold some after
// the worker is closed.
class LoanBook {
  public:
    // device nullptr: whoever sends needs no registration.
    static LoanBook* open(std::unique_ptr<DeviceMemory> device, MemoryWatch* watch);
    void close();  // the worker is gone

    rte_mbuf_ext_shared_info* borrow(const void* start, size_t length) noexcept;
    const LoanCounters& counters() const { return counters_; }
    // Not given back yet, by the worker or by the port.
    uint32_t outstanding() const { return holders_.load(std::memory_order_acquire) - 1; }
    RegistrationCounters registrations() const {
        return cache_ != nullptr ? cache_->counters() : RegistrationCounters{};
    }

  private:
    static constexpr uint32_t kLoans = 1024;
    static constexpr size_t kMaxRanges = 64;  // EAL knows 128 ranges of memory in all
    static constexpr uint64_t kMaxBytes = uint64_t{4} << 30;

    struct Loan {
        rte_mbuf_ext_shared_info shared;
        LoanBook* book;
        Registration* registration;  // nullptr: none is needed
        Loan* next;
    };

    LoanBook(std::unique_ptr<DeviceMemory> device, MemoryWatch* watch);
    static void returned(void* unused, void* loan);
    void collect() noexcept;
    void leave() noexcept;

    std::unique_ptr<DeviceMemory> device_;
    std::unique_ptr<RegistrationCache> cache_;
    std::unique_ptr<Loan[]> loans_;
    Loan* free_ = nullptr;
    bool any_memory_;
    LoanCounters counters_;
    // Frames are freed by whoever frees them.
    std::atomic<Loan*> returned_{nullptr};
    std::atomic<uint32_t> holders_{1};  // the worker, and each loan
};

class Lending final : public transport::Lender {
  public:
    explicit Lending(LoanBook* book) : book_(book) {}
    ~Lending() override { book_->close(); }
    Lending(const Lending&) = delete;
    Lending& operator=(const Lending&) = delete;

    rte_mbuf_ext_shared_info* borrow(const void* start, size_t length) noexcept override {
        return book_->borrow(start, length);
    }
    const LoanBook& book() const { return *book_; }

  private:
    LoanBook* book_;
};

}  // namespace tagwire
