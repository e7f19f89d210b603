// SPDX-License-Identifier: BSD-3-Clause
// The VLAN filter: which blocks of identifiers it drops, and what passes then.
#include "drivers/net/mlx5raw/vlan_filter.h"

#include "drivers/net/mlx5raw/port.h"
#include "test/mlx5raw/port_fixture.h"

namespace tagwire::mlx5raw {
namespace {

void expect_exact(const VlanSet& allowed, size_t most) {
    const std::vector<VlanMatch> blocks = blocks_outside(allowed);
    EXPECT_LE(blocks.size(), most);
    for (uint32_t vlan = 0; vlan < allowed.size(); ++vlan) {
        unsigned hits = 0;
        for (const VlanMatch& block : blocks) {
            EXPECT_NE(block.mask, 0);
            hits += (vlan & block.mask) == block.value;
        }
        EXPECT_EQ(hits, allowed[vlan] ? 0u : 1u) << vlan;
    }
}

TEST(VlanBlocks, CoverWhatIsNotAllowedOnceAndNothingElse) {
    expect_exact({}, 2);
    expect_exact(VlanSet().set(), 0);
    expect_exact(VlanSet().set(0), 12);
    expect_exact(VlanSet().set(4095), 12);
    expect_exact(VlanSet().set(0).set(100).set(101).set(2000), 36);
    VlanSet odd;
    for (size_t vlan = 1; vlan < odd.size(); vlan += 2) {
        odd.set(vlan);
    }
    expect_exact(odd, 2048);
}

class VlanFilterTest : public PortPair {
  protected:
    static constexpr uint64_t kOffloads = RTE_ETH_RX_OFFLOAD_VLAN_FILTER;

    size_t arrivals(const Frame& frame, uint16_t tci) {
        return exchange(vlan_frame(frame, tci)).size();
    }
    Port& port() { return port_of(&rte_eth_devices[ports[1]]); }
};

TEST_F(VlanFilterTest, ListedVlansAndUntaggedFramesPass) {
    open({.rx_offloads = kOffloads});
    const Frame frame = ethernet_frame(100);
    const Frame broadcast = ethernet_frame_to({{255, 255, 255, 255, 255, 255}}, 80);
    EXPECT_EQ(exchange(frame).size(), 1u);
    EXPECT_EQ(arrivals(frame, 100), 0u);
    EXPECT_EQ(arrivals(broadcast, 100), 0u);
    ASSERT_EQ(rte_eth_dev_vlan_filter(ports[1], 100, 1), 0);
    ASSERT_EQ(rte_eth_dev_vlan_filter(ports[1], 4094, 1), 0);
    EXPECT_EQ(exchange(frame).size(), 1u);
    EXPECT_EQ(arrivals(frame, 100), 1u);
    EXPECT_EQ(arrivals(frame, 0xe000 + 100), 1u) << "priority bits do not matter";
    EXPECT_EQ(arrivals(broadcast, 4094), 1u);
    EXPECT_EQ(arrivals(frame, 101), 0u);
    EXPECT_EQ(arrivals(frame, 0xe000), 1u) << "a priority tag belongs to no VLAN";
    ASSERT_EQ(rte_eth_dev_vlan_filter(ports[1], 100, 0), 0);
    EXPECT_EQ(arrivals(frame, 100), 0u);
    EXPECT_EQ(arrivals(frame, 4094), 1u);
}

TEST_F(VlanFilterTest, TheListStaysOverStopAndStart) {
    open({.rx_offloads = kOffloads});
    ASSERT_EQ(rte_eth_dev_vlan_filter(ports[1], 7, 1), 0);
    ASSERT_EQ(rte_eth_dev_stop(ports[1]), 0);
    ASSERT_EQ(rte_eth_dev_start(ports[1]), 0);
    EXPECT_EQ(arrivals(ethernet_frame(100), 7), 1u);
    EXPECT_EQ(arrivals(ethernet_frame(100), 8), 0u);
}

TEST_F(VlanFilterTest, CanBeSwitchedWhileThePortRuns) {
    open({.rx_offloads = 0});
    EXPECT_EQ(arrivals(ethernet_frame(100), 8), 1u);
    EXPECT_NE(rte_eth_dev_vlan_filter(ports[1], 7, 1), 0) << "the offload is off";
    ASSERT_EQ(rte_eth_dev_set_vlan_offload(ports[1], RTE_ETH_VLAN_FILTER_OFFLOAD), 0);
    ASSERT_EQ(rte_eth_dev_vlan_filter(ports[1], 7, 1), 0);
    EXPECT_EQ(arrivals(ethernet_frame(100), 8), 0u);
    EXPECT_EQ(arrivals(ethernet_frame(100), 7), 1u);
    ASSERT_EQ(rte_eth_dev_set_vlan_offload(ports[1], 0), 0);
    EXPECT_EQ(arrivals(ethernet_frame(100), 8), 1u);
    EXPECT_EQ(port().vlan_filter.rule_count(), 0u);
}

TEST_F(VlanFilterTest, APromiscuousPortTakesEveryVlan) {
    open({.rx_offloads = kOffloads});
    ASSERT_EQ(rte_eth_promiscuous_enable(ports[1]), 0);
    EXPECT_EQ(arrivals(ethernet_frame(100), 8), 1u);
    ASSERT_EQ(rte_eth_promiscuous_disable(ports[1]), 0);
    EXPECT_EQ(arrivals(ethernet_frame(100), 8), 0u);
}

TEST_F(VlanFilterTest, StaysThroughAChangeOfTheTable) {
    open({.rx_offloads = kOffloads | RTE_ETH_RX_OFFLOAD_RSS_HASH});
    ASSERT_EQ(rte_eth_dev_vlan_filter(ports[1], 7, 1), 0);
    rte_eth_rss_reta_entry64 entries[2] = {};
    entries[0].mask = 1;
    entries[0].reta[0] = 1;
    ASSERT_EQ(rte_eth_dev_rss_reta_update(ports[1], entries, 128), 0);
    EXPECT_EQ(arrivals(ethernet_frame(100), 8), 0u);
    EXPECT_EQ(arrivals(ethernet_frame(100), 7), 1u);
}

}  // namespace
}  // namespace tagwire::mlx5raw
