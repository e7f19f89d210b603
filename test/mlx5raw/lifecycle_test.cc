// SPDX-License-Identifier: BSD-3-Clause
// Opening, starting, failing, recovering: nothing is lost on the way.
#include <rte_bus_vdev.h>
#include <rte_errno.h>

#include "drivers/net/mlx5raw/port.h"
#include "drivers/softcx/softcx.h"
#include "test/mlx5raw/port_fixture.h"

namespace tagwire::mlx5raw {
namespace {

constexpr unsigned kLocalProtection = 0x04;

class Lifecycle : public PortPair {
  protected:
    RxQueue& rx(unsigned port, uint16_t queue) {
        return *rx_queue(&rte_eth_devices[ports[port]], queue);
    }
    TxQueue& tx(unsigned port, uint16_t queue) {
        return *tx_queue(&rte_eth_devices[ports[port]], queue);
    }
};

TEST_F(Lifecycle, AHundredStartsAndStopsWithTraffic) {
    open();
    for (int cycle = 0; cycle < 100; ++cycle) {
        const Frame frame = ethernet_frame(60 + static_cast<size_t>(cycle));
        ASSERT_EQ(exchange(frame).size(), 1u) << cycle;
        send(ports[0], 1, frame);  // still under way when the port stops
        for (const uint16_t port : ports) {
            ASSERT_EQ(rte_eth_dev_stop(port), 0);
        }
        ASSERT_EQ(rte_mempool_avail_count(pool), pool_before) << cycle;
        for (const uint16_t port : ports) {
            ASSERT_EQ(rte_eth_dev_start(port), 0);
        }
        settle();
        receive(ports[1]);
    }
    EXPECT_EQ(softcx_counter("mlx5_0", "client_errors"), 0u);
}

TEST_F(Lifecycle, PortsComeAndGo) {
    for (int cycle = 0; cycle < 10; ++cycle) {
        open();
        ASSERT_EQ(exchange(ethernet_frame(100)).size(), 1u);
        close();
    }
}

TEST_F(Lifecycle, ReconfiguringChangesTheNumberOfQueues) {
    open();
    for (const uint16_t queues : {4, 1, 3, 2}) {
        for (const uint16_t port : ports) {
            ASSERT_EQ(rte_eth_dev_stop(port), 0);
            configure(port, {.queues = queues});
            ASSERT_EQ(rte_eth_dev_start(port), 0);
        }
        ASSERT_EQ(exchange(ethernet_frame(100)).size(), 1u) << queues;
    }
}

TEST_F(Lifecycle, APoolThatIsTooSmallFailsTheStartAndLeavesNothingBehind) {
    open({.start = false});
    std::vector<rte_mbuf*> hoard;
    while (rte_mbuf* const mbuf = rte_pktmbuf_alloc(pool)) {
        hoard.push_back(mbuf);
    }
    // Enough for the first queue, not for the second.
    rte_pktmbuf_free_bulk(&hoard[hoard.size() - 300], 300);
    hoard.resize(hoard.size() - 300);

    EXPECT_EQ(rte_eth_dev_start(ports[0]), -ENOMEM);

    EXPECT_EQ(rte_mempool_avail_count(pool), 300u);
    EXPECT_EQ(rx(0, 0).wq(), nullptr);
    EXPECT_EQ(tx(0, 0).qp(), nullptr);
    rte_pktmbuf_free_bulk(hoard.data(), static_cast<unsigned>(hoard.size()));
    EXPECT_EQ(rte_eth_dev_start(ports[0]), 0);
    EXPECT_EQ(rte_eth_dev_start(ports[1]), 0);
    EXPECT_EQ(exchange(ethernet_frame(100)).size(), 1u);
}

TEST_F(Lifecycle, AFrameThatDoesNotFitTheBuffersNeedsScatter) {
    open({.mtu = 9000, .start = false});
    EXPECT_EQ(rte_eth_dev_start(ports[0]), -EINVAL);
}

TEST_F(Lifecycle, TheMtuOfARunningPortStaysWithinItsBuffers) {
    open();
    EXPECT_EQ(rte_eth_dev_set_mtu(ports[0], 2000), 0);
    EXPECT_EQ(rte_eth_dev_set_mtu(ports[0], 9000), -EBUSY);
    uint16_t mtu = 0;
    rte_eth_dev_get_mtu(ports[0], &mtu);
    EXPECT_EQ(mtu, 2000);
}

TEST_F(Lifecycle, UnknownDeviceAndArguments) {
    EXPECT_NE(rte_vdev_init("net_mlx5raw9", "ibdev=mlx5_77"), 0);
    EXPECT_NE(rte_vdev_init("net_mlx5raw9", ("ibdev=" + rdma_device(0) + ",port=2").c_str()), 0);
    EXPECT_NE(rte_vdev_init("net_mlx5raw9", ("ibdev=" + rdma_device(0) + ",speed=9").c_str()), 0);
    EXPECT_NE(rte_vdev_init("net_mlx5raw9", ""), 0) << "two devices: one must be named";
    EXPECT_EQ(rte_eth_dev_count_avail(), 0);
}

TEST_F(Lifecycle, LinkFollowsTheDevice) {
    NEEDS_SOFTCX();
    open();
    rte_eth_link link = {};
    ASSERT_EQ(rte_eth_link_get_nowait(ports[0], &link), 0);
    EXPECT_EQ(link.link_status, RTE_ETH_LINK_UP);
    EXPECT_GT(link.link_speed, 0u);
    ASSERT_EQ(softcx_set_link("mlx5_0", 0), 0);
    ASSERT_EQ(rte_eth_link_get_nowait(ports[0], &link), 0);
    EXPECT_EQ(link.link_status, RTE_ETH_LINK_DOWN);
    softcx_set_link("mlx5_0", 1);
    ASSERT_EQ(rte_eth_link_get_nowait(ports[0], &link), 0);
    EXPECT_EQ(link.link_status, RTE_ETH_LINK_UP);
}

TEST_F(Lifecycle, AnRxErrorCostsOneFrameAndNoMbuf) {
    NEEDS_SOFTCX();
    open();
    const Frame frame = ethernet_frame(100);
    for (int i = 0; i < 50; ++i) {
        ASSERT_EQ(softcx_inject_wq_error("mlx5_1", rx(1, 0).wq()->wq_num, kLocalProtection), 0);
        EXPECT_TRUE(exchange(frame).empty()) << i;
        ASSERT_EQ(exchange(frame).size(), 1u) << i;
        ASSERT_EQ(exchange(frame).size(), 1u) << i;
    }
    const std::map<std::string, uint64_t> xstats = xstats_of(ports[1]);
    EXPECT_EQ(xstats.at("rx_q0_error_completions"), 50u);
    EXPECT_EQ(xstats.at("rx_q0_recoveries"), 50u);
    EXPECT_GT(xstats.at("rx_q0_flushed_receives"), 0u);
    EXPECT_EQ(stats_of(ports[1]).ierrors, 50u);
    // The other queue has not noticed.
    EXPECT_EQ(xstats.at("rx_q1_recoveries"), 0u);
}

TEST_F(Lifecycle, AnRxErrorBehindGoodFramesLosesNoneOfThem) {
    NEEDS_SOFTCX();
    open();
    const Frame frame = ethernet_frame(100);
    for (int i = 0; i < 10; ++i) {
        send(ports[0], 0, frame);
    }
    settle();
    ASSERT_EQ(softcx_inject_wq_error("mlx5_1", rx(1, 0).wq()->wq_num, kLocalProtection), 0);
    send(ports[0], 0, frame);
    settle();
    EXPECT_EQ(receive(ports[1]).size(), 10u);
    EXPECT_EQ(exchange(frame).size(), 1u);
}

TEST_F(Lifecycle, AnRxErrorWithScatteredBuffers) {
    NEEDS_SOFTCX();
    open({.mtu = 9000, .rx_offloads = RTE_ETH_RX_OFFLOAD_SCATTER});
    for (int i = 0; i < 20; ++i) {
        const Frame frame = ethernet_frame(5000);
        ASSERT_EQ(exchange(frame, {2000, 4000}).size(), 1u);
        ASSERT_EQ(softcx_inject_wq_error("mlx5_1", rx(1, 0).wq()->wq_num, kLocalProtection), 0);
        EXPECT_TRUE(exchange(frame, {2000, 4000}).empty());
        const std::vector<Received> got = exchange(frame, {2000, 4000});
        ASSERT_EQ(got.size(), 1u);
        EXPECT_EQ(got[0].bytes, frame);
    }
}

TEST_F(Lifecycle, ATxErrorCostsWhatWasUnderWayAndNoMbuf) {
    NEEDS_SOFTCX();
    open();
    const Frame frame = ethernet_frame(100);
    for (int i = 0; i < 50; ++i) {
        ASSERT_EQ(exchange(frame).size(), 1u) << i;
        ASSERT_EQ(softcx_inject_qp_error("mlx5_0", tx(0, 0).qp()->qp_num, kLocalProtection), 0);
        send(ports[0], 0, frame);
        settle();
        EXPECT_TRUE(receive(ports[1]).empty()) << i;
        ASSERT_EQ(exchange(frame).size(), 1u) << i;
    }
    const std::map<std::string, uint64_t> xstats = xstats_of(ports[0]);
    EXPECT_EQ(xstats.at("tx_q0_error_completions"), 50u);
    EXPECT_EQ(xstats.at("tx_q0_recoveries"), 50u);
    EXPECT_GT(stats_of(ports[0]).oerrors, 0u);
    EXPECT_EQ(xstats.at("tx_q1_recoveries"), 0u);
}

TEST_F(Lifecycle, TxQueueStopAndStart) {
    open();
    const Frame frame = ethernet_frame(100);
    for (int i = 0; i < 5; ++i) {
        ASSERT_EQ(rte_eth_dev_tx_queue_stop(ports[0], 0), 0);
        send(ports[0], 1, frame);
        settle();
        EXPECT_EQ(receive(ports[1]).size(), 1u);
        ASSERT_EQ(rte_eth_dev_tx_queue_start(ports[0], 0), 0);
        EXPECT_EQ(exchange(frame).size(), 1u);
    }
}

TEST_F(Lifecycle, WhatThePortSaysAboutItself) {
    open();
    rte_eth_dev_info info;
    ASSERT_EQ(rte_eth_dev_info_get(ports[0], &info), 0);
    EXPECT_STREQ(info.driver_name, "net_mlx5raw");
    EXPECT_EQ(info.reta_size, 128);
    EXPECT_EQ(info.hash_key_size, 40);
    EXPECT_GE(info.max_rx_queues, 16);
    rte_eth_rxq_info rxq;
    rte_eth_txq_info txq;
    ASSERT_EQ(rte_eth_rx_queue_info_get(ports[0], 1, &rxq), 0);
    ASSERT_EQ(rte_eth_tx_queue_info_get(ports[0], 1, &txq), 0);
    EXPECT_EQ(rxq.mp, pool);
    EXPECT_EQ(rxq.nb_desc, 256);
    EXPECT_EQ(rxq.rx_buf_size, 2048);
    EXPECT_EQ(txq.nb_desc, 256);
    char version[64];
    EXPECT_EQ(rte_eth_dev_fw_version_get(ports[0], version, sizeof(version)), 0);
    EXPECT_GT(rte_eth_dev_fw_version_get(ports[0], version, 2), 2);
    rte_eth_burst_mode mode;
    EXPECT_EQ(rte_eth_rx_burst_mode_get(ports[0], 0, &mode), 0);
    EXPECT_EQ(rte_eth_tx_burst_mode_get(ports[0], 0, &mode), 0);
    EXPECT_GT(rte_eth_dev_get_supported_ptypes(ports[0], RTE_PTYPE_ALL_MASK, nullptr, 0), 4);
}

TEST_F(Lifecycle, DescriptorsShowWhatWaits) {
    open();
    EXPECT_EQ(rte_eth_rx_queue_count(ports[1], 0), 0);
    for (int i = 0; i < 3; ++i) {
        send(ports[0], 0, ethernet_frame(100));
    }
    EXPECT_EQ(rte_eth_tx_descriptor_status(ports[0], 0, 2), RTE_ETH_TX_DESC_FULL);
    settle();
    EXPECT_EQ(rte_eth_rx_queue_count(ports[1], 0), 3);
    EXPECT_EQ(rte_eth_rx_descriptor_status(ports[1], 0, 2), RTE_ETH_RX_DESC_DONE);
    EXPECT_EQ(rte_eth_rx_descriptor_status(ports[1], 0, 3), RTE_ETH_RX_DESC_AVAIL);
    EXPECT_EQ(receive(ports[1]).size(), 3u);
}

}  // namespace
}  // namespace tagwire::mlx5raw
