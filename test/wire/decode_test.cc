// SPDX-License-Identifier: BSD-3-Clause
// Decoding: a good frame is seen as it is, a bad one gets its precise reason.
#include "lib/wire/decode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lib/wire/checksum.h"

namespace tagwire::wire {
namespace {

constexpr Mac kOurMac = {2, 0, 0, 0, 0, 1};
constexpr uint32_t kOurIp = 0xc0000201;  // 192.0.2.1
constexpr uint16_t kOurPort = 4791;

struct Builder {
    explicit Builder(PacketType type, const std::vector<uint8_t>& extension = {})
        : bytes(sizeof(FrameHeader) + extension.size()) {
        FrameHeader& h = header();
        h = {};
        h.ethernet = {kOurMac, {2, 0, 0, 0, 0, 2}, kEtherTypeIpv4};
        h.ip.version_length = kIpv4NoOptions;
        h.ip.fragment = kIpv4DontFragment;
        h.ip.protocol = kIpProtocolUdp;
        h.ip.source = 0xc0000202;
        h.ip.destination = kOurIp;
        h.udp.source_port = 1234;
        h.udp.destination_port = kOurPort;
        h.base.version_type = BaseHeader::make_version_type(type);
        std::copy(extension.begin(), extension.end(), bytes.begin() + sizeof(FrameHeader));
        lengths();
    }

    FrameHeader& header() { return *reinterpret_cast<FrameHeader*>(bytes.data()); }

    void lengths() {
        header().ip.total_length = static_cast<uint16_t>(bytes.size() - sizeof(EthernetHeader));
        header().udp.length =
            static_cast<uint16_t>(bytes.size() - sizeof(EthernetHeader) - sizeof(Ipv4Header));
        checksums();
    }

    void checksums() {
        header().ip.checksum = be16::from_raw(ipv4_header_checksum(header().ip));
        header().udp.checksum = be16::from_raw(udp_checksum(header().ip, header().udp));
    }

    Reject decode(Verified verified = {}) {
        const DecodeContext context{kOurMac, kOurIp, kOurPort};
        return decode_frame(bytes.data(), static_cast<uint32_t>(bytes.size()), context, verified,
                            view);
    }

