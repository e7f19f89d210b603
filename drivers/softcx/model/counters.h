// SPDX-License-Identifier: BSD-3-Clause
// The port counters by name, as sysfs shows them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/softcx/model/objects.h"

namespace softcx {

// nullptr when there is no such counter.
const uint64_t* find_counter(const PortCounters& counters, const char* name) noexcept;

// "rx_packets 5, tx_packets 7": those that are not zero.
std::string describe(const PortCounters& counters);

// The two folders of a port in sysfs: hw_counters as mlx5_ib fills it, and the counters of the
// InfiniBand specification (PortCounters and PortCountersExtended).
enum class CounterFolder : uint8_t { kHardware, kPort };

std::vector<std::string_view> counter_names(CounterFolder folder);

// nullopt: the folder has no such file.
std::optional<uint64_t> read_counter(const PortCounters& counters, CounterFolder folder,
                                     std::string_view name) noexcept;

}  // namespace softcx
