// SPDX-License-Identifier: BSD-3-Clause
#include "lib/match/mask_classes.h"

namespace tagwire::match {

uint32_t MaskClasses::find_slowly(uint64_t ignore, uint32_t source) const {
    for (uint32_t index = 0; index < known_; ++index) {
        if (is(index, ~ignore, kind_of(source))) {
            return base_ + index;
        }
    }
    return kNoClass;
}

MaskClasses::Acquired MaskClasses::acquire_slowly(uint64_t ignore, uint32_t source, uint8_t& hint) {
    const SourceKind kind = kind_of(source);
    uint32_t idle = kNoClass;
    for (uint32_t index = 0; index < known_; ++index) {
        if (is(index, ~ignore, kind)) {
            hint = static_cast<uint8_t>(index);
            return {base_ + index, false};
        }
        if (entries_[index] == 0) {
            idle = index;
        }
    }
    // A number never used before is better than a class without entries: that one may come back.
    const uint32_t index = known_ < max_ ? known_++ : idle;
    if (index == kNoClass) {
        return {kNoClass, false};
    }
    const uint32_t cls = base_ + index;
    const bool any = kind == SourceKind::kAny;
    classes_[index] = {~ignore,
                       salt_ * (2 * cls + 1),
                       any ? 0 : UINT64_MAX,
                       cls << MaskClass::kSourceBits | (any ? MaskClass::kSourceMask : 0),
                       static_cast<uint16_t>(cls),
                       kind};
    hint = static_cast<uint8_t>(index);
    return {cls, true};
}

}  // namespace tagwire::match
