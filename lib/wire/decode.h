// SPDX-License-Identifier: BSD-3-Clause
// From the bytes of a frame to a view of it, or the precise reason why not.
#pragma once

#include <cstdint>

#include "lib/wire/packet.h"

namespace tagwire::wire {

enum class Reject : uint8_t {
    kNone,
    kShortFrame,  // ends inside a header
    kNotOurMac,
    kEtherType,  // neither IPv4 nor ARP
    kIpv6,       // not supported yet
    kIpHeader,   // version, options or lengths
    kIpFragment,
    kIpChecksum,
    kNotOurIp,
    kIpProtocol,  // neither UDP nor ICMP
    kUdpLength,
    kUdpPort,      // another port than ours
    kUdpChecksum,  // wrong or absent
    kVersion,
    kPacketType,
    kFlags,      // a flag that this version does not know
    kExtension,  // the extension of the type is cut or inconsistent
    kArp,        // malformed
    kIcmp,       // malformed or not an echo request
};
inline constexpr uint8_t kRejects = 19;
const char* name(Reject reject) noexcept;
const char* name(PacketType type) noexcept;
const char* name(RefuseReason reason) noexcept;

enum class FrameKind : uint8_t { kTagwire, kArp, kIcmp };

struct FrameView {
    FrameKind kind = FrameKind::kTagwire;
    const EthernetHeader* ethernet = nullptr;
    const Ipv4Header* ip = nullptr;
    const UdpHeader* udp = nullptr;
    const BaseHeader* base = nullptr;
    const ArpPacket* arp = nullptr;
    const IcmpHeader* icmp = nullptr;
    const uint8_t* payload = nullptr;  // after the base header; for ICMP after its header
    uint32_t payload_length = 0;
    uint32_t records = 0;  // kMessages, kOperations: how many
};

// What the receiver is, and what its NIC has verified already.
struct DecodeContext {
    Mac mac{};
    be32 ip{};
    be16 udp_port{};
};
struct Verified {
    bool ip_checksum = false;
    bool udp_checksum = false;
};

// Everything up to and with the extension's shape is checked; on kVersion the
// view is filled as far as an answer needs it.
Reject decode_frame(const uint8_t* frame, uint32_t length, const DecodeContext& context,
                    Verified verified, FrameView& view) noexcept;

// The extension alone; `payload` begins after the base header.
Reject check_extension(PacketType type, const uint8_t* payload, uint32_t length) noexcept;

}  // namespace tagwire::wire
