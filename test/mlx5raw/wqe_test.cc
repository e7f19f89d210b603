// SPDX-License-Identifier: BSD-3-Clause
// Byte by byte against the PRM's layout, not against our own structures.
#include "drivers/net/mlx5raw/wqe.h"

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <array>
#include <vector>

namespace tagwire::mlx5raw {
namespace {

template <typename T>
std::vector<uint8_t> bytes_of(const T& value) {
    const auto* first = reinterpret_cast<const uint8_t*>(&value);
    return {first, first + sizeof(T)};
}

TEST(Wqe, ControlSegment) {
    ControlSegment segment;
    memset(static_cast<void*>(&segment), 0xee, sizeof(segment));
    write_control(segment, kOpcodeSend, 0x1234, 0xabcdefu << 8, 3);
    EXPECT_EQ(bytes_of(segment),
              (std::vector<uint8_t>{0x00, 0x12, 0x34, 0x0a, 0xab, 0xcd, 0xef, 0x03, 0, 0, 0,
                                    kCompletionFirstError, 0, 0, 0, 0}));
}

TEST(Wqe, ARequestedCompletionChangesOneByte) {
    ControlSegment segment;
    write_control(segment, kOpcodeSend, 0xffff, 0x10u << 8, 4);
    const std::vector<uint8_t> before = bytes_of(segment);
    request_completion(segment);
    std::vector<uint8_t> after = bytes_of(segment);
    EXPECT_EQ(after[11], 0x08);
    after[11] = before[11];
    EXPECT_EQ(after, before);
}

TEST(Wqe, TheDoorbellTakesTheFirstEightBytesAsTheyLie) {
    alignas(64) std::array<uint8_t, 64> wqe = {};
    write_control(*reinterpret_cast<ControlSegment*>(wqe.data()), kOpcodeSend, 7, 0x55u << 8, 3);
    const uint64_t value = doorbell_value(wqe.data());
    EXPECT_EQ(memcmp(&value, wqe.data(), sizeof(value)), 0);
    EXPECT_NE(value, 0u);
}

TEST(Wqe, EthernetSegment) {
    EthernetSegment segment;
    memset(static_cast<void*>(&segment), 0xee, sizeof(segment));
    write_ethernet(segment, kChecksumL3 | kChecksumL4);
    EXPECT_EQ(bytes_of(segment),
              (std::vector<uint8_t>{0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Wqe, DataSegment) {
    DataSegment segment;
    write_data(segment, 1514, Be32::of(0x00000a00), 0x1122334455667788);
    EXPECT_EQ(bytes_of(segment), (std::vector<uint8_t>{0, 0, 0x05, 0xea, 0, 0, 0x0a, 0, 0x11, 0x22,
                                                       0x33, 0x44, 0x55, 0x66, 0x77, 0x88}));
}

TEST(Wqe, ChecksumRequestsOfAnMbuf) {
    EXPECT_EQ(tx_checksum_flags(0), 0);
    EXPECT_EQ(tx_checksum_flags(RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM), kChecksumL3);
    EXPECT_EQ(tx_checksum_flags(RTE_MBUF_F_TX_UDP_CKSUM), kChecksumL4);
    EXPECT_EQ(tx_checksum_flags(RTE_MBUF_F_TX_TCP_CKSUM | RTE_MBUF_F_TX_IP_CKSUM),
              kChecksumL3 | kChecksumL4);
    EXPECT_EQ(tx_checksum_flags(RTE_MBUF_F_TX_SCTP_CKSUM | RTE_MBUF_F_TX_IP_CKSUM), kChecksumL3);
}

TEST(Wqe, BlocksOfOctowords) {
    EXPECT_EQ(blocks_of(3), 1u);
    EXPECT_EQ(blocks_of(4), 1u);
    EXPECT_EQ(blocks_of(5), 2u);
    EXPECT_EQ(blocks_of(kMaxOctowords), 16u);
    EXPECT_EQ(ethernet_octowords(0), 1u);
    EXPECT_EQ(ethernet_octowords(2), 1u);
    EXPECT_EQ(ethernet_octowords(18), 2u);
    EXPECT_EQ(ethernet_octowords(19), 3u);
    EXPECT_EQ(inline_octowords(12), 1u);
    EXPECT_EQ(inline_octowords(60), 4u);
    EXPECT_EQ(inline_octowords(61), 5u);
    EXPECT_EQ(kHeaderOctowords + inline_octowords(kMaxInlineData), kMaxOctowords);
}

}  // namespace
}  // namespace tagwire::mlx5raw
