// SPDX-License-Identifier: BSD-3-Clause
// The published vectors of Microsoft's "Verifying the RSS Hash Calculation".
#include "drivers/net/mlx5raw/rss.h"

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <rte_ethdev.h>

#include <algorithm>

namespace tagwire::mlx5raw {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes operator+(Bytes a, const Bytes& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

Bytes port(uint16_t number) {
    return {static_cast<uint8_t>(number >> 8), static_cast<uint8_t>(number)};
}

struct Vector {
    const char* name;
    Bytes source, destination;
    uint16_t source_port, destination_port;
    uint32_t address_hash, port_hash;
};

const Vector kVectors[] = {
    {"v4 a", {66, 9, 149, 187}, {161, 142, 100, 80}, 2794, 1766, 0x323e8fc2, 0x51ccc178},
    {"v4 b", {199, 92, 111, 2}, {65, 69, 140, 83}, 14230, 4739, 0xd718262a, 0xc626b0ea},
    {"v4 c", {24, 19, 198, 95}, {12, 22, 207, 184}, 12898, 38024, 0xd2d0a5de, 0x5c2b394a},
    {"v4 d", {38, 27, 205, 30}, {209, 142, 163, 6}, 48228, 2217, 0x82989176, 0xafc7327f},
    {"v4 e", {153, 39, 163, 191}, {202, 188, 127, 2}, 44251, 1303, 0x5d1809c5, 0x10e828a2},
    {"v6 a",
     {0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x1f, 0xff, 0, 0, 0, 0, 0, 0, 0, 7},
     {0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x00, 0x03, 0, 0, 0, 0, 0, 0, 0, 1},
     2794,
     1766,
     0x2cc18cd5,
     0x40207d3d},
    {"v6 b",
     {0x3f, 0xfe, 0x05, 0x01, 0, 8, 0, 0, 0x02, 0x60, 0x97, 0xff, 0xfe, 0x40, 0xef, 0xab},
     {0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
     14230,
     4739,
     0x0f0c461c,
     0xdde51bbf},
    {"v6 c",
     {0x3f, 0xfe, 0x19, 0, 0x45, 0x45, 0, 3, 0x02, 0, 0xf8, 0xff, 0xfe, 0x21, 0x67, 0xcf},
     {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x02, 0, 0xf8, 0xff, 0xfe, 0x21, 0x67, 0xcf},
     44251,
     38024,
     0x4b61e985,
     0x02d1feef},
};

TEST(Rss, ToeplitzOfAddressesMatchesThePublishedVectors) {
    for (const Vector& v : kVectors) {
        EXPECT_EQ(toeplitz(kDefaultRssKey, v.source + v.destination), v.address_hash) << v.name;
    }
}

TEST(Rss, ToeplitzOfAddressesAndPortsMatchesThePublishedVectors) {
    for (const Vector& v : kVectors) {
        const Bytes input =
            v.source + v.destination + port(v.source_port) + port(v.destination_port);
        EXPECT_EQ(toeplitz(kDefaultRssKey, input), v.port_hash) << v.name;
    }
}

TEST(Rss, SpreadGoesRoundTheQueues) {
    RssConfig config;
    config.spread(8, 3);
    EXPECT_EQ(config.table, (std::vector<uint16_t>{0, 1, 2, 0, 1, 2, 0, 1}));
}

TEST(Rss, NoHashTypeMixesWhatADeviceCannotMix) {
    constexpr uint64_t kIpv4 = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4;
    constexpr uint64_t kIpv6 = IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6;
    constexpr uint64_t kTcp = IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP;
    constexpr uint64_t kUdp = IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP;
    for (size_t i = 0; i < kHashTypeCount; ++i) {
        const uint64_t fields = hash_fields_of(static_cast<HashType>(i));
        EXPECT_FALSE((fields & kIpv4) && (fields & kIpv6)) << i;
        EXPECT_FALSE((fields & kTcp) && (fields & kUdp)) << i;
    }
}

TEST(Rss, EveryHashTypeButEthernetAnswersToItsOwnRequests) {
    uint64_t seen = 0;
    for (size_t i = 0; i < kHashTypeCount - 1; ++i) {
        const uint64_t types = rss_types_of(static_cast<HashType>(i));
        EXPECT_NE(types, 0u) << i;
        EXPECT_EQ(types & seen, 0u) << i;
        seen |= types;
    }
    EXPECT_EQ(rss_types_of(HashType::kEthernet), 0u);
    EXPECT_EQ(seen, supported_rss_types());
}

}  // namespace
}  // namespace tagwire::mlx5raw
