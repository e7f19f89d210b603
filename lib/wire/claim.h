// SPDX-License-Identifier: BSD-3-Clause
// Whose is a frame? For a pipeline that has other uses for the port: a frame is ours when
// its addresses say so, whatever else is wrong with it.
#pragma once

#include <cstdint>

#include "lib/wire/decode.h"

namespace tagwire::wire {

enum class Claim : uint8_t {
    kForeign,
    kOurs,
    kOverheard,  // foreign, and it tells where another station is: broadcast ARP
};

// Nothing that decides lies further into a frame: Ethernet, a VLAN tag, the longest IPv4
// header, UDP.
inline constexpr uint32_t kLongestHeaders = 14 + 4 + 60 + 8;

// `length` bytes of the frame are there: all of it, or kLongestHeaders at least.
Claim claim_frame(const uint8_t* frame, uint32_t length, const DecodeContext& context) noexcept;

}  // namespace tagwire::wire
