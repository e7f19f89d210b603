// SPDX-License-Identifier: BSD-3-Clause
// Faults of a device at each of its queues, with traffic on all: the queue that is hit
// goes on or stands still with the right event, the others do not notice, and no mbuf is
// missing (PortPair checks that).
#include <infiniband/mlx5dv.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "drivers/net/mlx5raw/port.h"
#include "drivers/softcx/softcx.h"
#include "test/mlx5raw/port_fixture.h"

namespace tagwire::mlx5raw {
namespace {

constexpr uint16_t kQueues = 4;
constexpr unsigned kLocalProtection = 0x04, kLocalLength = 0x01, kLocalOperation = 0x02;

class QueueFaults : public PortPair {
  protected:
    void SetUp() override {
        PortPair::SetUp();
        NEEDS_SOFTCX();
        open({.queues = kQueues, .interrupts = {.lsc = 1, .rxq = 0, .rmv = 1}});
        for (const rte_eth_event_type type : kWatched) {
            ASSERT_EQ(rte_eth_dev_callback_register(RTE_ETH_ALL, type, on_event, this), 0);
        }
        for (const uint16_t port : ports) {
            ASSERT_TRUE(link_becomes(port, RTE_ETH_LINK_UP));
        }
        find_flows();
    }
    void TearDown() override {
        for (const rte_eth_event_type type : kWatched) {
            rte_eth_dev_callback_unregister(RTE_ETH_ALL, type, on_event, this);
        }
        PortPair::TearDown();
    }
    static int on_event(uint16_t, rte_eth_event_type type, void* test, void*) {
        ++static_cast<QueueFaults*>(test)->events[type];
        return 0;
    }
    bool comes(rte_eth_event_type type) {
        for (int i = 0; i < 2000 && events[type] == 0; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return events[type] != 0;
    }
    // What the interrupt thread learned last.
    static bool link_becomes(uint16_t port, uint16_t status) {
        rte_eth_link link = {};
        for (int i = 0; i < 2000; ++i) {
            softcx_step();
            if (rte_eth_link_get_nowait(port, &link) == 0 && link.link_status == status) {
                return true;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return false;
    }

    Frame udp(uint16_t source_port) const {
        return ip_frame(mac_of(ports[1]), {{10, 0, 0, 1}, {10, 0, 0, 2}, source_port, 7},
                        IPPROTO_UDP, 40);
    }
    // A source port for each receive queue.
    void find_flows() {
        for (uint16_t port = 0; port < 1000; ++port) {
            const std::vector<Received> got = exchange(udp(port));
            ASSERT_EQ(got.size(), 1u);
            flows[got[0].queue] = port;
        }
    }
    // Sends a frame through each send queue to each receive queue; how many arrived where.
    std::array<unsigned, kQueues> round() {
        for (uint16_t tx = 0; tx < kQueues; ++tx) {
            for (const uint16_t flow : flows) {
                rte_mbuf* packet = make_mbuf(udp(flow));
                if (rte_eth_tx_burst(ports[0], tx, &packet, 1) == 0) {
                    rte_pktmbuf_free(packet);
                }
            }
        }
        settle();
        std::array<unsigned, kQueues> arrived = {};
        for (const Received& got : receive(ports[1])) {
            ++arrived[got.queue];
        }
        // A full ring is looked at again at the next burst.
        for (uint16_t tx = 0; tx < kQueues; ++tx) {
            rte_eth_tx_done_cleanup(ports[0], tx, 0);
        }
        return arrived;
    }
    void expect_all_arrive() {
        const std::array<unsigned, kQueues> arrived = round();
        for (uint16_t queue = 0; queue < kQueues; ++queue) {
            EXPECT_EQ(arrived[queue], kQueues) << "RX queue " << queue;
        }
    }
    void restart(unsigned index) {
        ASSERT_EQ(rte_eth_dev_stop(ports[index]), 0);
        ASSERT_EQ(rte_eth_dev_start(ports[index]), 0);
    }

    rte_eth_dev* dev(unsigned index) { return &rte_eth_devices[ports[index]]; }
    static uint32_t cqn_of(ibv_cq* cq) {
        mlx5dv_cq direct = {};
        mlx5dv_obj object = {};
        object.cq.in = cq;
        object.cq.out = &direct;
        EXPECT_EQ(mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ), 0);
        return direct.cqn;
    }

    static constexpr rte_eth_event_type kWatched[] = {
        RTE_ETH_EVENT_INTR_LSC, RTE_ETH_EVENT_INTR_RMV, RTE_ETH_EVENT_INTR_RESET};
    std::atomic<unsigned> events[RTE_ETH_EVENT_MAX] = {};
    std::array<uint16_t, kQueues> flows = {};
};

TEST_F(QueueFaults, AReceiveErrorAtEachQueueCostsThatQueueOneFrame) {
    for (uint16_t queue = 0; queue < kQueues; ++queue) {
        for (const unsigned syndrome : {kLocalProtection, kLocalLength, kLocalOperation}) {
            ASSERT_EQ(softcx_inject_wq_error(rdma_device(1).c_str(),
                                             rx_queue(dev(1), queue)->wq()->wq_num, syndrome),
                      0);
            const std::array<unsigned, kQueues> arrived = round();
            for (uint16_t i = 0; i < kQueues; ++i) {
                EXPECT_EQ(arrived[i], i == queue ? 0 : kQueues) << i;
            }
            expect_all_arrive();
        }
        EXPECT_EQ(xstats_of(ports[1]).at("rx_q" + std::to_string(queue) + "_recoveries"), 3u);
    }
    EXPECT_EQ(events[RTE_ETH_EVENT_INTR_RESET], 0u);
}

TEST_F(QueueFaults, ASendErrorAtEachQueueCostsWhatWasUnderWayThere) {
    for (uint16_t queue = 0; queue < kQueues; ++queue) {
        for (const unsigned syndrome : {kLocalProtection, kLocalLength, kLocalOperation}) {
            ASSERT_EQ(softcx_inject_qp_error(rdma_device(0).c_str(),
                                             tx_queue(dev(0), queue)->qp()->qp_num, syndrome),
                      0);
            const std::array<unsigned, kQueues> arrived = round();
            for (uint16_t i = 0; i < kQueues; ++i) {
                EXPECT_EQ(arrived[i], kQueues - 1) << i;
            }
            expect_all_arrive();
        }
        EXPECT_EQ(xstats_of(ports[0]).at("tx_q" + std::to_string(queue) + "_recoveries"), 3u);
    }
}

TEST_F(QueueFaults, AnOverrunOfEachReceiveQueueStopsItAndARestartHeals) {
    for (uint16_t queue = 0; queue < kQueues; ++queue) {
        events[RTE_ETH_EVENT_INTR_RESET] = 0;
        ASSERT_EQ(softcx_inject_cq_overrun(rdma_device(1).c_str(),
                                           cqn_of(rx_queue(dev(1), queue)->wq()->cq)),
                  0);
        for (int i = 0; i < 3; ++i) {
            const std::array<unsigned, kQueues> arrived = round();
            for (uint16_t other = 0; other < kQueues; ++other) {
                EXPECT_EQ(arrived[other], other == queue ? 0 : kQueues) << other;
            }
        }
        EXPECT_TRUE(comes(RTE_ETH_EVENT_INTR_RESET));
        restart(1);
        expect_all_arrive();
    }
}

TEST_F(QueueFaults, AnOverrunOfEachSendQueueStopsItAndARestartHeals) {
    for (uint16_t queue = 0; queue < kQueues; ++queue) {
        events[RTE_ETH_EVENT_INTR_RESET] = 0;
        ASSERT_EQ(softcx_inject_cq_overrun(rdma_device(0).c_str(),
                                           cqn_of(tx_queue(dev(0), queue)->qp()->send_cq)),
                  0);
        // Until the ring has asked for a completion and is full.
        std::array<unsigned, kQueues> arrived = {};
        for (int i = 0; i < 200; ++i) {
            arrived = round();
        }
        for (const unsigned count : arrived) {
            EXPECT_EQ(count, kQueues - 1) << "the other send queues go on";
        }
        EXPECT_TRUE(comes(RTE_ETH_EVENT_INTR_RESET));
        restart(0);
        expect_all_arrive();
    }
}

TEST_F(QueueFaults, WithoutALinkFramesVanishAndComeAgainWithIt) {
    for (unsigned side = 0; side < 2; ++side) {
        events[RTE_ETH_EVENT_INTR_LSC] = 0;
        ASSERT_EQ(softcx_set_link(rdma_device(side).c_str(), 0), 0);
        EXPECT_EQ(round(), (std::array<unsigned, kQueues>{}));
        EXPECT_TRUE(comes(RTE_ETH_EVENT_INTR_LSC));
        EXPECT_TRUE(link_becomes(ports[side], RTE_ETH_LINK_DOWN));
        ASSERT_EQ(softcx_set_link(rdma_device(side).c_str(), 1), 0);
        ASSERT_TRUE(link_becomes(ports[side], RTE_ETH_LINK_UP));
        expect_all_arrive();
    }
}

TEST_F(QueueFaults, AFatalErrorOfEitherSideIsReportedAndTheOtherGoesOn) {
    for (unsigned side = 0; side < 2; ++side) {
        events[RTE_ETH_EVENT_INTR_RMV] = 0;
        round();
        ASSERT_EQ(softcx_inject_device_fatal(rdma_device(side).c_str()), 0);
        ASSERT_TRUE(comes(RTE_ETH_EVENT_INTR_RMV));
        for (int i = 0; i < 100; ++i) {
            EXPECT_EQ(round(), (std::array<unsigned, kQueues>{}));
        }
        EXPECT_EQ(rte_eth_dev_is_removed(ports[side]), 1);
        EXPECT_EQ(rte_eth_dev_is_removed(ports[1 - side]), 0);
        close();
        open({.queues = kQueues, .interrupts = {.lsc = 1, .rxq = 0, .rmv = 1}});
        settle();
        receive(ports[1]);  // what the wire kept
        expect_all_arrive();
    }
}

}  // namespace
}  // namespace tagwire::mlx5raw
