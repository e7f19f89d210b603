// SPDX-License-Identifier: BSD-3-Clause
// Which frames a port takes, and which queue they go to (rows W6, W7, W9, W10).
#include <set>

#include "drivers/net/mlx5raw/rss.h"
#include "test/mlx5raw/port_fixture.h"
#include "test/mlx5raw/rss_vectors.h"

namespace tagwire::mlx5raw {
namespace {

class SteeringTest : public PortPair {
  protected:
    std::vector<uint16_t> table() const {
        rte_eth_rss_reta_entry64 entries[2] = {};
        entries[0].mask = entries[1].mask = ~uint64_t{0};
        EXPECT_EQ(rte_eth_dev_rss_reta_query(ports[1], entries, 128), 0);
        std::vector<uint16_t> result;
        for (unsigned i = 0; i < 128; ++i) {
            result.push_back(entries[i / 64].reta[i % 64]);
        }
        return result;
    }

    void set_table(const std::function<uint16_t(unsigned)>& queue_of) {
        rte_eth_rss_reta_entry64 entries[2] = {};
        entries[0].mask = entries[1].mask = ~uint64_t{0};
        for (unsigned i = 0; i < 128; ++i) {
            entries[i / 64].reta[i % 64] = queue_of(i);
        }
        ASSERT_EQ(rte_eth_dev_rss_reta_update(ports[1], entries, 128), 0);
    }

    Frame udp(uint16_t source_port) const {
        return ip_frame(mac_of(ports[1]), {{10, 0, 0, 1}, {10, 0, 0, 2}, source_port, 7},
                        IPPROTO_UDP, 20);
    }
};

TEST_F(SteeringTest, TablesFromOneEntryTo512) {
    for (const unsigned size : {1u, 2u, 4u, 64u, 256u, 512u}) {
        open({.devargs = "reta_size=" + std::to_string(size), .queues = 4});
        const std::vector<Received> got =
            exchange(ip_frame(mac_of(ports[1]), kRssVectors[0].flow, IPPROTO_TCP, 10));
        ASSERT_EQ(got.size(), 1u) << size;
        EXPECT_EQ(got[0].queue, kRssVectors[0].port_hash % size % 4) << size;
        close();
    }
}

TEST_F(SteeringTest, WithoutRssEverythingGoesToQueueZero) {
    open({.queues = 4, .rss_types = 0, .rx_offloads = 0});
    for (const RssVector& v : kRssVectors) {
        const std::vector<Received> got =
            exchange(ip_frame(mac_of(ports[1]), v.flow, IPPROTO_UDP, 10));
        ASSERT_EQ(got.size(), 1u);
        EXPECT_EQ(got[0].queue, 0);
        EXPECT_FALSE(got[0].flags & RTE_MBUF_F_RX_RSS_HASH);
    }
}

TEST_F(SteeringTest, ANewTableMovesTheFlows) {
    open({.queues = 4});
    set_table([](unsigned) { return 3; });
    for (uint16_t port = 1; port < 20; ++port) {
        const std::vector<Received> got = exchange(udp(port));
        ASSERT_EQ(got.size(), 1u);
        EXPECT_EQ(got[0].queue, 3);
    }
    EXPECT_EQ(table(), std::vector<uint16_t>(128, 3));
}

// Frames lie in the wire, in the send ring and in the receive rings at each change.
TEST_F(SteeringTest, ChangingTheTableUnderTrafficLosesAndDoublesNothing) {
    open({.queues = 4, .descriptors = 512});
    std::multiset<Frame> sent, received;
    for (unsigned round = 0; round < 20; ++round) {
        for (uint16_t i = 0; i < 40; ++i) {
            const Frame frame = udp(static_cast<uint16_t>(round * 40 + i));
            sent.insert(frame);
            send(ports[0], 0, frame);
        }
        set_table([round](unsigned i) { return static_cast<uint16_t>((i * 5 + round) % 4); });
    }
    settle();
    for (Received& got : receive(ports[1])) {
        received.insert(std::move(got.bytes));
    }
    EXPECT_EQ(received, sent);
}

TEST_F(SteeringTest, ANewKeyChangesTheHash) {
    open({.queues = 4});
    RssKey key;
    key.fill(0x5a);
    rte_eth_rss_conf conf = {};
    conf.rss_key = key.data();
    conf.rss_key_len = static_cast<uint8_t>(key.size());
    conf.rss_hf = RTE_ETH_RSS_NONFRAG_IPV4_UDP;
    ASSERT_EQ(rte_eth_dev_rss_hash_update(ports[1], &conf), 0);

    const std::vector<Received> got = exchange(udp(77));
    const std::vector<uint8_t> input = {10, 0, 0, 1, 10, 0, 0, 2, 0, 77, 0, 7};
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].hash, toeplitz(key, input));

