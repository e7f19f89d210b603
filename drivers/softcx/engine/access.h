// SPDX-License-Identifier: BSD-3-Clause
// The memory of a WQE's segment. A card completes with a protection error and leaves the
// reason to be guessed; here it has a name.
#pragma once

#include "drivers/softcx/engine/state.h"

namespace softcx {

struct SegmentAddress {
    uint32_t lkey;
    uint64_t address;
    uint64_t length;
    bool write;
};

void report_access_error(EngineState& state, const QueueMemory& memory, uint32_t object_number,
                         const SegmentAddress& segment) noexcept;

// nullptr when it may not be touched; that has been reported then.
inline uint8_t* access_memory(EngineState& state, QueueMemory& memory, uint32_t object_number,
                              const SegmentAddress& segment) noexcept {
    uint8_t* at = memory.access(segment.lkey, segment.address, segment.length, segment.write);
    if (at == nullptr) [[unlikely]]
        report_access_error(state, memory, object_number, segment);
    return at;
}

}  // namespace softcx
