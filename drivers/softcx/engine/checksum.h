// SPDX-License-Identifier: BSD-3-Clause
// The Internet checksum (RFC 1071). Sums are kept in memory order, where they are
// the same on every machine up to a byte swap at the end.
#pragma once

#include <cstdint>

#include "drivers/softcx/engine/byte_order.h"

namespace softcx {

// The ones' complement sum of `length` bytes, folded to 16 bits, memory order; an
// odd last byte is padded with zero.
uint32_t ones_sum(const uint8_t* data, uint32_t length) noexcept;

constexpr uint16_t fold(uint64_t sum) {
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<uint16_t>(sum);
}

// A sum that starts at an odd offset has its bytes the other way round.
constexpr uint16_t at_offset(uint32_t sum, uint32_t offset) {
    const auto folded = static_cast<uint16_t>(sum);
    return (offset & 1) != 0 ? swap_bytes(folded) : folded;
}

// Pseudo header of TCP and UDP, memory order. `addresses` points at the source
// address, the destination follows it (`address_bytes` is that of both).
inline uint32_t pseudo_header_sum(const uint8_t* addresses, uint32_t address_bytes,
                                  uint8_t protocol, uint32_t l4_length) noexcept {
    return fold(uint64_t{ones_sum(addresses, address_bytes)} +
                big_endian(static_cast<uint16_t>(protocol)) +
                big_endian(static_cast<uint16_t>(l4_length >> 16)) +
                big_endian(static_cast<uint16_t>(l4_length)));
}

}  // namespace softcx
