// SPDX-License-Identifier: BSD-3-Clause
// Translation of (lkey, address) to client memory: an open-addressing table over
// the MRs, in front of it the last translation of each queue.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "drivers/softcx/model/objects.h"

namespace softcx {

struct Translation {
    uint32_t lkey = 0;  // 0: empty
    bool writable = false;
    const ProtectionDomain* pd = nullptr;
    uint64_t begin = 0;  // WQE addresses
    uint64_t end = 0;
    uint64_t delta = 0;  // client address = WQE address + delta
};

class TranslationTable {
  public:
    void build(const std::map<uint32_t, std::unique_ptr<MemoryRegion>>& regions);
    void forget(uint32_t lkey) noexcept;

    const Translation* find(uint32_t lkey) const noexcept {
        for (uint32_t slot = slot_of(lkey);; ++slot) {
            const Translation& entry = slots_[slot & mask_];
            if (entry.lkey == lkey)
                return &entry;
            if (entry.lkey == 0)
                return nullptr;
        }
    }

  private:
    static constexpr uint32_t kForgotten = 0xffffffff;

    uint32_t slot_of(uint32_t lkey) const noexcept { return lkey * 0x9e3779b1u >> shift_; }

    std::vector<Translation> slots_ = std::vector<Translation>(2);
    uint32_t mask_ = 1;
    uint32_t shift_ = 31;
};

// A queue's view of memory: its PD, and the MR that it used last.
class QueueMemory {
  public:
    QueueMemory(const TranslationTable* table, const ProtectionDomain* pd) noexcept
        : table_(table), pd_(pd) {}

    // The client memory of `length` bytes, or nullptr when the MR, the PD, the bounds
    // or the access right don't allow it.
    uint8_t* access(uint32_t lkey, uint64_t address, uint64_t length, bool write) noexcept {
        if (last_.lkey != lkey || lkey == 0) {
            const Translation* found = lkey != 0 ? table_->find(lkey) : nullptr;
            if (found == nullptr || found->pd != pd_)
                return nullptr;
            last_ = *found;
        }
        if (address < last_.begin || address > last_.end || length > last_.end - address ||
            (write && !last_.writable))
            return nullptr;
        return reinterpret_cast<uint8_t*>(address + last_.delta);
    }

    void forget() noexcept { last_ = {}; }
    const ProtectionDomain* pd() const noexcept { return pd_; }

  private:
    const TranslationTable* table_;
    const ProtectionDomain* pd_;
    Translation last_;
};

}  // namespace softcx
