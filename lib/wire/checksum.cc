// SPDX-License-Identifier: BSD-3-Clause
#include "lib/wire/checksum.h"

namespace tagwire::wire {
namespace {

uint64_t add_with_carry(uint64_t sum, uint64_t word) noexcept {
    sum += word;
    return sum + (sum < word);
}

}  // namespace

uint64_t checksum_add(uint64_t sum, const void* data, size_t length) noexcept {
    const auto* bytes = static_cast<const uint8_t*>(data);
    while (length >= 32) {
        uint64_t words[4];
        std::memcpy(words, bytes, 32);
        sum = add_with_carry(sum, words[0]);
        sum = add_with_carry(sum, words[1]);
        sum = add_with_carry(sum, words[2]);
        sum = add_with_carry(sum, words[3]);
        bytes += 32;
        length -= 32;
    }
    while (length >= 8) {
        uint64_t word;
        std::memcpy(&word, bytes, 8);
        sum = add_with_carry(sum, word);
        bytes += 8;
        length -= 8;
    }
    if (length > 0) {
        uint64_t word = 0;  // the missing bytes count as zero, at the end
        std::memcpy(&word, bytes, length);
        sum = add_with_carry(sum, word);
    }
    return sum;
}

namespace {

// Of a sum with the field that is there now.
inline uint16_t checksum_of(uint64_t sum, const UdpHeader& udp) noexcept {
    sum = add_with_carry(sum,
                         static_cast<uint16_t>(~udp.checksum.raw()));  // take the field out again
    const auto result = static_cast<uint16_t>(~checksum_fold(sum));
    return result == 0 ? 0xffff : result;
}

}  // namespace

uint16_t udp_checksum(const Ipv4Header& ip, const UdpHeader& udp) noexcept {
    const uint16_t length = udp.length;
    return checksum_of(checksum_add(pseudo_header_sum(ip, length), &udp, length), udp);
}

uint16_t udp_checksum(const Ipv4Header& ip, const UdpHeader& udp, size_t first, const void* rest,
                      size_t length) noexcept {
    const uint64_t sum = checksum_add(pseudo_header_sum(ip, udp.length), &udp, first);
    return checksum_of(checksum_add(sum, rest, length), udp);
}

bool udp_checksum_ok(const Ipv4Header& ip, const UdpHeader& udp) noexcept {
    const uint16_t length = udp.length;
    return checksum_fold(checksum_add(pseudo_header_sum(ip, length), &udp, length)) == 0xffff;
}

}  // namespace tagwire::wire
