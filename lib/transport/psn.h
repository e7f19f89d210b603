// SPDX-License-Identifier: BSD-3-Clause
// Serial numbers: 32 bits on the wire, 64 inside (RFC 1982 in spirit).
#pragma once

#include <cstdint>

namespace tagwire::transport {

// The 64-bit number closest to `reference` whose low 32 bits are `wire`.
constexpr uint64_t expand_psn(uint32_t wire, uint64_t reference) noexcept {
    const auto distance = static_cast<int32_t>(wire - static_cast<uint32_t>(reference));
    return reference + static_cast<uint64_t>(static_cast<int64_t>(distance));
}

// Message ids stay 32-bit: far fewer than 2^31 are alive at once.
constexpr bool before(uint32_t a, uint32_t b) noexcept {
    return static_cast<int32_t>(a - b) < 0;
}

// Inside, numbers start here so that "a window before the first" stays positive.
inline constexpr uint64_t kPsnBase = uint64_t{1} << 32;

}  // namespace tagwire::transport
