// SPDX-License-Identifier: BSD-3-Clause
// The port counters by name.
#pragma once

#include <cstdint>
#include <string>

#include "drivers/softcx/model/objects.h"

namespace softcx {

// nullptr when there is no such counter.
const uint64_t* find_counter(const PortCounters& counters, const char* name) noexcept;

// "rx_packets 5, tx_packets 7": those that are not zero.
std::string describe(const PortCounters& counters);

}  // namespace softcx
