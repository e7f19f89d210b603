// SPDX-License-Identifier: BSD-3-Clause
// A frame is parsed once; flows, RSS, checksums and CQEs use the result.
#pragma once

#include <cstdint>

#include "drivers/softcx/engine/prm.h"

namespace softcx {

inline constexpr uint32_t kEthernetHeader = 14;
inline constexpr uint32_t kVlanTag = 4;
inline constexpr uint16_t kTypeVlan = 0x8100;
inline constexpr uint16_t kTypeServiceVlan = 0x88a8;
inline constexpr uint16_t kTypeIpv4 = 0x0800;
inline constexpr uint16_t kTypeIpv6 = 0x86dd;
inline constexpr uint8_t kProtocolTcp = 6;
inline constexpr uint8_t kProtocolUdp = 17;

struct ParsedFrame {
    const uint8_t* data;
    uint32_t length;
    uint32_t l3_offset;   // behind the Ethernet header and VLAN tags
    uint32_t l4_offset;   // behind the IP header and its extensions
    uint32_t l3_end;      // end of the IP packet; padding may follow
    uint16_t ether_type;  // behind the VLAN tags
    uint16_t vlan_tci;    // outermost tag
    uint16_t source_port;
    uint16_t destination_port;
    bool has_vlan;
    bool fragment;   // any fragment, the first one too
    bool ip_extras;  // IPv4 options or IPv6 extension headers
    uint8_t ip_protocol;
    CqeL3 l3;  // kNone when the IP header is malformed
    CqeL4 l4;  // kNone for fragments and truncated headers

    bool is_tcp() const { return l4 != CqeL4::kNone && l4 != CqeL4::kUdp; }
    bool is_udp() const { return l4 == CqeL4::kUdp; }
};

// `length` is at least kEthernetHeader.
ParsedFrame parse_frame(const uint8_t* data, uint32_t length) noexcept;

struct FrameChecksums {
    bool l3_ok = false;
    bool l4_ok = false;
    uint16_t l3_sum = 0;  // host order, for Cqe::check_sum
};

FrameChecksums validate_checksums(const ParsedFrame& frame) noexcept;

// Writes the checksums that a send WQE asks for (kEthL3Checksum, kEthL4Checksum).
void generate_checksums(const ParsedFrame& frame, uint8_t* data, uint8_t flags) noexcept;

}  // namespace softcx
