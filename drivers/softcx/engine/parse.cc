// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/engine/parse.h"

#include <algorithm>

#include "drivers/softcx/engine/checksum.h"

namespace softcx {

namespace {

constexpr uint32_t kIpv4Header = 20;
constexpr uint32_t kIpv6Header = 40;
constexpr uint32_t kTcpHeader = 20;
constexpr uint32_t kUdpHeader = 8;

void parse_l4(ParsedFrame& frame) noexcept {
    const uint8_t* l4 = frame.data + frame.l4_offset;
    const uint32_t available = frame.l3_end - frame.l4_offset;
    if (frame.ip_protocol == kProtocolUdp && available >= kUdpHeader) {
        frame.l4 = CqeL4::kUdp;
    } else if (frame.ip_protocol == kProtocolTcp && available >= kTcpHeader) {
        const uint32_t header = (l4[12] >> 4) * 4u;
        if (header < kTcpHeader || header > available)
            return;
        const bool ack = (l4[13] & 0x10) != 0;
        if (!ack)
            frame.l4 = CqeL4::kTcp;
        else
            frame.l4 = header == available ? CqeL4::kTcpEmptyAck : CqeL4::kTcpAck;
    } else {
        return;
    }
    frame.source_port = load_be16(l4);
    frame.destination_port = load_be16(l4 + 2);
}

// RFC 791, section 3.1.
void parse_ipv4(ParsedFrame& frame) noexcept {
    const uint8_t* ip = frame.data + frame.l3_offset;
    const uint32_t available = frame.length - frame.l3_offset;
    if (available < kIpv4Header || ip[0] >> 4 != 4)
        return;
    const uint32_t header = (ip[0] & 15) * 4u;
    const uint32_t total = load_be16(ip + 2);
    if (header < kIpv4Header || total < header || total > available)
        return;
    frame.l3 = CqeL3::kIpv4;
    frame.ip_extras = header > kIpv4Header;
    frame.l4_offset = frame.l3_offset + header;
    frame.l3_end = frame.l3_offset + total;
    frame.ip_protocol = ip[9];
    frame.fragment = (load_be16(ip + 6) & 0x3fff) != 0;  // more fragments, or an offset
    if (!frame.fragment)
        parse_l4(frame);
}

// RFC 8200, sections 3 and 4.
void parse_ipv6(ParsedFrame& frame) noexcept {
    const uint8_t* ip = frame.data + frame.l3_offset;
    const uint32_t available = frame.length - frame.l3_offset;
    if (available < kIpv6Header || ip[0] >> 4 != 6)
        return;
    // The card steers by the headers; a length beyond the frame only spoils the checksum.
    const uint32_t total = std::min(kIpv6Header + load_be16(ip + 4), available);
    frame.l3 = CqeL3::kIpv6;
    frame.l3_end = frame.l3_offset + total;
    frame.l4_offset = frame.l3_offset + kIpv6Header;
    frame.ip_protocol = ip[6];
    while (frame.l4_offset + 8 <= frame.l3_end) {
        const uint8_t* extension = frame.data + frame.l4_offset;
        uint32_t size;
        switch (frame.ip_protocol) {
            case 0:   // hop-by-hop options
            case 43:  // routing
            case 60:  // destination options
                size = (extension[1] + 1u) * 8;
                break;
            case 44:  // fragment
                size = 8;
                frame.fragment = true;
                break;
            case 51:  // authentication header, RFC 4302
                size = (extension[1] + 2u) * 4;
                break;
            default:
                if (!frame.fragment)
                    parse_l4(frame);
                return;
        }
        if (frame.l4_offset + size > frame.l3_end)
            return;
        frame.ip_extras = true;
        frame.ip_protocol = extension[0];
        frame.l4_offset += size;
    }
}

const uint8_t* addresses_of(const ParsedFrame& frame, uint32_t* bytes) noexcept {
    const bool ipv4 = frame.l3 == CqeL3::kIpv4;
    *bytes = ipv4 ? 8 : 32;
    return frame.data + frame.l3_offset + (ipv4 ? 12 : 8);
}

}  // namespace

ParsedFrame parse_frame(const uint8_t* data, uint32_t length) noexcept {
    ParsedFrame frame{};
    frame.data = data;
    frame.length = length;
    frame.l3_offset = kEthernetHeader;
    frame.l3_end = length;
    frame.ether_type = load_be16(data + 12);
    for (int tags = 0; tags < 2; ++tags) {
        if (frame.ether_type != kTypeVlan && frame.ether_type != kTypeServiceVlan)
            break;
        if (frame.l3_offset + kVlanTag > length)
            break;
        if (!frame.has_vlan)
            frame.vlan_tci = load_be16(data + frame.l3_offset);
        frame.has_vlan = true;
        frame.ether_type = load_be16(data + frame.l3_offset + 2);
        frame.l3_offset += kVlanTag;
    }
    frame.l4_offset = length;
    if (frame.ether_type == kTypeIpv4)
        parse_ipv4(frame);
    else if (frame.ether_type == kTypeIpv6)
        parse_ipv6(frame);
    return frame;
}

FrameChecksums validate_checksums(const ParsedFrame& frame) noexcept {
    FrameChecksums result;
    const uint8_t* data = frame.data;
    if (frame.l3 == CqeL3::kNone) {
        const uint32_t sum = ones_sum(data + frame.l3_offset, frame.length - frame.l3_offset);
        result.l3_sum = big_endian(static_cast<uint16_t>(sum));
        return result;
    }

    // Header, L4 and padding are summed apart, each byte once: the first two are
    // validated, all three make the sum over the packet.
    const uint32_t header_sum = ones_sum(data + frame.l3_offset, frame.l4_offset - frame.l3_offset);
    const uint32_t l4_sum = ones_sum(data + frame.l4_offset, frame.l3_end - frame.l4_offset);
    uint64_t sum = uint64_t{header_sum} + at_offset(l4_sum, frame.l4_offset - frame.l3_offset);
    if (frame.l3_end < frame.length)
        sum += at_offset(ones_sum(data + frame.l3_end, frame.length - frame.l3_end),
                         frame.l3_end - frame.l3_offset);
    result.l3_sum = big_endian(fold(sum));

    result.l3_ok = frame.l3 == CqeL3::kIpv6 || header_sum == 0xffff;
    if (frame.l4 == CqeL4::kNone)
        return result;
    const uint8_t* l4 = data + frame.l4_offset;
    if (frame.is_udp() && load_be16(l4 + 6) == 0) {
        result.l4_ok = frame.l3 == CqeL3::kIpv4;  // RFC 768: none; RFC 8200, 8.1: needed
        return result;
    }
    uint32_t address_bytes;
    const uint8_t* addresses = addresses_of(frame, &address_bytes);
    const uint32_t pseudo = pseudo_header_sum(addresses, address_bytes, frame.ip_protocol,
                                              frame.l3_end - frame.l4_offset);
    result.l4_ok = fold(uint64_t{pseudo} + l4_sum) == 0xffff;
    return result;
}

void generate_checksums(const ParsedFrame& frame, uint8_t* data, uint8_t flags) noexcept {
    if ((flags & kEthL3Checksum) != 0 && frame.l3 == CqeL3::kIpv4) {
        uint8_t* ip = data + frame.l3_offset;
        store_be16(ip + 10, 0);
        const auto sum = static_cast<uint16_t>(~ones_sum(ip, frame.l4_offset - frame.l3_offset));
        std::memcpy(ip + 10, &sum, sizeof(sum));
    }
    if ((flags & kEthL4Checksum) == 0 || frame.l4 == CqeL4::kNone)
        return;
    uint8_t* l4 = data + frame.l4_offset;
    uint8_t* field = l4 + (frame.is_udp() ? 6 : 16);
    store_be16(field, 0);
    uint32_t address_bytes;
    const uint8_t* addresses = addresses_of(frame, &address_bytes);
    const uint32_t l4_length = frame.l3_end - frame.l4_offset;
    auto sum = static_cast<uint16_t>(
        ~fold(uint64_t{pseudo_header_sum(addresses, address_bytes, frame.ip_protocol, l4_length)} +
              ones_sum(l4, l4_length)));
    if (sum == 0 && frame.is_udp())
        sum = 0xffff;  // RFC 768: zero means no checksum
    std::memcpy(field, &sum, sizeof(sum));
}

}  // namespace softcx
