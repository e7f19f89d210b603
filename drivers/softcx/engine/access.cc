// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/engine/access.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace softcx {

namespace {

ClientCheck reason_of(const EngineState& state, const QueueMemory& memory,
                      const SegmentAddress& segment) noexcept {
    const Translation* found = segment.lkey != 0 ? state.translations.find(segment.lkey) : nullptr;
    if (found == nullptr || found->pd == nullptr) {
        const auto& retired = state.retired_keys;
        const bool was_there = segment.lkey != 0 && std::find(retired.begin(), retired.end(),
                                                              segment.lkey) != retired.end();
        return was_there ? ClientCheck::kKeyDeregistered : ClientCheck::kKeyUnknown;
    }
    if (found->pd != memory.pd())
        return ClientCheck::kKeyOtherPd;
    const bool inside = segment.address >= found->begin && segment.address <= found->end &&
                        segment.length <= found->end - segment.address;
    return inside ? ClientCheck::kMemoryReadOnly : ClientCheck::kMemoryBounds;
}

}  // namespace

void report_access_error(EngineState& state, const QueueMemory& memory, uint32_t object_number,
                         const SegmentAddress& segment) noexcept {
    char detail[96];
    std::snprintf(detail, sizeof(detail), ": lkey 0x%x, address 0x%" PRIx64 ", %" PRIu64 " bytes",
                  segment.lkey, segment.address, segment.length);
    // Receives write to memory, sends read it.
    report_client_error(state.device, reason_of(state, memory, segment),
                        {segment.write ? "WQ" : "QP", object_number}, detail);
}

}  // namespace softcx
