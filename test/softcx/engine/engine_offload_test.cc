// SPDX-License-Identifier: BSD-3-Clause
// Checksums, VLAN tags and segmentation, on both sides.
#include <algorithm>

#include "drivers/softcx/engine/checksum.h"
#include "test/softcx/engine/receive_fixture.h"
#include "test/softcx/engine/send_fixture.h"

namespace softcx::test {
namespace {

class EngineChecksum : public ReceiveFixture {
  protected:
    std::unique_ptr<ClientWq> wq = rig.make_wq(*cq, 16);
    Flow* flow = rig.make_flow(rig.make_rss_qp({wq->wq}));

    Cqe receive(const Bytes& frame) {
        wq->post({buffer(0)});
        arrive(frame);
        rig.step();
        const std::optional<Cqe> cqe = cq->poll();
        EXPECT_TRUE(cqe.has_value());
        return cqe.value_or(Cqe{});
    }

    static bool l3_ok(const Cqe& cqe) { return (cqe.hds_ip_ext & kCqeL3Ok) != 0; }
    static bool l4_ok(const Cqe& cqe) { return (cqe.hds_ip_ext & kCqeL4Ok) != 0; }
    static CqeL3 l3(const Cqe& cqe) { return static_cast<CqeL3>(cqe.l4_l3_hdr_type >> 2 & 3); }
    static CqeL4 l4(const Cqe& cqe) { return static_cast<CqeL4>(cqe.l4_l3_hdr_type >> 4 & 7); }
};

TEST_F(EngineChecksum, GoodPacketsOfEverySizeAndKind) {
    for (size_t payload = 0; payload < 200; ++payload) {
        for (const bool ipv6 : {false, true}) {
            for (const uint8_t protocol : {uint8_t{6}, uint8_t{17}}) {
                const Cqe cqe = receive(make_packet({.ipv6 = ipv6,
                                                     .protocol = protocol,
                                                     .src_ip = ipv6 ? "fe80::1" : "10.0.0.1",
                                                     .dst_ip = ipv6 ? "fe80::2" : "10.0.0.2",
                                                     .payload = pattern(payload)}));
                ASSERT_TRUE(l3_ok(cqe) && l4_ok(cqe)) << payload << ipv6 << +protocol;
                ASSERT_EQ(l3(cqe), ipv6 ? CqeL3::kIpv6 : CqeL3::kIpv4);
                const CqeL4 tcp = payload == 0 ? CqeL4::kTcpEmptyAck : CqeL4::kTcpAck;
                ASSERT_EQ(l4(cqe), protocol == 17 ? CqeL4::kUdp : tcp);
            }
        }
    }
}

TEST_F(EngineChecksum, AFlippedBitInTheHeaderOrInThePayload) {
    Bytes frame = make_packet({});
    frame[14 + 8] ^= 1;
    Cqe cqe = receive(frame);
    EXPECT_FALSE(l3_ok(cqe));
    EXPECT_TRUE(l4_ok(cqe));
    frame = make_packet({});
    frame[60] ^= 1;
    cqe = receive(frame);
    EXPECT_TRUE(l3_ok(cqe));
    EXPECT_FALSE(l4_ok(cqe));
}

TEST_F(EngineChecksum, UdpWithoutAChecksum) {
    Bytes frame = make_packet({});
    frame[40] = frame[41] = 0;
    EXPECT_TRUE(l4_ok(receive(frame)));
    frame = make_packet({.ipv6 = true, .src_ip = "::1", .dst_ip = "::2"});
    frame[60] = frame[61] = 0;
    EXPECT_FALSE(l4_ok(receive(frame)));
}

TEST_F(EngineChecksum, WhatIsNotIpHasNeither) {
    const Cqe cqe = receive(pattern(60));
    EXPECT_FALSE(l3_ok(cqe) || l4_ok(cqe));
    EXPECT_EQ(l3(cqe), CqeL3::kNone);
    EXPECT_EQ(cqe.hds_ip_ext & kCqeL2Ok, kCqeL2Ok);
}

TEST_F(EngineChecksum, AFragmentIsMarkedAndHasNoL4) {
    const Cqe cqe = receive(make_packet({.fragment = 0x2000}));
    EXPECT_TRUE(l3_ok(cqe));
    EXPECT_FALSE(l4_ok(cqe));
    EXPECT_EQ(l4(cqe), CqeL4::kNone);
    EXPECT_NE(cqe.l4_l3_hdr_type & kCqeIpFragment, 0);
}

TEST_F(EngineChecksum, LengthsThatDontFitAreNotIp) {
    Bytes frame = make_packet({.payload = pattern(100)});
    frame[17] += 100;  // total length beyond the frame
    EXPECT_EQ(l3(receive(frame)), CqeL3::kNone);
    frame = make_packet({});
    frame[14] = 0x44;  // header of 16 bytes
    EXPECT_EQ(l3(receive(frame)), CqeL3::kNone);
}

TEST_F(EngineChecksum, TheSumCoversThePacketAndItsPadding) {
    for (size_t payload = 0; payload < 40; ++payload) {
        Bytes frame = make_packet({.payload = pattern(payload)});
        if (frame.size() == 60)
            frame[59] = 0x5a;
        const auto expected =
            static_cast<uint16_t>(~slow_checksum(Bytes(frame.begin() + 14, frame.end())));
        ASSERT_EQ(receive(frame).check_sum.get(), expected) << payload;
    }
}

TEST_F(EngineChecksum, ATagIsStrippedIntoTheCqe) {
    wq->wq->vlan_strip = true;
    const Bytes plain = make_packet({.payload = pattern(100)});
    const Cqe cqe = receive(make_packet({.vlans = {0x6123}, .payload = pattern(100)}));
    EXPECT_EQ(cqe.l4_l3_hdr_type & kCqeVlanStripped, kCqeVlanStripped);
    EXPECT_EQ(cqe.vlan_info.get(), 0x6123);
    EXPECT_EQ(cqe.byte_cnt.get(), plain.size());
    EXPECT_EQ(content(0, plain.size()), plain);
    EXPECT_TRUE(l3_ok(cqe) && l4_ok(cqe));
}

TEST_F(EngineChecksum, WithoutStripATagStays) {
    const Bytes frame = make_packet({.vlans = {0x6123}, .payload = pattern(100)});
    const Cqe cqe = receive(frame);
    EXPECT_EQ(cqe.l4_l3_hdr_type & kCqeVlanStripped, 0);
    EXPECT_EQ(content(0, frame.size()), frame);
    EXPECT_TRUE(l3_ok(cqe) && l4_ok(cqe));
}

TEST_F(EngineChecksum, OnlyTheOuterTagIsStripped) {
    wq->wq->vlan_strip = true;
    const Bytes inner = make_packet({.vlans = {5}});
    receive(make_packet({.vlans = {4, 5}}));
    EXPECT_EQ(content(0, inner.size()), inner);
}

class EngineOffload : public SendFixture {
  protected:
    static constexpr uint8_t kBoth = kEthL3Checksum | kEthL4Checksum;

