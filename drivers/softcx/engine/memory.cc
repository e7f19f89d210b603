// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/engine/memory.h"

#include <rdma/ib_user_ioctl_verbs.h>

#include <algorithm>

namespace softcx {

void TranslationTable::build(const std::map<uint32_t, std::unique_ptr<MemoryRegion>>& regions) {
    const size_t size = std::bit_ceil(std::max<size_t>(2, 2 * regions.size() + 1));
    slots_.assign(size, Translation{});
    mask_ = static_cast<uint32_t>(size - 1);
    shift_ = 32 - std::countr_zero(size);
    for (const auto& [lkey, region] : regions) {
        uint32_t slot = slot_of(lkey);
        while (slots_[slot & mask_].lkey != 0)
            ++slot;
        slots_[slot & mask_] = {
            .lkey = lkey,
            .writable = (region->access & IB_UVERBS_ACCESS_LOCAL_WRITE) != 0,
            .pd = region->pd,
            .begin = region->iova,
            .end = region->iova + region->length,
            .delta = region->start - region->iova,
        };
    }
}

void TranslationTable::forget(uint32_t lkey) noexcept {
    if (lkey == 0)
        return;
    for (uint32_t slot = slot_of(lkey); slots_[slot & mask_].lkey != 0; ++slot) {
        if (slots_[slot & mask_].lkey == lkey) {
            slots_[slot & mask_] = {.lkey = kForgotten};  // no PD: it grants nothing
            return;
        }
    }
}

}  // namespace softcx
