// SPDX-License-Identifier: BSD-3-Clause
#include "lib/match/short_list.h"

#include <cstring>

namespace tagwire::match {

void ShortList::compact(SlotStates& states) {
    uint32_t to = 0;
    uint64_t always = 0;
    for (uint64_t left = occupied_; left != 0; left &= left - 1, ++to) {
        const size_t from = first(left);
        always |= (always_ >> from & 1) << to;
        entries_[to] = entries_[from];
        states.move(slot(to), to);
    }
    always_ = always;
    end_ = to;
    occupied_ = (uint64_t{1} << to) - 1;
    if (to == 0 || ++compacted_ == kRenewAfter) {
        renew();
    }
    hash_all();
}

// Masks that are no longer in use shall not make the hash poor for ever.
void ShortList::renew() {
    compacted_ = 0;
    keep_ = UINT64_MAX;
    always_ = 0;
    for (uint32_t position = 0; position < end_; ++position) {
        const uint64_t keep = entries_[position].keep;
        if (is_hashed(keep)) {
            continue;
        }
        if (covers_enough(keep)) {
            keep_ &= keep;
        } else {
            always_ |= uint64_t{1} << position;
        }
    }
}

void ShortList::narrow(uint64_t keep) {
    keep_ &= keep;
    hash_all();
}

void ShortList::hash_all() {
    std::memset(positions_, 0, sizeof(positions_));
    for (uint64_t left = occupied_; left != 0; left &= left - 1) {
        positions_[hash(entries_[first(left)].tag)] |= left & -left;
    }
}

}  // namespace tagwire::match