    // Sends `frame` with its checksums spoiled, in an inline header and a segment.
    void send_spoiled(Bytes frame, size_t l3, size_t l4_field, uint8_t flags) {
        if (frame[l3] >> 4 == 4)
            frame[l3 + 10] = frame[l3 + 11] = 0xaa;
        frame[l4_field] = frame[l4_field + 1] = 0xbb;
        std::copy(frame.begin() + 18, frame.end(), memory.begin());
        sq->post({.checksum_flags = flags,
                  .inline_header = Bytes(frame.begin(), frame.begin() + 18),
                  .segments = {segment(0, static_cast<uint32_t>(frame.size() - 18))}});
        rig.step();
        cq->poll();
    }
};

TEST_F(EngineOffload, ChecksumsAreGenerated) {
    for (size_t payload = 10; payload < 100; ++payload) {
        Bytes frame = make_packet({.payload = pattern(payload)});
        send_spoiled(frame, 14, 40, kBoth);
        ASSERT_EQ(receive(), frame) << payload;
        frame = make_packet({.protocol = 6, .payload = pattern(payload)});
        send_spoiled(frame, 14, 50, kBoth);
        ASSERT_EQ(receive(), frame) << payload;
        frame = make_packet(
            {.ipv6 = true, .src_ip = "fe80::1", .dst_ip = "::2", .payload = pattern(payload)});
        send_spoiled(frame, 14, 60, kBoth);
        ASSERT_EQ(receive(), frame) << payload;
        frame = make_packet({.vlans = {7}, .payload = pattern(payload)});
        send_spoiled(frame, 18, 44, kBoth);
        ASSERT_EQ(receive(), frame) << payload;
    }
}

TEST_F(EngineOffload, OnlyTheChecksumThatIsAskedForChanges) {
    const Bytes frame = make_packet({});
    send_spoiled(frame, 14, 40, kEthL3Checksum);
    Bytes sent = receive();
    EXPECT_TRUE(has_good_ipv4_checksum(sent));
    EXPECT_EQ(sent[40], 0xbb);
    send_spoiled(frame, 14, 40, kEthL4Checksum);
    sent = receive();
    EXPECT_EQ(sent[24], 0xaa);
    EXPECT_TRUE(has_good_l4_checksum(sent));
}

TEST_F(EngineOffload, ATagIsInserted) {
    const Bytes plain = make_packet({.payload = pattern(100)});
    std::copy(plain.begin(), plain.end(), memory.begin());
    sq->post({.vlan = 0x2064, .segments = {segment(0, static_cast<uint32_t>(plain.size()))}});
    rig.step();
    EXPECT_EQ(receive(), make_packet({.vlans = {0x2064}, .payload = pattern(100)}));
}

TEST_F(EngineOffload, LargeSendIsCutIntoSegments) {
    const Bytes whole = make_packet({.protocol = 6, .payload = pattern(10000)});
    const Bytes header(whole.begin(), whole.begin() + 54);
    std::copy(whole.begin() + 54, whole.end(), memory.begin());
    sq->post({.opcode = WqeOpcode::kTso,
              .checksum_flags = kBoth,
              .mss = 1460,
              .inline_header = header,
              .segments = {segment(0, 4000), segment(4000, 6000)}});
    rig.step();

    Bytes payload;
    for (uint32_t number = 0; number < 7; ++number) {
        const Bytes part = receive();
        ASSERT_EQ(part.size(), 54 + (number < 6 ? 1460u : 1240u));
        EXPECT_TRUE(has_good_ipv4_checksum(part) && has_good_l4_checksum(part));
        EXPECT_EQ(load_be16(&part[16]), part.size() - 14);
        EXPECT_EQ(load_be16(&part[18]), 0x1234 + number);
        EXPECT_EQ(load_be32(&part[38]), 0x1000 + number * 1460);
        EXPECT_EQ(part[47], number < 6 ? 0x10 : 0x18);  // PSH on the last one
        payload.insert(payload.end(), part.begin() + 54, part.end());
    }
    EXPECT_EQ(payload, pattern(10000));
    EXPECT_TRUE(receive().empty());
    EXPECT_EQ(rig.counters().tx_packets, 7u);
}

TEST_F(EngineOffload, LargeSendWithoutASegmentSizeIsALengthError) {
    sq->post(
        {.opcode = WqeOpcode::kTso, .inline_header = pattern(54), .segments = {segment(0, 60)}});
    rig.step();
    EXPECT_EQ(syndrome_of(*cq->poll()), Syndrome::kLocalLength);
}

TEST(OnesSum, AgreesWithTheByteWiseSumAtEveryLengthAndAlignment) {
    const Bytes data = pattern(400, 0xf7);
    for (uint32_t start = 0; start < 16; ++start) {
        for (uint32_t length = 0; length < 300; ++length) {
            const auto sum = static_cast<uint16_t>(ones_sum(data.data() + start, length));
            const auto expected = static_cast<uint16_t>(
                ~slow_checksum(Bytes(data.begin() + start, data.begin() + start + length)));
            ASSERT_EQ(big_endian(sum), expected) << start << " " << length;
        }
    }
}

}  // namespace
}  // namespace softcx::test
