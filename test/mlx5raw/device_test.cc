// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/device.h"

#include <gtest/gtest.h>

#include "drivers/net/mlx5raw/flow_rules.h"

namespace tagwire::mlx5raw {
namespace {

TEST(MacFromGid, Eui64) {
    const uint8_t gid[16] = {0xfe, 0x80, 0,    0,    0,    0,    0,    0,
                             0x04, 0x3f, 0x72, 0xff, 0xfe, 0xb1, 0x02, 0x03};
    rte_ether_addr mac;
    ASSERT_TRUE(mac_from_gid(gid, mac));
    const rte_ether_addr expected = {{0x06, 0x3f, 0x72, 0xb1, 0x02, 0x03}};
    EXPECT_TRUE(rte_is_same_ether_addr(&mac, &expected));
}

TEST(MacFromGid, OtherGidsHaveNone) {
    const uint8_t mapped_ipv4[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
    const uint8_t zero[16] = {};
    rte_ether_addr mac;
    EXPECT_FALSE(mac_from_gid(mapped_ipv4, mac));
    EXPECT_FALSE(mac_from_gid(zero, mac));
}

TEST(Listening, OwnAddressesAndBroadcast) {
    Listening listening;
    listening.unicast = {{{2, 0, 0, 0, 0, 1}}, {}, {{2, 0, 0, 0, 0, 2}}};
    const std::vector<DestinationMatch> matches = listening.matches();
    ASSERT_EQ(matches.size(), 3u);
    EXPECT_EQ(matches[0], match_exactly({{2, 0, 0, 0, 0, 1}}));
    EXPECT_EQ(matches[1], match_exactly({{2, 0, 0, 0, 0, 2}}));
    EXPECT_EQ(matches[2], match_broadcast());
}

TEST(Listening, AllMulticastReplacesTheGroups) {
    Listening listening;
    listening.multicast = {{{1, 0, 0x5e, 0, 0, 1}}};
    EXPECT_EQ(listening.matches().back(), match_exactly({{1, 0, 0x5e, 0, 0, 1}}));
    listening.all_multicast = true;
    EXPECT_EQ(listening.matches().back(), match_all_groups());
    EXPECT_EQ(listening.matches().size(), 2u);
}

TEST(Listening, OnlyGroupsAreGroups) {
    EXPECT_TRUE(match_broadcast().group());
    EXPECT_TRUE(match_all_groups().group());
    EXPECT_FALSE(match_everything().group());
    EXPECT_FALSE(match_exactly({{2, 0, 0, 0, 0, 1}}).group());
}

}  // namespace
}  // namespace tagwire::mlx5raw
