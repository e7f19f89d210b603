// SPDX-License-Identifier: BSD-3-Clause
// A command that is refused on demand: drivers show what they do when any step of a
// set-up fails.
#pragma once

#include <cstddef>

#include "drivers/softcx/model/objects.h"

namespace softcx {

// Asked once by each command that makes, changes or queries something, before it has any
// effect: 0, or the errno it fails with.
inline int take_refusal(Device& device) noexcept {
    int& after = device.refusal.after;
    if (after < 0 || after-- > 0)
        return 0;
    return device.refusal.error;
}

// Everything that clients of the device have made and not released.
inline size_t count_objects(const Device& device) noexcept {
    return device.contexts.size() + device.pds.size() + device.mrs.size() + device.channels.size() +
           device.cqs.size() + device.wqs.size() + device.tables.size() + device.qps.size() +
           device.flows.size() + device.flow_counters.size();
}

}  // namespace softcx
