// SPDX-License-Identifier: BSD-3-Clause
// The Internet checksum (RFC 1071). Sums are of 16-bit words in network order,
// kept as the machine loads them: the sum is independent of byte order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lib/wire/headers.h"

namespace tagwire::wire {

// One's complement sum of `length` bytes added to `sum`; not folded.
uint64_t checksum_add(uint64_t sum, const void* data, size_t length) noexcept;

constexpr uint16_t checksum_fold(uint64_t sum) noexcept {
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<uint16_t>(sum);
}

// The folded sum of two folded ones.
constexpr uint16_t checksum_join(uint16_t a, uint16_t b) noexcept {
    const uint32_t sum = uint32_t{a} + b;
    return static_cast<uint16_t>(sum + (sum >> 16));
}

inline uint16_t checksum(const void* data, size_t length) noexcept {
    return static_cast<uint16_t>(~checksum_fold(checksum_add(0, data, length)));
}

// Of the header as it stands, its own checksum field counted as zero.
inline uint16_t ipv4_header_checksum(const Ipv4Header& header) noexcept {
    uint64_t words[2];
    uint32_t last;
    std::memcpy(words, &header, 16);
    std::memcpy(&last, reinterpret_cast<const uint8_t*>(&header) + 16, 4);
    uint64_t sum = (words[0] & 0xffffffff) + (words[0] >> 32);
    sum += (words[1] & 0xffffffff) + (words[1] >> 32) + last;
    sum -= uint64_t{header.checksum.raw()} << 16;  // bytes 10 and 11 of the header
    return static_cast<uint16_t>(~checksum_fold(sum));
}

// Sum of the pseudo header of RFC 768.
inline uint64_t pseudo_header_sum(const Ipv4Header& ip, uint16_t udp_length) noexcept {
    return uint64_t{ip.source.raw()} + ip.destination.raw() +
           swap_bytes(static_cast<uint16_t>(ip.protocol)) + swap_bytes(udp_length);
}

// What belongs into (or was found in) the checksum field. Never 0: that would
// mean "none" (RFC 768), which this protocol does not accept.
uint16_t udp_checksum(const Ipv4Header& ip, const UdpHeader& udp) noexcept;
// The same of a packet in two pieces: an even number of bytes with the header, and the rest.
uint16_t udp_checksum(const Ipv4Header& ip, const UdpHeader& udp, size_t first, const void* rest,
                      size_t length) noexcept;
bool udp_checksum_ok(const Ipv4Header& ip, const UdpHeader& udp) noexcept;

}  // namespace tagwire::wire
