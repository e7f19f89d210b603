// SPDX-License-Identifier: BSD-3-Clause
#include "lib/tagwire/loans.h"

#include <rte_eal_memconfig.h>
#include <rte_memory.h>

namespace tagwire {
namespace {

// In one piece of EAL's own memory; what programs made known to EAL can go away
// under it.
bool is_eal_memory(const void* start, size_t length) {
    const rte_memseg_list* list = rte_mem_virt2memseg_list(start);
    if (list == nullptr || list->external != 0) {
        return false;
    }
    const auto base = reinterpret_cast<uintptr_t>(list->base_va);
    const auto at = reinterpret_cast<uintptr_t>(start);
    return at - base <= list->len && length <= list->len - (at - base);
}

}  // namespace

LoanBook* LoanBook::open(std::unique_ptr<DeviceMemory> device, MemoryWatch* watch) {
    return new LoanBook(std::move(device), watch);
}

LoanBook::LoanBook(std::unique_ptr<DeviceMemory> device, MemoryWatch* watch)
    : device_(std::move(device)), loans_(new Loan[kLoans]), any_memory_(device_ == nullptr) {
    if (device_ != nullptr && watch != nullptr) {
        cache_ = std::make_unique<RegistrationCache>(*device_, *watch, kMaxRanges, kMaxBytes);
    }
    for (uint32_t i = 0; i < kLoans; ++i) {
        loans_[i].book = this;
        loans_[i].next = free_;
        free_ = &loans_[i];
    }
}

rte_mbuf_ext_shared_info* LoanBook::borrow(const void* start, size_t length) noexcept {
    collect();
    Registration* registration = nullptr;
    if (free_ == nullptr ||
        (!any_memory_ && !is_eal_memory(start, length) &&
         (cache_ == nullptr || (registration = cache_->acquire(start, length)) == nullptr))) {
        ++counters_.copied;
        return nullptr;
    }
    Loan& loan = *free_;
    free_ = loan.next;
    loan.registration = registration;
    loan.shared.free_cb = returned;
    loan.shared.fcb_opaque = &loan;
    rte_mbuf_ext_refcnt_set(&loan.shared, 1);
    holders_.fetch_add(1, std::memory_order_relaxed);
    ++counters_.messages;
    return &loan.shared;
}

// The last reference is gone, on whatever thread.
void LoanBook::returned(void*, void* opaque) {
    auto* loan = static_cast<Loan*>(opaque);
    LoanBook& book = *loan->book;
    loan->next = book.returned_.load(std::memory_order_relaxed);
    while (!book.returned_.compare_exchange_weak(loan->next, loan, std::memory_order_release,
                                                 std::memory_order_relaxed)) {
    }
    book.leave();
}

void LoanBook::collect() noexcept {
    if (returned_.load(std::memory_order_relaxed) == nullptr) {
        return;
    }
    Loan* loan = returned_.exchange(nullptr, std::memory_order_acquire);
    while (loan != nullptr) {
        Loan* const next = loan->next;
        if (loan->registration != nullptr) {
            cache_->release(*loan->registration);
        }
        loan->next = free_;
        free_ = loan;
        loan = next;
    }
}

void LoanBook::close() {
    leave();
}

void LoanBook::leave() noexcept {
    if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        delete this;
    }
}

}  // namespace tagwire
