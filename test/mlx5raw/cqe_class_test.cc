// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/cqe_class.h"

#include <gtest/gtest.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

namespace tagwire::mlx5raw {
namespace {

constexpr uint64_t kChecksumFlags = RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK;

struct Completion {
    unsigned l3 = kL3None, l4 = kL4None;
    bool l3_ok = false, l4_ok = false, fragment = false, vlan = false;

    // The header field of a CQE as the device lays it out: two bytes.
    uint16_t header() const {
        const unsigned low = 1u | (l3_ok ? 2u : 0u) | (l4_ok ? 4u : 0u);
        const unsigned high = (vlan ? 1u : 0u) | l3 << 2 | l4 << 4 | (fragment ? 0x80u : 0u);
        return static_cast<uint16_t>(low | high << 8);
    }
};

CqeClass classify(const Completion& completion, const CqeClassOptions& options) {
    return make_cqe_classes(options)[cqe_class_index(completion.header())];
}

TEST(CqeClass, IndexStaysInTheTableForAnyHeader) {
    for (uint32_t header = 0; header <= UINT16_MAX; ++header) {
        ASSERT_LT(cqe_class_index(static_cast<uint16_t>(header)), CqeClassTable().size());
    }
}

TEST(CqeClass, GoodTcpOverIpv4) {
    const CqeClass kind = classify({.l3 = kL3Ipv4, .l4 = kL4TcpAck, .l3_ok = true, .l4_ok = true},
                                   {.checksum = true});
    EXPECT_EQ(kind.packet_type,
              RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4_EXT_UNKNOWN | RTE_PTYPE_L4_TCP);
    EXPECT_EQ(kind.flags & kChecksumFlags,
              RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD);
}

TEST(CqeClass, BadChecksumsAreToldApart) {
    const CqeClass bad_ip =
        classify({.l3 = kL3Ipv4, .l4 = kL4Udp, .l4_ok = true}, {.checksum = true});
    const CqeClass bad_l4 =
        classify({.l3 = kL3Ipv4, .l4 = kL4Udp, .l3_ok = true}, {.checksum = true});
    EXPECT_EQ(bad_ip.flags & kChecksumFlags,
              RTE_MBUF_F_RX_IP_CKSUM_BAD | RTE_MBUF_F_RX_L4_CKSUM_GOOD);
    EXPECT_EQ(bad_l4.flags & kChecksumFlags,
              RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_BAD);
}

TEST(CqeClass, Ipv6HasNoHeaderChecksum) {
    const CqeClass kind =
        classify({.l3 = kL3Ipv6, .l4 = kL4Udp, .l3_ok = true, .l4_ok = true}, {.checksum = true});
    EXPECT_EQ(kind.packet_type,
              RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV6_EXT_UNKNOWN | RTE_PTYPE_L4_UDP);
    EXPECT_EQ(kind.flags & kChecksumFlags, RTE_MBUF_F_RX_L4_CKSUM_GOOD);
}

TEST(CqeClass, AFragmentHasNoL4Verdict) {
    const CqeClass kind =
        classify({.l3 = kL3Ipv4, .l3_ok = true, .fragment = true}, {.checksum = true});
    EXPECT_EQ(kind.packet_type,
              RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4_EXT_UNKNOWN | RTE_PTYPE_L4_FRAG);
    EXPECT_EQ(kind.flags & RTE_MBUF_F_RX_L4_CKSUM_MASK, RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN);
}

TEST(CqeClass, AStrippedTagIsReported) {
    EXPECT_EQ(classify({.vlan = true}, {}).flags, RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED);
    EXPECT_EQ(classify({.vlan = false}, {}).flags, 0u);
}

TEST(CqeClass, WhatIsNoIpIsEthernetWithoutVerdict) {
    const CqeClass kind = classify({}, {.checksum = true, .rss_types = ~uint64_t{0}});
    EXPECT_EQ(kind.packet_type, uint32_t{RTE_PTYPE_L2_ETHER});
    EXPECT_EQ(kind.flags, 0u);
}

TEST(CqeClass, NothingIsReportedThatWasNotAskedFor) {
    const CqeClass kind = classify({.l3 = kL3Ipv4, .l4 = kL4Udp, .l3_ok = true, .l4_ok = true}, {});
    EXPECT_EQ(kind.flags, 0u);
}

TEST(CqeClass, TheHashIsReportedForTheTypesThatAreHashed) {
    const CqeClassOptions udp_only{.rss_types = RTE_ETH_RSS_NONFRAG_IPV4_UDP};
    EXPECT_EQ(classify({.l3 = kL3Ipv4, .l4 = kL4Udp}, udp_only).flags, RTE_MBUF_F_RX_RSS_HASH);
    EXPECT_EQ(classify({.l3 = kL3Ipv4, .l4 = kL4Tcp}, udp_only).flags, 0u);
    EXPECT_EQ(classify({.l3 = kL3Ipv6, .l4 = kL4Udp}, udp_only).flags, 0u);
    // A fragment goes by its addresses, which are not hashed here.
    EXPECT_EQ(classify({.l3 = kL3Ipv4, .l4 = kL4Udp, .fragment = true}, udp_only).flags, 0u);
}

TEST(CqeClass, AddressesAreHashedWhereThePortsAreNot) {
    const CqeClassOptions addresses{.rss_types = RTE_ETH_RSS_IPV4};
    EXPECT_EQ(classify({.l3 = kL3Ipv4, .l4 = kL4Tcp}, addresses).flags, RTE_MBUF_F_RX_RSS_HASH);
    EXPECT_EQ(classify({.l3 = kL3Ipv4}, addresses).flags, RTE_MBUF_F_RX_RSS_HASH);
}

}  // namespace
}  // namespace tagwire::mlx5raw
