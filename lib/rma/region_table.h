// SPDX-License-Identifier: BSD-3-Clause
// Regions by key: open addressing with linear probing, at most half full.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/rma/region.h"

namespace tagwire {

class RegionTable {
  public:
    RegionTable() : slots_(kFirstSize) {}

    Region* find(uint64_t key) const noexcept {
        for (size_t at = home(key);; at = next(at)) {
            Region* region = slots_[at];
            if (region == nullptr || region->key() == key) {
                return region;
            }
        }
    }

    void insert(Region& region) {
        if (2 * (count_ + 1) > slots_.size()) {
            grow();
        }
        place(region);
        ++count_;
    }

    // Those behind it move up, so that every search still ends at an empty slot.
    void erase(const Region& region) noexcept {
        size_t hole = home(region.key());
        while (slots_[hole] != &region) {
            hole = next(hole);
        }
        for (size_t at = next(hole); slots_[at] != nullptr; at = next(at)) {
            if (distance(home(slots_[at]->key()), at) >= distance(hole, at)) {
                slots_[hole] = slots_[at];
                hole = at;
            }
        }
        slots_[hole] = nullptr;
        --count_;
    }

    size_t size() const noexcept { return count_; }

  private:
    static constexpr size_t kFirstSize = 64;

    size_t home(uint64_t key) const noexcept {
        return static_cast<size_t>(key * 0x9e3779b97f4a7c15u >> 32) & (slots_.size() - 1);
    }
    size_t next(size_t at) const noexcept { return (at + 1) & (slots_.size() - 1); }
    size_t distance(size_t from, size_t to) const noexcept {
        return (to - from) & (slots_.size() - 1);
    }
    void place(Region& region) noexcept {
        size_t at = home(region.key());
        while (slots_[at] != nullptr) {
            at = next(at);
        }
        slots_[at] = &region;
    }
    void grow() {
        std::vector<Region*> old(2 * slots_.size());
        old.swap(slots_);
        for (Region* region : old) {
            if (region != nullptr) {
                place(*region);
            }
        }
    }

    std::vector<Region*> slots_;
    size_t count_ = 0;
};

}  // namespace tagwire