    std::vector<uint8_t> bytes;
    FrameView view;
};

std::vector<uint8_t> record(uint16_t bits, uint32_t size) {
    std::vector<uint8_t> bytes = {0, 0, 0, 7};
    bytes.push_back(static_cast<uint8_t>(bits >> 8));
    bytes.push_back(static_cast<uint8_t>(bits));
    bytes.resize(4 + size);
    return bytes;
}

TEST(Decode, takes_a_good_frame) {
    Builder frame(PacketType::kMessages, record(kRecordTagged | 5, 2 + 8 + 5));

    ASSERT_EQ(frame.decode(), Reject::kNone);

    EXPECT_EQ(frame.view.kind, FrameKind::kTagwire);
    EXPECT_EQ(frame.view.payload, frame.bytes.data() + 64);
    EXPECT_EQ(frame.view.payload_length, 4u + 15);
}

TEST(Decode, takes_padding_behind_the_packet) {
    Builder frame(PacketType::kProbe);
    frame.bytes.resize(80, 0xff);

    ASSERT_EQ(frame.decode(), Reject::kNone);
    EXPECT_EQ(frame.view.payload_length, 0u);
}

TEST(Decode, takes_a_vlan_tag) {
    Builder frame(PacketType::kProbe);
    frame.header().ethernet.type = kEtherTypeVlan;
    const uint8_t tag[] = {0x00, 0x05, 0x08, 0x00};
    frame.bytes.insert(frame.bytes.begin() + sizeof(EthernetHeader), tag, tag + 4);

    ASSERT_EQ(frame.decode(), Reject::kNone);
    EXPECT_EQ(frame.view.base->type(), PacketType::kProbe);
}

TEST(Decode, takes_arp_to_everybody) {
    std::vector<uint8_t> bytes(kMinFrame);
    *reinterpret_cast<EthernetHeader*>(bytes.data()) = {kBroadcastMac, {}, kEtherTypeArp};
    *reinterpret_cast<ArpPacket*>(bytes.data() + sizeof(EthernetHeader)) = {
        kArpHardwareEthernet, kEtherTypeIpv4, 6, 4, kArpRequest, {}, 1, {}, kOurIp};
    FrameView view;

    EXPECT_EQ(decode_frame(bytes.data(), kMinFrame, {kOurMac, kOurIp, kOurPort}, {}, view),
              Reject::kNone);
    EXPECT_EQ(view.kind, FrameKind::kArp);
}

TEST(Decode, rejects_every_truncation) {
    Builder whole(PacketType::kMessages, record(kRecordTagged | 5, 2 + 8 + 5));
    for (size_t length = 0; length < whole.bytes.size(); ++length) {
        Builder frame(PacketType::kMessages, record(kRecordTagged | 5, 2 + 8 + 5));
        frame.bytes.resize(length);
        frame.bytes.shrink_to_fit();
        EXPECT_NE(frame.decode(), Reject::kNone) << length;
    }
}

TEST(Decode, rejects_every_flipped_bit_behind_the_ethernet_header) {
    Builder frame(PacketType::kMessages, record(kRecordTagged | 5, 2 + 8 + 5));
    for (size_t bit = sizeof(EthernetHeader) * 8; bit < frame.bytes.size() * 8; ++bit) {
        frame.bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
        EXPECT_NE(frame.decode(), Reject::kNone) << "bit " << bit;
        frame.bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    }
}

struct BadCase {
    const char* what;
    Reject reject;
    void (*spoil)(Builder&);
};

class DecodeRejects : public testing::TestWithParam<BadCase> {};

TEST_P(DecodeRejects, with_its_reason) {
    Builder frame(PacketType::kProbe);
    GetParam().spoil(frame);
    EXPECT_EQ(frame.decode(), GetParam().reject);
}

INSTANTIATE_TEST_SUITE_P(
    Frames, DecodeRejects,
    testing::Values(
        BadCase{"mac", Reject::kNotOurMac,
                [](Builder& f) { f.header().ethernet.destination[5] = 9; }},
        BadCase{"ether_type", Reject::kEtherType,
                [](Builder& f) { f.header().ethernet.type = 0x88cc; }},
        BadCase{"ipv6", Reject::kIpv6,
                [](Builder& f) { f.header().ethernet.type = kEtherTypeIpv6; }},
        BadCase{"options", Reject::kIpHeader,
                [](Builder& f) { f.header().ip.version_length = 0x46; }},
        BadCase{"ip_length", Reject::kIpHeader,
                [](Builder& f) {
                    f.header().ip.total_length = 1000;
                    f.checksums();
                }},
        BadCase{"ip_checksum", Reject::kIpChecksum,
                [](Builder& f) { f.header().ip.time_to_live ^= 1; }},
        BadCase{"fragment", Reject::kIpFragment,
                [](Builder& f) {
                    f.header().ip.fragment = 0x2000;
                    f.checksums();
                }},
        BadCase{"ip", Reject::kNotOurIp,
                [](Builder& f) {
                    f.header().ip.destination = 1;
                    f.checksums();
                }},
        BadCase{"protocol", Reject::kIpProtocol,
                [](Builder& f) {
                    f.header().ip.protocol = 6;
                    f.checksums();
                }},
        BadCase{"udp_length", Reject::kUdpLength, [](Builder& f) { f.header().udp.length = 29; }},
        BadCase{"port", Reject::kUdpPort, [](Builder& f) { f.header().udp.destination_port = 53; }},
        BadCase{"udp_checksum", Reject::kUdpChecksum, [](Builder& f) { f.header().base.psn = 1; }},
        BadCase{"no_checksum", Reject::kUdpChecksum,
                [](Builder& f) { f.header().udp.checksum = 0; }},
        BadCase{"version", Reject::kVersion,
                [](Builder& f) {
                    f.header().base.version_type = 0x26;
                    f.checksums();
                }},
        BadCase{"type", Reject::kPacketType,
                [](Builder& f) {
                    f.header().base.version_type = 0x1f;
                    f.checksums();
                }},
        BadCase{"flags", Reject::kFlags,
                [](Builder& f) {
                    f.header().base.flags = 0x80;
                    f.checksums();
                }}),
    [](const auto& param) { return std::string(param.param.what); });

TEST(CheckExtension, wants_records_that_fill_the_packet_exactly) {
    const auto check = [](std::vector<uint8_t> bytes) {
        return check_extension(PacketType::kMessages, bytes.data(),
                               static_cast<uint32_t>(bytes.size()));
    };
    EXPECT_EQ(check(record(kRecordTagged | 5, 15)), Reject::kNone);
    EXPECT_EQ(check(record(0, 2)), Reject::kNone);
    EXPECT_EQ(check(record(kRecordTagged | 5, 14)), Reject::kExtension);
    EXPECT_EQ(check(record(kRecordTagged | 5, 16)), Reject::kExtension);
    EXPECT_EQ(check({0, 0, 0, 7}), Reject::kExtension);
}

TEST(CheckExtension, wants_operations_that_fill_the_packet_and_are_of_their_kinds) {
    const auto check = [](unsigned kind, uint16_t length, size_t size) {
        std::vector<uint8_t> bytes(sizeof(MessagesHeader) + size);
        auto& header = *reinterpret_cast<OperationHeader*>(bytes.data() + sizeof(MessagesHeader));
        header.bits = static_cast<uint16_t>(kind << kOperationKindShift | length);
        return check_extension(PacketType::kOperations, bytes.data(),
                               static_cast<uint32_t>(bytes.size()));
    };
    for (unsigned kind = 0; kind < kMessageKinds; ++kind) {
        const bool known = is_remote_memory(static_cast<MessageKind>(kind));
        EXPECT_EQ(check(kind, 16, 18 + 16), known ? Reject::kNone : Reject::kExtension) << kind;
    }
    EXPECT_EQ(check(2, 0, 18), Reject::kNone);
    EXPECT_EQ(check(2, kOperationHasData, 18), Reject::kNone);
    EXPECT_EQ(check(2, 5, 18 + 4), Reject::kExtension);
    EXPECT_EQ(check(2, 5, 18 + 6), Reject::kExtension);
    EXPECT_EQ(check_extension(PacketType::kOperations, nullptr, sizeof(MessagesHeader)),
              Reject::kExtension);
}

TEST(CheckExtension, wants_a_first_fragment_inside_its_message) {
    std::vector<uint8_t> bytes(sizeof(FirstHeader) + 10);
    auto& first = *reinterpret_cast<FirstHeader*>(bytes.data());
    const auto check = [&] {
        return check_extension(PacketType::kFirst, bytes.data(),
                               static_cast<uint32_t>(bytes.size()));
    };
    first.length = 10;
    EXPECT_EQ(check(), Reject::kNone);
    first.length = 9;
    EXPECT_EQ(check(), Reject::kExtension);
}

TEST(CheckExtension, wants_a_first_fragment_of_a_known_kind_with_known_flags) {
    std::vector<uint8_t> bytes(sizeof(FirstHeader));
    auto& first = *reinterpret_cast<FirstHeader*>(bytes.data());
    const auto check = [&](uint16_t flags) {
        first.flags = flags;
        return check_extension(PacketType::kFirst, bytes.data(),
                               static_cast<uint32_t>(bytes.size()));
    };
    for (uint16_t kind = 0; kind < 16; ++kind) {
        EXPECT_EQ(check(kind), kind < kMessageKinds ? Reject::kNone : Reject::kExtension) << kind;
    }
    EXPECT_EQ(
        check(kFirstHasData | kFirstWantsMatchNote | kFirstWantsDeliveryNote | kFirstAnnounces),
        Reject::kNone);
    for (unsigned bit = 8; bit < 16; ++bit) {
        EXPECT_EQ(check(static_cast<uint16_t>(1u << bit)), Reject::kExtension) << bit;
    }
}

TEST(CheckExtension, wants_a_grant_with_known_flags_and_a_status_only_when_refused) {
    std::vector<uint8_t> bytes(sizeof(GrantHeader));
    auto& grant = *reinterpret_cast<GrantHeader*>(bytes.data());
    const auto check = [&](uint16_t flags, uint16_t status) {
        grant.flags = flags;
        grant.status = status;
        return check_extension(PacketType::kGrant, bytes.data(),
                               static_cast<uint32_t>(bytes.size()));
    };
    EXPECT_EQ(check(kGrantFinal | kGrantMatched | kGrantDelivered, 0), Reject::kNone);
    EXPECT_EQ(check(kGrantFinal | kGrantRefused, 13), Reject::kNone);
    EXPECT_EQ(check(kGrantRefused, 0), Reject::kExtension);
    EXPECT_EQ(check(kGrantMatched, 13), Reject::kExtension);
    EXPECT_EQ(check(1u << 5, 0), Reject::kExtension);
    EXPECT_EQ(check(kGrantRange | kGrantDelivered, 0), Reject::kNone);
    EXPECT_EQ(check(kGrantRange, 0), Reject::kExtension);
    EXPECT_EQ(check(kGrantRange | kGrantDelivered | kGrantMatched, 0), Reject::kExtension);
    grant.granted = kMaxGrantRange + 1;
    EXPECT_EQ(check(kGrantRange | kGrantDelivered, 0), Reject::kExtension);
    EXPECT_EQ(check(kGrantDelivered, 0), Reject::kNone);
    EXPECT_EQ(check_extension(PacketType::kGrant, bytes.data(), sizeof(GrantHeader) - 1),
              Reject::kExtension);
}

TEST(CheckExtension, wants_a_bitmap_of_whole_words_within_the_window) {
    const std::vector<uint8_t> bytes(80);
    EXPECT_EQ(check_extension(PacketType::kAck, bytes.data(), 0), Reject::kNone);
    EXPECT_EQ(check_extension(PacketType::kAck, bytes.data(), 64), Reject::kNone);
    EXPECT_EQ(check_extension(PacketType::kAck, bytes.data(), 72), Reject::kExtension);
    EXPECT_EQ(check_extension(PacketType::kAck, bytes.data(), 7), Reject::kExtension);
}

TEST(Checksum, matches_the_example_of_rfc_1071) {
    const uint8_t bytes[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
    EXPECT_EQ(be16::from_raw(checksum_fold(checksum_add(0, bytes, 8))), 0xddf2);
}

TEST(Checksum, is_the_same_word_by_word_for_every_length) {
    std::vector<uint8_t> bytes(200);
    for (size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<uint8_t>(i * 37 + 200);
    }
    for (size_t length = 0; length <= bytes.size(); ++length) {
        uint32_t sum = 0;
        for (size_t i = 0; i < length; ++i) {
            sum += i % 2 == 0 ? uint32_t{bytes[i]} << 8 : bytes[i];
        }
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        EXPECT_EQ(be16::from_raw(checksum(bytes.data(), length)), static_cast<uint16_t>(~sum))
            << length;
    }
}

TEST(Checksum, of_a_packet_in_two_pieces_is_that_of_the_whole) {
    Builder whole(PacketType::kProbe, std::vector<uint8_t>(101, 0x7b));
    const FrameHeader& h = whole.header();
    const auto* udp = reinterpret_cast<const uint8_t*>(&h.udp);
    const size_t length = h.udp.length;
    for (size_t first = sizeof(UdpHeader); first <= length; first += 2) {
        EXPECT_EQ(udp_checksum(h.ip, h.udp, first, udp + first, length - first),
                  udp_checksum(h.ip, h.udp));
    }
}

TEST(Names, cover_every_value) {
    for (uint8_t i = 0; i < kRejects; ++i) {
        EXPECT_STRNE(name(static_cast<Reject>(i)), "?");
    }
    for (uint8_t i = 0; i < kPacketTypes; ++i) {
        EXPECT_STRNE(name(static_cast<PacketType>(i)), "?");
    }
    EXPECT_STREQ(name(static_cast<PacketType>(kPacketTypes)), "?");
}

}  // namespace
}  // namespace tagwire::wire
