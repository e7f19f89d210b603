// SPDX-License-Identifier: BSD-3-Clause
// What the kernel left undone: checksums, tags, large frames. Without a kernel.
#include "drivers/softcx/wire/netdev_frame.h"

#include <gtest/gtest.h>

#include <vector>

#include "drivers/softcx/engine/parse.h"
#include "drivers/softcx/wire/frame_ring.h"

namespace softcx {
namespace {

using Bytes = std::vector<uint8_t>;

// Ethernet, IPv4 or IPv6, TCP with 12 bytes of options, `payload` bytes.
Bytes tcp_frame(bool ipv6, size_t payload, uint8_t flags = 0x19) {
    const size_t ip = ipv6 ? 40 : 20;
    Bytes frame(14 + ip + 32 + payload, 0x11);
    store_be16(frame.data() + 12, ipv6 ? kTypeIpv6 : kTypeIpv4);
    uint8_t* l3 = frame.data() + 14;
    if (ipv6) {
        store_be32(l3, 0x60000000);
        store_be16(l3 + 4, static_cast<uint16_t>(32 + payload));
        l3[6] = kProtocolTcp;
    } else {
        store_be16(l3, 0x4500);
        store_be16(l3 + 2, static_cast<uint16_t>(52 + payload));
        store_be16(l3 + 4, 0xfffe);
        store_be16(l3 + 6, 0x4000);
        l3[9] = kProtocolTcp;
    }
    uint8_t* l4 = l3 + ip;
    store_be32(l4 + 4, 0xfffffff0);
    l4[12] = 0x80;
    l4[13] = flags;
    return frame;
}

OffloadHeader large(uint8_t kind, uint16_t size) {
    OffloadHeader header{};
    header.flags = kNeedsChecksum;
    header.kind = kind;
    header.segment_size = size;
    return header;
}

class LargeTcp : public ::testing::TestWithParam<bool> {};

TEST_P(LargeTcp, IsCutIntoWhatTcpWouldHaveSent) {
    const bool ipv6 = GetParam();
    const Bytes frame = tcp_frame(ipv6, 3000);
    const auto plan = plan_segments(frame.data(), static_cast<uint32_t>(frame.size()),
                                    large(ipv6 ? kLargeTcp6 : kLargeTcp4 | kLargeEcn, 1400));
    ASSERT_TRUE(plan.has_value());
    ASSERT_EQ(plan->segments(), 3u);
    const uint32_t l4 = ipv6 ? 54 : 34;
    uint32_t sequence = 0xfffffff0;
    for (uint32_t i = 0; i < 3; ++i) {
        const uint32_t payload = i == 2 ? 200 : 1400;
        Bytes segment(kMaxFrame);
        const uint32_t length =
            make_segment(*plan, i, kEthL3Checksum | kEthL4Checksum, segment.data());
        EXPECT_EQ(length, l4 + 32 + payload);
        const ParsedFrame parsed = parse_frame(segment.data(), length);
        EXPECT_EQ(parsed.l3_end, length);
        const FrameChecksums checksums = validate_checksums(parsed);
        EXPECT_TRUE(checksums.l3_ok && checksums.l4_ok);
        EXPECT_EQ(load_be32(segment.data() + l4 + 4), sequence);
        EXPECT_EQ(segment[l4 + 13], i == 2 ? 0x19 : 0x10) << "FIN and PSH go with the last";
        if (!ipv6) {
            EXPECT_EQ(load_be16(segment.data() + 18), static_cast<uint16_t>(0xfffe + i));
        }
        sequence += payload;
    }
}

INSTANTIATE_TEST_SUITE_P(Versions, LargeTcp, ::testing::Bool());

TEST(PlanSegments, RefusesWhatDoesNotFit) {
    const Bytes frame = tcp_frame(false, 3000);
    const auto length = static_cast<uint32_t>(frame.size());
    EXPECT_FALSE(plan_segments(frame.data(), 13, large(kLargeTcp4, 1400)));
    EXPECT_FALSE(plan_segments(frame.data(), length, large(kLargeTcp6, 1400)));
    EXPECT_FALSE(plan_segments(frame.data(), length, large(kLargeUdp, 1400)));
    EXPECT_FALSE(plan_segments(frame.data(), length, large(3, 1400))) << "UDP fragmentation";
    EXPECT_FALSE(plan_segments(frame.data(), length, large(kLargeTcp4, 0)));
    EXPECT_FALSE(plan_segments(frame.data(), length, large(kLargeTcp4, 10200)));
    EXPECT_FALSE(plan_segments(frame.data(), 50, large(kLargeTcp4, 1400)));
}

TEST(FinishChecksum, RefusesAFieldOutsideTheFrame) {
    Bytes frame(64);
    EXPECT_FALSE(finish_checksum(frame.data(), 64, 65, 0));
    EXPECT_FALSE(finish_checksum(frame.data(), 64, 34, 29));
    EXPECT_FALSE(finish_checksum(frame.data(), 64, 0, 0xffff));
    EXPECT_TRUE(finish_checksum(frame.data(), 64, 34, 28));
}

TEST(InsertTag, PutsItBehindTheAddresses) {
    Bytes room(4 + 60);
    for (size_t i = 0; i < 60; ++i)
        room[4 + i] = static_cast<uint8_t>(i);
    EXPECT_EQ(insert_tag(room.data() + 4, 60, {0x88a8, 0x1234}), 64u);
    for (uint8_t i = 0; i < 12; ++i)
        EXPECT_EQ(room[i], i);
    EXPECT_EQ(load_be32(room.data() + 12), 0x88a81234u);
    EXPECT_EQ(room[16], 12);
}

}  // namespace
}  // namespace softcx
