// SPDX-License-Identifier: BSD-3-Clause
// What the receive paths report beside the bytes, on each path.
#include <rte_mbuf_dyn.h>

#include "drivers/softcx/softcx.h"
#include "test/mlx5raw/rx_paths.h"

namespace tagwire::mlx5raw {
namespace {

constexpr uint16_t kTci = 0x6123;  // priority 3, VLAN 0x123
constexpr size_t kBurst = 40;      // more than a vector group, and not a multiple of one

class RxOffloads : public RxPathTest {};

Frame tagged(const Frame& frame) {
    Frame result = frame;
    const uint8_t tag[] = {0x81, 0x00, kTci >> 8, kTci & 0xff};
    result.insert(result.begin() + 12, std::begin(tag), std::end(tag));
    return result;
}

TEST_P(RxOffloads, ThePathIsTheOneAskedFor) {
    open(options(0));
    rte_eth_burst_mode mode;
    ASSERT_EQ(rte_eth_rx_burst_mode_get(ports[1], 0, &mode), 0);
    EXPECT_STREQ(mode.info, GetParam().mode);
}

TEST_P(RxOffloads, VlanTagsAreStrippedAndReported) {
    open(options(RTE_ETH_RX_OFFLOAD_VLAN_STRIP));
    std::vector<Frame> plain, sent;
    for (size_t i = 0; i < kBurst; ++i) {
        plain.push_back(ethernet_frame(60 + i));
        sent.push_back(i % 3 == 0 ? plain.back() : tagged(plain.back()));
    }
    const std::vector<rte_mbuf*> packets = exchange_burst(sent);
    ASSERT_EQ(packets.size(), kBurst);
    for (size_t i = 0; i < kBurst; ++i) {
        const uint64_t flags =
            packets[i]->ol_flags & (RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED);
        EXPECT_EQ(bytes_of(packets[i]), plain[i]) << i;
        if (i % 3 == 0) {
            EXPECT_EQ(flags, 0u) << i;
        } else {
            EXPECT_EQ(flags, RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED) << i;
            EXPECT_EQ(packets[i]->vlan_tci, kTci) << i;
        }
        rte_pktmbuf_free(packets[i]);
    }
}

TEST_P(RxOffloads, WithoutStrippingTheTagStays) {
    open(options(0));
    const std::vector<Frame> frames(kBurst, tagged(ethernet_frame(100)));
    const std::vector<rte_mbuf*> packets = exchange_burst(frames);
    ASSERT_EQ(packets.size(), kBurst);
    for (rte_mbuf* packet : packets) {
        EXPECT_EQ(bytes_of(packet), frames[0]);
        EXPECT_EQ(packet->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED, 0u);
        rte_pktmbuf_free(packet);
    }
}

TEST_P(RxOffloads, StrippingChangesWhileTheQueueRuns) {
    open(options(0));
    const Frame plain = ethernet_frame(100);
    for (const bool on : {true, false, true}) {
        ASSERT_EQ(rte_eth_dev_set_vlan_strip_on_queue(ports[1], 0, on), 0);
        const std::vector<rte_mbuf*> packets =
            exchange_burst(std::vector<Frame>(kBurst, tagged(plain)));
        ASSERT_EQ(packets.size(), kBurst);
        for (rte_mbuf* packet : packets) {
            EXPECT_EQ((packet->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0, on);
            EXPECT_EQ(bytes_of(packet), on ? plain : tagged(plain));
            if (on) {
                EXPECT_EQ(packet->vlan_tci, kTci);
            }
            rte_pktmbuf_free(packet);
        }
    }
}

TEST_P(RxOffloads, StrippingChangesForTheWholePort) {
    open(options(0));
    ASSERT_EQ(rte_eth_dev_set_vlan_offload(ports[1], RTE_ETH_VLAN_STRIP_OFFLOAD), 0);
    // It outlives a restart.
    for (int start = 0; start < 2; ++start) {
        const std::vector<rte_mbuf*> packets = exchange_burst({tagged(ethernet_frame(100))});
        ASSERT_EQ(packets.size(), 1u);
        EXPECT_EQ(bytes_of(packets[0]), ethernet_frame(100));
        EXPECT_EQ(packets[0]->vlan_tci, kTci);
        rte_pktmbuf_free(packets[0]);
        ASSERT_EQ(rte_eth_dev_stop(ports[1]), 0);
        ASSERT_EQ(rte_eth_dev_start(ports[1]), 0);
    }
}

TEST_P(RxOffloads, TimestampsGoForward) {
    open(options(RTE_ETH_RX_OFFLOAD_TIMESTAMP));
    const int field = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, nullptr);
    const int bit = rte_mbuf_dynflag_lookup(RTE_MBUF_DYNFLAG_RX_TIMESTAMP_NAME, nullptr);
    ASSERT_GE(field, 0);
    ASSERT_GE(bit, 0);
    rte_mbuf_timestamp_t last = 0;
    for (int burst = 0; burst < 3; ++burst) {
        const std::vector<rte_mbuf*> packets =
            exchange_burst(std::vector<Frame>(kBurst, ethernet_frame(100)));
        ASSERT_EQ(packets.size(), kBurst);
        const rte_mbuf_timestamp_t before = last;
        for (rte_mbuf* packet : packets) {
            EXPECT_NE(packet->ol_flags & RTE_BIT64(bit), 0u);
            const auto time = *RTE_MBUF_DYNFIELD(packet, field, rte_mbuf_timestamp_t*);
            EXPECT_GE(time, last);
            last = time;
            rte_pktmbuf_free(packet);
        }
        EXPECT_GT(last, before);
    }
}

// softcx shows the clock as it was when the device moved last.
TEST_F(PortPair, TheClockOfTimestampsCanBeRead) {
    open();
    uint64_t before = 0;
    uint64_t after = 0;
    ASSERT_EQ(rte_eth_read_clock(ports[0], &before), 0);
    EXPECT_EQ(exchange(ethernet_frame(100)).size(), 1u);
    ASSERT_EQ(rte_eth_read_clock(ports[0], &after), 0);
    EXPECT_GT(before, 0u);
    EXPECT_GT(after, before);
}

TEST_F(PortPair, ATimeForManyPacketsIsRefused) {
    open({.devargs = "rxq_cqe_comp_en=1",
          .rx_offloads = RTE_ETH_RX_OFFLOAD_TIMESTAMP,
          .start = false});
    EXPECT_EQ(rte_eth_dev_start(ports[0]), -EINVAL);
}

TEST_P(RxOffloads, WithoutTheOffloadNoTimeIsClaimed) {
    open(options(RTE_ETH_RX_OFFLOAD_TIMESTAMP));
    close();
    open(options(0));
    const int bit = rte_mbuf_dynflag_lookup(RTE_MBUF_DYNFLAG_RX_TIMESTAMP_NAME, nullptr);
    const std::vector<rte_mbuf*> packets = exchange_burst({ethernet_frame(100)});
    ASSERT_EQ(packets.size(), 1u);
    EXPECT_EQ(packets[0]->ol_flags & RTE_BIT64(bit), 0u);
    rte_pktmbuf_free(packets[0]);
}

INSTANTIATE_TEST_SUITE_P(Paths, RxOffloads, testing::ValuesIn(kEveryRxPath), name_of_path);

}  // namespace
}  // namespace tagwire::mlx5raw
