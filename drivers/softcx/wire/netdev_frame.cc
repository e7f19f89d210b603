// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/wire/netdev_frame.h"

#include <cstring>

#include "drivers/softcx/engine/checksum.h"
#include "drivers/softcx/engine/parse.h"
#include "drivers/softcx/wire/frame_ring.h"

namespace softcx {

namespace {

constexpr uint32_t kMacAddresses = 12;
constexpr uint32_t kUdpHeader = 8;

// Bytes in front of the payload, or 0 when the frame is not of the kind that it is said to be.
uint32_t header_of(const ParsedFrame& frame, uint8_t kind) noexcept {
    const uint8_t* l4 = frame.data + frame.l4_offset;
    switch (kind) {
        case kLargeTcp4:
            return frame.is_tcp() && frame.l3 == CqeL3::kIpv4 ? frame.l4_offset + (l4[12] >> 4) * 4u
                                                              : 0;
        case kLargeTcp6:
            return frame.is_tcp() && frame.l3 == CqeL3::kIpv6 ? frame.l4_offset + (l4[12] >> 4) * 4u
                                                              : 0;
        case kLargeUdp:
            return frame.is_udp() ? frame.l4_offset + kUdpHeader : 0;
        default:
            return 0;
    }
}

}  // namespace

bool finish_checksum(uint8_t* frame, uint32_t length, uint32_t start, uint32_t offset) noexcept {
    if (start > length || offset + sizeof(uint16_t) > length - start)
        return false;
    auto sum = static_cast<uint16_t>(~ones_sum(frame + start, length - start));
    if (sum == 0)
        sum = 0xffff;  // RFC 768: zero means none; to TCP both are the same
    std::memcpy(frame + start + offset, &sum, sizeof(sum));
    return true;
}

uint32_t insert_tag(uint8_t* frame, uint32_t length, VlanTag tag) noexcept {
    uint8_t* begin = frame - kVlanTag;
    std::memmove(begin, frame, kMacAddresses);
    store_be16(begin + kMacAddresses, tag.protocol);
    store_be16(begin + kMacAddresses + 2, tag.control);
    return length + kVlanTag;
}

std::optional<LargeFrame> plan_segments(const uint8_t* frame, uint32_t length,
                                        const OffloadHeader& header) noexcept {
    if (length < kEthernetHeader)
        return std::nullopt;
    const ParsedFrame parsed = parse_frame(frame, length);
    const auto kind = static_cast<uint8_t>(header.kind & ~kLargeEcn);
    const uint32_t headers = header_of(parsed, kind);
    if (headers == 0 || headers > parsed.l3_end || header.segment_size == 0 ||
        headers + header.segment_size + kVlanTag > kMaxFrame)
        return std::nullopt;
    return LargeFrame{frame, headers, parsed.l3_end, header.segment_size};
}

}  // namespace softcx