    RssKey read = {};
    conf.rss_key = read.data();
    ASSERT_EQ(rte_eth_dev_rss_hash_conf_get(ports[1], &conf), 0);
    EXPECT_EQ(read, key);
    EXPECT_EQ(conf.rss_hf, uint64_t{RTE_ETH_RSS_NONFRAG_IPV4_UDP});
}

TEST_F(SteeringTest, ATableEntryWithoutAQueueIsRefusedAndChangesNothing) {
    open();
    const std::vector<uint16_t> before = table();
    rte_eth_rss_reta_entry64 entries[2] = {};
    entries[0].mask = 1;
    entries[0].reta[0] = 2;
    EXPECT_EQ(rte_eth_dev_rss_reta_update(ports[1], entries, 128), -EINVAL);
    EXPECT_EQ(table(), before);
}

TEST_F(SteeringTest, OtherStationsFramesNeedPromiscuousMode) {
    open();
    const Frame frame = ethernet_frame_to({{2, 0, 0, 0, 7, 7}}, 100);
    EXPECT_TRUE(exchange(frame).empty());
    ASSERT_EQ(rte_eth_promiscuous_enable(ports[1]), 0);
    EXPECT_EQ(exchange(frame).size(), 1u);
    EXPECT_EQ(exchange(ethernet_frame(100)).size(), 1u);
    ASSERT_EQ(rte_eth_promiscuous_disable(ports[1]), 0);
    EXPECT_TRUE(exchange(frame).empty());
}

TEST_F(SteeringTest, BroadcastAlwaysArrivesGroupsOnRequest) {
    open();
    const Frame broadcast = ethernet_frame_to({{255, 255, 255, 255, 255, 255}}, 60);
    rte_ether_addr group_address = {{1, 0, 0x5e, 0, 0, 5}};
    const Frame group = ethernet_frame_to(group_address, 60);
    EXPECT_EQ(exchange(broadcast).size(), 1u);
    EXPECT_TRUE(exchange(group).empty());
    ASSERT_EQ(rte_eth_allmulticast_enable(ports[1]), 0);
    EXPECT_EQ(exchange(group).size(), 1u);
    EXPECT_EQ(exchange(broadcast).size(), 1u);
    ASSERT_EQ(rte_eth_allmulticast_disable(ports[1]), 0);
    EXPECT_TRUE(exchange(group).empty());
    ASSERT_EQ(rte_eth_dev_set_mc_addr_list(ports[1], &group_address, 1), 0);
    EXPECT_EQ(exchange(group).size(), 1u);
    ASSERT_EQ(rte_eth_dev_set_mc_addr_list(ports[1], nullptr, 0), 0);
    EXPECT_TRUE(exchange(group).empty());
}

TEST_F(SteeringTest, ASecondAddressAndANewOne) {
    open();
    rte_ether_addr second = {{2, 0, 0, 0, 1, 2}};
    rte_ether_addr other = {{2, 0, 0, 0, 1, 3}};
    const rte_ether_addr first = mac_of(ports[1]);
    ASSERT_EQ(rte_eth_dev_mac_addr_add(ports[1], &second, 0), 0);
    EXPECT_EQ(exchange(ethernet_frame_to(second, 60)).size(), 1u);
    EXPECT_EQ(exchange(ethernet_frame_to(first, 60)).size(), 1u);
    ASSERT_EQ(rte_eth_dev_mac_addr_remove(ports[1], &second), 0);
    EXPECT_TRUE(exchange(ethernet_frame_to(second, 60)).empty());
    ASSERT_EQ(rte_eth_dev_default_mac_addr_set(ports[1], &other), 0);
    EXPECT_EQ(exchange(ethernet_frame_to(other, 60)).size(), 1u);
    EXPECT_TRUE(exchange(ethernet_frame_to(first, 60)).empty());
}

TEST_F(SteeringTest, AStoppedQueueLeavesTheOthersAlone) {
    open();
    set_table([](unsigned i) { return static_cast<uint16_t>(i % 2); });
    ASSERT_EQ(rte_eth_dev_rx_queue_stop(ports[1], 1), 0);
    unsigned arrived = 0;
    for (uint16_t port = 0; port < 100; ++port) {
        for (const Received& got : exchange(udp(port))) {
            EXPECT_EQ(got.queue, 0);
            ++arrived;
        }
    }
    EXPECT_GT(arrived, 20u);
    EXPECT_LT(arrived, 80u);

    ASSERT_EQ(rte_eth_dev_rx_queue_start(ports[1], 1), 0);
    for (uint16_t port = 0; port < 100; ++port) {
        EXPECT_EQ(exchange(udp(port)).size(), 1u);
    }
}

}  // namespace
}  // namespace tagwire::mlx5raw
