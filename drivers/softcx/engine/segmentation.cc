// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/engine/segmentation.h"

#include <algorithm>
#include <cstring>

#include "drivers/softcx/engine/parse.h"

namespace softcx {

namespace {

constexpr uint32_t kMacAddresses = 12;
constexpr uint32_t kIpv6Header = 40;
constexpr uint8_t kTcpFin = 0x01;
constexpr uint8_t kTcpPush = 0x08;
constexpr uint8_t kTcpCongestionReduced = 0x80;

void adapt_ip(uint8_t* segment, uint32_t length, uint32_t number) noexcept {
    uint8_t* l3 = segment + kEthernetHeader;
    uint16_t type = load_be16(segment + kMacAddresses);
    if (type == kTypeVlan) {
        type = load_be16(l3 + 2);
        l3 += kVlanTag;
    }
    const auto l3_length = static_cast<uint16_t>(segment + length - l3);
    if (type == kTypeIpv4) {
        store_be16(l3 + 2, l3_length);
        store_be16(l3 + 4, static_cast<uint16_t>(load_be16(l3 + 4) + number));
    } else if (type == kTypeIpv6) {
        store_be16(l3 + 4, static_cast<uint16_t>(l3_length - kIpv6Header));
    }
}

}  // namespace

uint32_t make_segment(const LargeFrame& large, uint32_t number, uint8_t checksum_flags,
                      uint8_t* to) noexcept {
    const uint32_t payload = large.total - large.header;
    const uint32_t offset = number * large.mss;
    const uint32_t part = std::min(large.mss, payload - offset);
    const uint32_t length = large.header + part;
    std::memcpy(to, large.data, large.header);
    std::memcpy(to + large.header, large.data + large.header + offset, part);
    adapt_ip(to, length, number);

    const ParsedFrame frame = parse_frame(to, length);
    uint8_t* l4 = to + frame.l4_offset;
    if (frame.is_tcp()) {
        store_be32(l4 + 4, load_be32(l4 + 4) + offset);
        if (offset + part < payload)
            l4[13] &= static_cast<uint8_t>(~(kTcpFin | kTcpPush));
        if (number != 0)
            l4[13] &= static_cast<uint8_t>(~kTcpCongestionReduced);
    } else if (frame.is_udp()) {
        store_be16(l4 + 4, static_cast<uint16_t>(frame.l3_end - frame.l4_offset));
    }
    generate_checksums(frame, to, checksum_flags);
    return length;
}

}  // namespace softcx
