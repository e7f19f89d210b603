// SPDX-License-Identifier: BSD-3-Clause
#include "lib/match/mask_classes.h"

namespace tagwire::match {

uint32_t MaskClasses::find_slowly(uint64_t keep, uint32_t any_source) const {
    for (uint32_t cls = 0; cls < known_; ++cls) {
        if (is(cls, keep, any_source)) {
            return cls;
        }
    }
    return kNoClass;
}

MaskClasses::Acquired MaskClasses::acquire_slowly(uint64_t keep, uint32_t any_source,
                                                  uint8_t& hint) {
    uint32_t idle = kNoClass;
    for (uint32_t cls = 0; cls < known_; ++cls) {
        if (is(cls, keep, any_source)) {
            hint = static_cast<uint8_t>(cls);
            return {cls, false};
        }
        if (entries_[cls] == 0) {
            idle = cls;
        }
    }
    // A number never used before is better than a class without entries: that one may come back.
    // The table of a class without entries is empty.
    const bool first_use = known_ < max_;
    const uint32_t cls = first_use ? known_++ : idle;
    if (cls == kNoClass) {
        return {kNoClass, false};
    }
    const RunIndex::Table table = index_.table(cls);
    if (first_use) {
        index_.clear(table);
    }
    classes_[cls] = {keep, any_source == 0 ? UINT64_MAX : 0, table, any_source, cls};
    hint = static_cast<uint8_t>(cls);
    return {cls, true};
}

void MaskClasses::enliven(uint32_t cls) {
    position_[cls] = static_cast<uint8_t>(live_count_);
    live_[live_count_++] = classes_[cls];
}

void MaskClasses::retire(uint32_t cls) {
    const MaskClass& last = live_[--live_count_];
    const uint32_t position = position_[cls];
    position_[last.cls] = static_cast<uint8_t>(position);
    live_[position] = last;
}

}  // namespace tagwire::match
