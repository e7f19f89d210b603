// SPDX-License-Identifier: BSD-3-Clause
// Whose a frame is: by its addresses alone, however bad the rest is.
#include "lib/wire/claim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "lib/wire/packet.h"

namespace tagwire::wire {
namespace {

constexpr Mac kOurMac = {2, 0, 0, 0, 0, 1};
constexpr Mac kOtherMac = {2, 0, 0, 0, 0, 9};
constexpr uint32_t kOurIp = 0xc0000201;
constexpr uint16_t kOurPort = 4791;
const DecodeContext kContext{kOurMac, kOurIp, kOurPort};

using Bytes = std::vector<uint8_t>;

FrameHeader& headers(Bytes& frame) {
    return *reinterpret_cast<FrameHeader*>(frame.data());
}
ArpPacket& arp_of(Bytes& frame) {
    return *reinterpret_cast<ArpPacket*>(frame.data() + sizeof(EthernetHeader));
}

// Checksums and lengths are wrong on purpose: they do not count.
Bytes to_us() {
    Bytes frame(sizeof(FrameHeader) + 40);
    FrameHeader& h = headers(frame);
    h.ethernet = {kOurMac, kOtherMac, kEtherTypeIpv4};
    h.ip.version_length = kIpv4NoOptions;
    h.ip.protocol = kIpProtocolUdp;
    h.ip.destination = kOurIp;
    h.udp.destination_port = kOurPort;
    return frame;
}

Bytes arp(const Mac& to, uint32_t target) {
    Bytes frame(kMinFrame);
    headers(frame).ethernet = {to, kOtherMac, kEtherTypeArp};
    arp_of(frame) = {
        kArpHardwareEthernet, kEtherTypeIpv4, 6, 4, kArpRequest, kOtherMac, kOurIp + 1, {}, target};
    return frame;
}

// On the heap to the byte: AddressSanitizer sees what reads too far.
Claim claim(const Bytes& frame, size_t length) {
    const auto exact = std::make_unique<uint8_t[]>(length);
    std::copy_n(frame.begin(), length, exact.get());
    return claim_frame(exact.get(), static_cast<uint32_t>(length), kContext);
}
Claim claim(const Bytes& frame) {
    return claim(frame, frame.size());
}

void add_vlan_tag(Bytes& frame) {
    const Bytes tag = {0x81, 0x00, 0x00, 0x05};
    frame.insert(frame.begin() + 12, tag.begin(), tag.end());
}

TEST(Claim, is_by_mac_ip_and_udp_port) {
    EXPECT_EQ(claim(to_us()), Claim::kOurs);
}

struct Case {
    const char* name;
    Claim claim;
    void (*change)(Bytes&);
};

class ClaimCase : public testing::TestWithParam<Case> {};

TEST_P(ClaimCase, is_as_documented) {
    Bytes frame = to_us();
    GetParam().change(frame);
    EXPECT_EQ(claim(frame), GetParam().claim);
}

INSTANTIATE_TEST_SUITE_P(
    Frames, ClaimCase,
    testing::Values(
        Case{"another_mac", Claim::kForeign,
             [](Bytes& f) { headers(f).ethernet.destination = kOtherMac; }},
        Case{"to_everybody", Claim::kForeign,
             [](Bytes& f) { headers(f).ethernet.destination = kBroadcastMac; }},
        Case{"another_ip", Claim::kForeign,
             [](Bytes& f) { headers(f).ip.destination = kOurIp + 1; }},
        Case{"another_port", Claim::kForeign,
             [](Bytes& f) { headers(f).udp.destination_port = kOurPort + 1; }},
        Case{"our_port_as_its_source", Claim::kForeign,
             [](Bytes& f) {
                 headers(f).udp = {kOurPort, 53, 8, 0};
             }},
        Case{"tcp_to_our_port", Claim::kForeign, [](Bytes& f) { headers(f).ip.protocol = 6; }},
        Case{"ping", Claim::kForeign, [](Bytes& f) { headers(f).ip.protocol = kIpProtocolIcmp; }},
        Case{"ipv6", Claim::kForeign, [](Bytes& f) { headers(f).ethernet.type = kEtherTypeIpv6; }},
        Case{"lldp", Claim::kForeign, [](Bytes& f) { headers(f).ethernet.type = 0x88cc; }},
        Case{"version_6_in_ipv4", Claim::kForeign,
             [](Bytes& f) { headers(f).ip.version_length = 0x65; }},
        Case{"too_short_a_header", Claim::kForeign,
             [](Bytes& f) { headers(f).ip.version_length = 0x44; }},
        Case{"later_fragment", Claim::kForeign, [](Bytes& f) { headers(f).ip.fragment = 1; }},
        Case{"first_fragment", Claim::kOurs, [](Bytes& f) { headers(f).ip.fragment = 0x2000; }},
        Case{"bad_checksums", Claim::kOurs, [](Bytes& f) { headers(f).udp.checksum = 0x1234; }},
        Case{"another_version_of_ours", Claim::kOurs,
             [](Bytes& f) { headers(f).base.version_type = 0xff; }},
        Case{"options", Claim::kOurs,
             [](Bytes& f) {
                 headers(f).ip.version_length = 0x46;
                 f.insert(f.begin() + 34, 4, 0);
             }},
        Case{"the_longest_header", Claim::kOurs,
             [](Bytes& f) {
                 headers(f).ip.version_length = 0x4f;
                 f.insert(f.begin() + 34, 40, 0);
             }},
        Case{"vlan", Claim::kOurs, add_vlan_tag},
        Case{"two_vlan_tags", Claim::kForeign,
             [](Bytes& f) {
                 add_vlan_tag(f);
                 add_vlan_tag(f);
             }}),
    [](const auto& param) { return std::string(param.param.name); });

TEST(Claim, needs_the_ports_and_nothing_behind_them) {
    const Bytes frame = to_us();
    for (size_t length = 0; length < frame.size(); ++length) {
        EXPECT_EQ(claim(frame, length), length < 14 + 20 + 4 ? Claim::kForeign : Claim::kOurs)
            << length;
    }
}

TEST(Claim, needs_no_more_than_the_longest_headers) {
    Bytes frame = to_us();
    headers(frame).ip.version_length = 0x4f;
    frame.insert(frame.begin() + 34, 40, 0);
    add_vlan_tag(frame);
    EXPECT_EQ(claim(frame, kLongestHeaders), Claim::kOurs);
}

TEST(Claim, of_arp_is_by_its_target) {
    EXPECT_EQ(claim(arp(kBroadcastMac, kOurIp)), Claim::kOurs);
    EXPECT_EQ(claim(arp(kOurMac, kOurIp)), Claim::kOurs);
    EXPECT_EQ(claim(arp(kBroadcastMac, kOurIp + 5)), Claim::kOverheard);
    EXPECT_EQ(claim(arp(kOurMac, kOurIp + 5)), Claim::kForeign);
    EXPECT_EQ(claim(arp(kOtherMac, kOurIp)), Claim::kForeign);
    Bytes tagged = arp(kBroadcastMac, kOurIp);
    add_vlan_tag(tagged);
    EXPECT_EQ(claim(tagged), Claim::kOurs);
}

TEST(Claim, of_malformed_arp_is_nobodys) {
    for (const auto spoil :
         {+[](ArpPacket& a) { a.hardware_type = 6; },
          +[](ArpPacket& a) { a.protocol_type = kEtherTypeIpv6; },
          +[](ArpPacket& a) { a.hardware_length = 8; },
          +[](ArpPacket& a) { a.protocol_length = 16; }, +[](ArpPacket& a) { a.operation = 3; }}) {
        Bytes frame = arp(kBroadcastMac, kOurIp);
        spoil(arp_of(frame));
        EXPECT_EQ(claim(frame), Claim::kForeign);
    }
    EXPECT_EQ(claim(arp(kBroadcastMac, kOurIp), 14 + 27), Claim::kForeign);
    EXPECT_EQ(claim(arp(kBroadcastMac, kOurIp), 14 + 28), Claim::kOurs);
}

// What the decoder takes as Tagwire's or as ARP for us must never be given away.
TEST(Claim, covers_all_that_the_decoder_takes) {
    std::mt19937 random(1);
    uint32_t taken = 0;
    for (int round = 0; round < 200'000; ++round) {
        Bytes frame = round % 4 == 0 ? arp(kBroadcastMac, kOurIp) : to_us();
        if (round % 4 != 0) {
            FrameHeader& h = headers(frame);
            h.base.version_type = BaseHeader::make_version_type(PacketType::kProbe);
            h.ip.total_length = sizeof(FrameHeader) - sizeof(EthernetHeader);
            h.udp.length = sizeof(FrameHeader) - sizeof(EthernetHeader) - sizeof(Ipv4Header);
        }
        if (round % 3 == 0) {
            add_vlan_tag(frame);
        }
        for (int flips = 0; flips < round % 4; ++flips) {
            const size_t bit = random() % (70 * 8);
            frame[std::min(bit / 8, frame.size() - 1)] ^= static_cast<uint8_t>(1u << bit % 8);
        }
        FrameView view;
        const Reject reject = decode_frame(frame.data(), static_cast<uint32_t>(frame.size()),
                                           kContext, {true, true}, view);
        if (reject == Reject::kNone && view.kind == FrameKind::kTagwire) {
            ++taken;
            ASSERT_EQ(claim(frame), Claim::kOurs) << "round " << round;
        } else if (reject == Reject::kNone && view.kind == FrameKind::kArp) {
            ++taken;
            ASSERT_EQ(claim(frame) == Claim::kOurs, view.arp->target_ip == kOurIp);
        }
    }
    EXPECT_GT(taken, 20'000u);
}

}  // namespace
}  // namespace tagwire::wire
