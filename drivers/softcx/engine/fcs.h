// SPDX-License-Identifier: BSD-3-Clause
// The frame check sequence, for receive rings that want it in memory.
#pragma once

#include <array>
#include <cstdint>

namespace softcx {

// IEEE 802.3, clause 3.2.9: CRC-32, reflected, as it goes to memory lowest byte first.
inline uint32_t ethernet_fcs(const uint8_t* data, uint32_t length) noexcept {
    static constexpr auto kTable = [] {
        std::array<uint32_t, 256> table{};
        for (uint32_t byte = 0; byte < 256; ++byte) {
            uint32_t crc = byte;
            for (int bit = 0; bit < 8; ++bit)
                crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
            table[byte] = crc;
        }
        return table;
    }();
    uint32_t crc = ~0u;
    for (uint32_t i = 0; i < length; ++i)
        crc = kTable[(crc ^ data[i]) & 0xff] ^ crc >> 8;
    return ~crc;
}

}  // namespace softcx
