// SPDX-License-Identifier: BSD-3-Clause
// What the port shows to the client.
#pragma once

#include <array>
#include <cstdint>

#include "drivers/softcx/model/objects.h"

namespace softcx {

using Gid = std::array<uint8_t, 16>;

enum class GidType : uint8_t { kIb = 0, kRoceV1 = 1, kRoceV2 = 2 };

inline constexpr uint32_t kGidTableLength = 16;
inline constexpr uint32_t kPortNumber = 1;  // the only port

bool link_is_up(const Port& port) noexcept;

// EUI-64 of a MAC address with the universal bit turned (RFC 4291, appendix A).
uint64_t eui64(const MacAddress& mac) noexcept;

// Entry 0 and 1 are the link-local address for RoCE v1 and v2, as with a netdev
// that has no other address. False: the entry is empty.
bool gid_entry(const Port& port, uint32_t index, Gid& gid, GidType& type) noexcept;

}  // namespace softcx
