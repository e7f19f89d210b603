// SPDX-License-Identifier: BSD-3-Clause
// The headers below Tagwire's own: Ethernet, IEEE 802.1Q, IPv4, UDP, ARP, ICMP.
#pragma once

#include <array>
#include <cstdint>

#include "lib/wire/byte_order.h"

namespace tagwire::wire {

using Mac = std::array<uint8_t, 6>;
inline constexpr Mac kBroadcastMac = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

enum EtherType : uint16_t {
    kEtherTypeIpv4 = 0x0800,
    kEtherTypeArp = 0x0806,
    kEtherTypeVlan = 0x8100,
    kEtherTypeIpv6 = 0x86dd,
};

struct EthernetHeader {
    Mac destination;
    Mac source;
    be16 type;
};
static_assert(sizeof(EthernetHeader) == 14);

struct VlanTag {  // follows kEtherTypeVlan
    be16 control;
    be16 type;
};
static_assert(sizeof(VlanTag) == 4);

enum IpProtocol : uint8_t { kIpProtocolIcmp = 1, kIpProtocolUdp = 17 };

struct Ipv4Header {  // RFC 791; we neither send nor accept options or fragments
    uint8_t version_length;
    uint8_t type_of_service;
    be16 total_length;
    be16 identification;
    be16 fragment;  // flags and offset
    uint8_t time_to_live;
    uint8_t protocol;
    be16 checksum;
    be32 source;
    be32 destination;
};
static_assert(sizeof(Ipv4Header) == 20);
inline constexpr uint8_t kIpv4NoOptions = 0x45;
inline constexpr uint16_t kIpv4DontFragment = 0x4000;
inline constexpr uint16_t kIpv4FragmentMask = 0x3fff;  // more-fragments and the offset

struct UdpHeader {  // RFC 768
    be16 source_port;
    be16 destination_port;
    be16 length;
    be16 checksum;
};
static_assert(sizeof(UdpHeader) == 8);

struct ArpPacket {  // RFC 826, for IPv4 over Ethernet
    be16 hardware_type;
    be16 protocol_type;
    uint8_t hardware_length;
    uint8_t protocol_length;
    be16 operation;
    Mac sender_mac;
    be32 sender_ip;
    Mac target_mac;
    be32 target_ip;
};
static_assert(sizeof(ArpPacket) == 28);
inline constexpr uint16_t kArpHardwareEthernet = 1;
inline constexpr uint16_t kArpRequest = 1;
inline constexpr uint16_t kArpReply = 2;

struct IcmpHeader {  // RFC 792
    uint8_t type;
    uint8_t code;
    be16 checksum;
    be32 rest;
};
static_assert(sizeof(IcmpHeader) == 8);
inline constexpr uint8_t kIcmpEchoReply = 0;
inline constexpr uint8_t kIcmpEchoRequest = 8;

inline constexpr uint32_t kMinFrame = 60;  // without FCS; shorter frames are padded

}  // namespace tagwire::wire
