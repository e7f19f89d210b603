// SPDX-License-Identifier: BSD-3-Clause
#include "lib/wire/claim.h"

namespace tagwire::wire {
namespace {

constexpr uint16_t kFragmentOffsetMask = 0x1fff;

// Target address ours: a request that only we can answer, an answer to us, or another
// station that says it is us. A malformed one says nothing.
Claim claim_arp(const uint8_t* at, const uint8_t* end, const EthernetHeader& ethernet,
                const DecodeContext& context) noexcept {
    const bool to_all = ethernet.destination == kBroadcastMac;
    if (at + sizeof(ArpPacket) > end || (!to_all && ethernet.destination != context.mac)) {
        return Claim::kForeign;
    }
    const auto& arp = *reinterpret_cast<const ArpPacket*>(at);
    if (arp.hardware_type != kArpHardwareEthernet || arp.protocol_type != kEtherTypeIpv4 ||
        arp.hardware_length != 6 || arp.protocol_length != 4 ||
        (arp.operation != kArpRequest && arp.operation != kArpReply)) {
        return Claim::kForeign;
    }
    if (arp.target_ip.raw() == context.ip.raw()) {
        return Claim::kOurs;
    }
    return to_all ? Claim::kOverheard : Claim::kForeign;
}

// Header length and checksum may be wrong as long as the ports can be told. A later fragment has
// none.
Claim claim_ipv4(const uint8_t* at, const uint8_t* end, const DecodeContext& context) noexcept {
    if (at + sizeof(Ipv4Header) > end) {
        return Claim::kForeign;
    }
    const auto& ip = *reinterpret_cast<const Ipv4Header*>(at);
    const uint32_t header_length = 4u * (ip.version_length & 0xf);
    if (ip.destination.raw() != context.ip.raw() || ip.protocol != kIpProtocolUdp ||
        ip.version_length >> 4 != 4 || header_length < sizeof(Ipv4Header) ||
        (ip.fragment & kFragmentOffsetMask) != 0) {
        return Claim::kForeign;
    }
    const auto* udp = reinterpret_cast<const UdpHeader*>(at + header_length);
    if (at + header_length + 2 * sizeof(be16) > end) {
        return Claim::kForeign;
    }
    return udp->destination_port.raw() == context.udp_port.raw() ? Claim::kOurs : Claim::kForeign;
}

}  // namespace

Claim claim_frame(const uint8_t* frame, uint32_t length, const DecodeContext& context) noexcept {
    const uint8_t* const end = frame + length;
    if (length < sizeof(EthernetHeader)) {
        return Claim::kForeign;
    }
    const auto& ethernet = *reinterpret_cast<const EthernetHeader*>(frame);
    const uint8_t* at = frame + sizeof(EthernetHeader);
    uint16_t type = ethernet.type;
    if (type == kEtherTypeVlan) {
        if (at + sizeof(VlanTag) > end) {
            return Claim::kForeign;
        }
        type = reinterpret_cast<const VlanTag*>(at)->type;
        at += sizeof(VlanTag);
    }
    if (type == kEtherTypeIpv4 && ethernet.destination == context.mac) [[likely]] {
        return claim_ipv4(at, end, context);
    }
    return type == kEtherTypeArp ? claim_arp(at, end, ethernet, context) : Claim::kForeign;
}

}  // namespace tagwire::wire
