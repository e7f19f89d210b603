// SPDX-License-Identifier: BSD-3-Clause
// A large send becomes frames: headers that serve as a template, and a payload to cut.
#pragma once

#include <algorithm>
#include <cstdint>

namespace softcx {

struct LargeFrame {
    const uint8_t* data;  // headers, then the payload
    uint32_t header;      // at least an Ethernet header
    uint32_t total;       // header and payload
    uint32_t mss;         // payload bytes of a segment, not zero

    uint32_t segments() const {
        const uint32_t payload = total - header;
        return std::max<uint32_t>((payload + mss - 1) / mss, 1);
    }
};

// Writes one segment, checksums and all: IP length and identification, TCP sequence number
// and flags are adapted, a UDP template gets its length field. Returns its length, at
// most header + mss; `to` has room for that, and for 64 bytes.
uint32_t make_segment(const LargeFrame& large, uint32_t number, uint8_t checksum_flags,
                      uint8_t* to) noexcept;

}  // namespace softcx
