// SPDX-License-Identifier: BSD-3-Clause
#include "lib/wire/decode.h"

#include <cstddef>
#include <cstring>

#include "lib/wire/checksum.h"

namespace tagwire::wire {
namespace {

template <typename T>
const T* header_at(const uint8_t* at) noexcept {
    return reinterpret_cast<const T*>(at);
}

Reject decode_arp(const uint8_t* at, const uint8_t* end, FrameView& view) noexcept {
    if (at + sizeof(ArpPacket) > end) {
        return Reject::kShortFrame;
    }
    const auto* arp = header_at<ArpPacket>(at);
    if (arp->hardware_type != kArpHardwareEthernet || arp->protocol_type != kEtherTypeIpv4 ||
        arp->hardware_length != 6 || arp->protocol_length != 4 ||
        (arp->operation != kArpRequest && arp->operation != kArpReply)) {
        return Reject::kArp;
    }
    view.kind = FrameKind::kArp;
    view.arp = arp;
    return Reject::kNone;
}

Reject decode_icmp(const uint8_t* at, uint32_t length, FrameView& view) noexcept {
    if (length < sizeof(IcmpHeader)) {
        return Reject::kShortFrame;
    }
    const auto* icmp = header_at<IcmpHeader>(at);
    if (icmp->type != kIcmpEchoRequest || icmp->code != 0 || checksum(at, length) != 0) {
        return Reject::kIcmp;
    }
    view.kind = FrameKind::kIcmp;
    view.icmp = icmp;
    view.payload = at + sizeof(IcmpHeader);
    view.payload_length = length - static_cast<uint32_t>(sizeof(IcmpHeader));
    return Reject::kNone;
}

// Records fill the packet exactly; at least one.
Reject check_records(const uint8_t* at, uint32_t length, uint32_t& records) noexcept {
    if (length <= sizeof(MessagesHeader)) {
        return Reject::kExtension;
    }
    at += sizeof(MessagesHeader);
    uint32_t left = length - static_cast<uint32_t>(sizeof(MessagesHeader));
    do {
        if (left < 2) {
            return Reject::kExtension;
        }
        const uint16_t bits = *header_at<be16>(at);
        const uint32_t size = record_header_size(bits) + (bits & kRecordLengthMask);
        if (size > left) {
            return Reject::kExtension;
        }
        at += size;
        left -= size;
        ++records;
    } while (left > 0);
    return Reject::kNone;
}

// As check_records().
Reject check_operations(const uint8_t* at, uint32_t length, uint32_t& records) noexcept {
    if (length <= sizeof(MessagesHeader)) {
        return Reject::kExtension;
    }
    at += sizeof(MessagesHeader);
    uint32_t left = length - static_cast<uint32_t>(sizeof(MessagesHeader));
    do {
        if (left < sizeof(OperationHeader)) {
            return Reject::kExtension;
        }
        const uint16_t bits = header_at<OperationHeader>(at)->bits;
        const uint32_t size =
            static_cast<uint32_t>(sizeof(OperationHeader)) + (bits & kOperationLengthMask);
        if (size > left ||
            !is_remote_memory(static_cast<MessageKind>(bits >> kOperationKindShift))) {
            return Reject::kExtension;
        }
        at += size;
        left -= size;
        ++records;
    } while (left > 0);
    return Reject::kNone;
}

Reject check_first(const uint8_t* at, uint32_t length) noexcept {
    if (length < sizeof(FirstHeader)) {
        return Reject::kExtension;
    }
    const auto* first = header_at<FirstHeader>(at);
    const bool known =
        (first->flags & ~kFirstKnownFlags) == 0 && (first->flags & kFirstKindMask) < kMessageKinds;
    return known && length - sizeof(FirstHeader) <= first->length ? Reject::kNone
                                                                  : Reject::kExtension;
}

Reject check_fragment(const uint8_t* at, uint32_t length) noexcept {
    if (length <= sizeof(FragmentHeader)) {
        return Reject::kExtension;
    }
    const uint64_t end =
        uint64_t{header_at<FragmentHeader>(at)->offset} + length - sizeof(FragmentHeader);
    return end <= UINT32_MAX ? Reject::kNone : Reject::kExtension;
}

Reject check_grant(const uint8_t* at, uint32_t length) noexcept {
    if (length != sizeof(GrantHeader)) {
        return Reject::kExtension;
    }
    const auto* grant = header_at<GrantHeader>(at);
    const bool refused = (grant->flags & kGrantRefused) != 0;
    const bool known = (grant->flags & ~kGrantKnownFlags) == 0;
    if ((grant->flags & kGrantRange) != 0 &&
        (grant->flags != (kGrantRange | kGrantDelivered) || grant->granted > kMaxGrantRange)) {
        return Reject::kExtension;
    }
    return known && refused == (grant->status != 0) ? Reject::kNone : Reject::kExtension;
}

Reject check_size(bool ok) noexcept {
    return ok ? Reject::kNone : Reject::kExtension;
}

Reject decode_tagwire(const uint8_t* at, uint32_t length, FrameView& view) noexcept {
    if (length < sizeof(BaseHeader)) {
        return Reject::kShortFrame;
    }
    view.kind = FrameKind::kTagwire;
    view.base = header_at<BaseHeader>(at);
    view.payload = at + sizeof(BaseHeader);
    view.payload_length = length - static_cast<uint32_t>(sizeof(BaseHeader));
    const PacketType type = view.base->type();
    // A refusal tells the other side's version: it is understood in any.
    if (view.base->version() != kVersion && type != PacketType::kRefuse) [[unlikely]] {
        return Reject::kVersion;
    }
    if ((view.base->flags & ~kKnownFlags) != 0) [[unlikely]] {
        return Reject::kFlags;
    }
    if (type == PacketType::kMessages) [[likely]] {
        return check_records(view.payload, view.payload_length, view.records);
    }
    if (type == PacketType::kOperations) {
        return check_operations(view.payload, view.payload_length, view.records);
    }
    return check_extension(type, view.payload, view.payload_length);
}

Reject decode_udp(const uint8_t* at, uint32_t length, const DecodeContext& context,
                  Verified verified, FrameView& view) noexcept {
    if (length < sizeof(UdpHeader)) [[unlikely]] {
        return Reject::kShortFrame;
    }
    view.udp = header_at<UdpHeader>(at);
    if (view.udp->length != length) [[unlikely]] {
        return Reject::kUdpLength;
    }
    if (view.udp->destination_port.raw() != context.udp_port.raw()) [[unlikely]] {
        return Reject::kUdpPort;
    }
    if (!verified.udp_checksum &&
        (view.udp->checksum.raw() == 0 || !udp_checksum_ok(*view.ip, *view.udp))) [[unlikely]] {
        return Reject::kUdpChecksum;
    }
    return decode_tagwire(at + sizeof(UdpHeader), length - static_cast<uint32_t>(sizeof(UdpHeader)),
                          view);
}

Reject decode_ipv4(const uint8_t* at, const uint8_t* end, const DecodeContext& context,
                   Verified verified, FrameView& view) noexcept {
    if (at + sizeof(Ipv4Header) > end) [[unlikely]] {
        return Reject::kShortFrame;
    }
    const auto* ip = header_at<Ipv4Header>(at);
    view.ip = ip;
    const uint32_t total = ip->total_length;
    if (ip->version_length != kIpv4NoOptions || total < sizeof(Ipv4Header) || at + total > end)
        [[unlikely]] {
        return Reject::kIpHeader;
    }
    if (!verified.ip_checksum && ip->checksum.raw() != ipv4_header_checksum(*ip)) [[unlikely]] {
        return Reject::kIpChecksum;
    }
    if ((ip->fragment.raw() & swap_bytes(kIpv4FragmentMask)) != 0) [[unlikely]] {
        return Reject::kIpFragment;
    }
    if (ip->destination.raw() != context.ip.raw()) [[unlikely]] {
        return Reject::kNotOurIp;
    }
    const uint32_t length = total - static_cast<uint32_t>(sizeof(Ipv4Header));
    at += sizeof(Ipv4Header);
    if (ip->protocol == kIpProtocolUdp) [[likely]] {
        return decode_udp(at, length, context, verified, view);
    }
    return ip->protocol == kIpProtocolIcmp ? decode_icmp(at, length, view) : Reject::kIpProtocol;
}

}  // namespace

namespace {

template <typename T>
T load(const uint8_t* at) noexcept {
    T value;
    std::memcpy(&value, at, sizeof(value));
    return value;
}

// Whether it is what almost all frames are: untagged IPv4 and UDP for us, with checksums that the
// NIC found good. All at once; what differs is told by the step by step way.
bool is_usual(const uint8_t* frame, uint32_t length, const DecodeContext& context,
              Verified verified) noexcept {
    if (length < sizeof(FrameHeader) || !verified.ip_checksum || !verified.udp_checksum)
        [[unlikely]] {
        return false;
    }
    static_assert(offsetof(DecodeContext, mac) == 0 && sizeof(DecodeContext) >= 8);
    const auto& header = *header_at<FrameHeader>(frame);
    uint64_t our_mac;
    std::memcpy(&our_mac, &context, sizeof(our_mac));
    constexpr uint32_t kIpv4 = kIpv4NoOptions << 16 | swap_bytes(kEtherTypeIpv4);
    constexpr uint32_t kTypeAndVersion = 0x00ffffff;  // without the type of service
    const uint32_t total = header.ip.total_length;
    const uint64_t differs =
        (load<uint64_t>(frame) ^ our_mac) << 16 |
        ((load<uint32_t>(frame + offsetof(FrameHeader, ethernet.type)) & kTypeAndVersion) ^ kIpv4) |
        (header.ip.fragment.raw() & swap_bytes(kIpv4FragmentMask)) |
        (uint32_t{header.ip.protocol} ^ kIpProtocolUdp) |
        (header.ip.destination.raw() ^ context.ip.raw()) |
        (uint32_t{header.udp.destination_port.raw()} ^ context.udp_port.raw()) |
        (header.udp.length + static_cast<uint32_t>(sizeof(Ipv4Header)) - total);
    return differs == 0 && total + sizeof(EthernetHeader) <= length &&
           total >= sizeof(FrameHeader) - sizeof(EthernetHeader);
}

}  // namespace

Reject decode_frame(const uint8_t* frame, uint32_t length, const DecodeContext& context,
                    Verified verified, FrameView& view) noexcept {
    if (is_usual(frame, length, context, verified)) [[likely]] {
        const auto& header = *header_at<FrameHeader>(frame);
        view.ethernet = &header.ethernet;
        view.ip = &header.ip;
        view.udp = &header.udp;
        return decode_tagwire(frame + offsetof(FrameHeader, base),
                              header.ip.total_length - static_cast<uint32_t>(sizeof(Ipv4Header)) -
                                  static_cast<uint32_t>(sizeof(UdpHeader)),
                              view);
    }
    const uint8_t* const end = frame + length;
    const uint8_t* at = frame + sizeof(EthernetHeader);
    if (length < sizeof(EthernetHeader)) [[unlikely]] {
        return Reject::kShortFrame;
    }
    view.ethernet = header_at<EthernetHeader>(frame);
    uint16_t type = view.ethernet->type;
    if (type == kEtherTypeVlan) [[unlikely]] {
        if (at + sizeof(VlanTag) > end) {
            return Reject::kShortFrame;
        }
        type = header_at<VlanTag>(at)->type;
        at += sizeof(VlanTag);
    }
    if (view.ethernet->destination != context.mac &&
        !(type == kEtherTypeArp && view.ethernet->destination == kBroadcastMac)) [[unlikely]] {
        return Reject::kNotOurMac;
    }
    if (type == kEtherTypeIpv4) [[likely]] {
        return decode_ipv4(at, end, context, verified, view);
    }
    if (type == kEtherTypeArp) {
        return decode_arp(at, end, view);
    }
    return type == kEtherTypeIpv6 ? Reject::kIpv6 : Reject::kEtherType;
}

Reject check_extension(PacketType type, const uint8_t* payload, uint32_t length) noexcept {
    switch (type) {
        case PacketType::kMessages: {
            uint32_t records = 0;
            return check_records(payload, length, records);
        }
        case PacketType::kOperations: {
            uint32_t records = 0;
            return check_operations(payload, length, records);
        }
        case PacketType::kFirst:
            return check_first(payload, length);
        case PacketType::kFragment:
            return check_fragment(payload, length);
        case PacketType::kGrant:
            return check_grant(payload, length);
        case PacketType::kAck:
            return check_size(length % 8 == 0 && length <= kSackWords * 8);
        case PacketType::kHello:
        case PacketType::kCookie:
        case PacketType::kAccept:
        case PacketType::kRefuse:
            return check_size(length == sizeof(HandshakeHeader));
        case PacketType::kProbe:
        case PacketType::kClose:
        case PacketType::kReset:
            return check_size(length == 0);
        case PacketType::kInvalid:
            break;
    }
    return Reject::kPacketType;
}

}  // namespace tagwire::wire
