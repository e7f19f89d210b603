// SPDX-License-Identifier: BSD-3-Clause
// What the device says by itself: link, failure, completion events.
#include <rte_bus_vdev.h>
#include <rte_interrupts.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "drivers/net/mlx5raw/port.h"
#include "drivers/softcx/softcx.h"
#include "test/mlx5raw/port_fixture.h"

namespace tagwire::mlx5raw {
namespace {

class EventsTest : public PortPair {
  protected:
    static constexpr rte_eth_intr_conf kAll = {.lsc = 1, .rxq = 0, .rmv = 1};

    static constexpr rte_eth_event_type kWatched[] = {
        RTE_ETH_EVENT_INTR_LSC, RTE_ETH_EVENT_INTR_RMV, RTE_ETH_EVENT_INTR_RESET};

    // ethdev keeps callbacks of a port number beyond the port.
    void TearDown() override {
        for (const rte_eth_event_type type : kWatched) {
            rte_eth_dev_callback_unregister(1, type, on_event, this);
        }
        PortPair::TearDown();
    }

    // Events of port 1 are counted until the test ends.
    void watch() {
        ASSERT_EQ(ports[1], 1);
        for (const rte_eth_event_type type : kWatched) {
            ASSERT_EQ(rte_eth_dev_callback_register(ports[1], type, on_event, this), 0);
        }
    }
    static int on_event(uint16_t, rte_eth_event_type type, void* test, void*) {
        auto& self = *static_cast<EventsTest*>(test);
        ++self.seen[type];
        if (self.close_in_callback && type == RTE_ETH_EVENT_INTR_RMV) {
            EXPECT_EQ(rte_eth_dev_stop(self.ports[1]), 0);
            EXPECT_EQ(rte_eth_dev_close(self.ports[1]), 0);
            self.closed = true;
        }
        return 0;
    }
    // The interrupt thread is another one: give it time.
    template <typename Condition>
    static bool comes_true(Condition condition) {
        for (int i = 0; i < 2000 && !condition(); ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return condition();
    }
    bool comes(rte_eth_event_type type, unsigned count = 1) {
        return comes_true([&] { return seen[type] >= count; });
    }

    RxQueue& rx(uint16_t queue) { return *rx_queue(&rte_eth_devices[ports[1]], queue); }
    TxQueue& tx(uint16_t queue) { return *tx_queue(&rte_eth_devices[ports[1]], queue); }
    ibv_context* context() { return port_of(&rte_eth_devices[ports[1]]).device->context(); }
    uint32_t cqn_of(const ibv_wq* wq) { return cqn_of(wq->cq); }
    static uint32_t cqn_of(ibv_cq* cq) {
        mlx5dv_cq direct = {};
        mlx5dv_obj object = {};
        object.cq.in = cq;
        object.cq.out = &direct;
        EXPECT_EQ(mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ), 0);
        return direct.cqn;
    }

    std::atomic<unsigned> seen[RTE_ETH_EVENT_MAX] = {};
    std::atomic<bool> close_in_callback{false}, closed{false};
};

TEST_F(EventsTest, TheLinkComesAndGoes) {
    NEEDS_SOFTCX();
    open({.interrupts = kAll});
    watch();
    rte_eth_link link = {};
    EXPECT_EQ(rte_eth_link_get_nowait(ports[1], &link), 0);
    EXPECT_EQ(link.link_status, RTE_ETH_LINK_UP) << "known from the start on";
    ASSERT_EQ(softcx_set_link(rdma_device(1).c_str(), 0), 0);
    ASSERT_TRUE(comes(RTE_ETH_EVENT_INTR_LSC));
    EXPECT_EQ(rte_eth_link_get_nowait(ports[1], &link), 0);
    EXPECT_EQ(link.link_status, RTE_ETH_LINK_DOWN);
    ASSERT_EQ(softcx_set_link(rdma_device(1).c_str(), 1), 0);
    ASSERT_TRUE(comes(RTE_ETH_EVENT_INTR_LSC, 2));
    EXPECT_EQ(rte_eth_link_get_nowait(ports[1], &link), 0);
    EXPECT_EQ(link.link_status, RTE_ETH_LINK_UP);
    EXPECT_EQ(xstats_of(ports[1]).at("port_link_changes"), 2u);
    EXPECT_EQ(exchange(ethernet_frame(100)).size(), 1u);
}

TEST_F(EventsTest, WithoutLscNobodyIsCalledAndTheLinkIsStillRight) {
    NEEDS_SOFTCX();
    open();
    watch();
    ASSERT_EQ(softcx_set_link(rdma_device(1).c_str(), 0), 0);
    EXPECT_TRUE(comes_true([&] { return xstats_of(ports[1]).at("port_link_changes") == 1; }));
    EXPECT_EQ(seen[RTE_ETH_EVENT_INTR_LSC], 0u);
    rte_eth_link link = {};
    EXPECT_EQ(rte_eth_link_get_nowait(ports[1], &link), 0);
    EXPECT_EQ(link.link_status, RTE_ETH_LINK_DOWN);
    softcx_set_link(rdma_device(1).c_str(), 1);
}

TEST_F(EventsTest, AFailedDeviceIsReportedAndThePortCanBeClosedAndProbedAgain) {
    NEEDS_SOFTCX();
    open({.interrupts = kAll});
    watch();
    for (int i = 0; i < 10; ++i) {
        send(ports[0], 0, ethernet_frame(100));
        send(ports[1], 0, ethernet_frame(100));
    }
    ASSERT_EQ(softcx_inject_device_fatal(rdma_device(1).c_str()), 0);
    ASSERT_TRUE(comes(RTE_ETH_EVENT_INTR_RMV));
    EXPECT_EQ(rte_eth_dev_is_removed(ports[1]), 1);
    EXPECT_EQ(xstats_of(ports[1]).at("port_device_fatal"), 1u);

    // Bursts find nothing and a full ring, and crash on neither.
    settle();
    for (int i = 0; i < 1000; ++i) {
        rte_mbuf* packet = make_mbuf(ethernet_frame(100));
        if (rte_eth_tx_burst(ports[1], 0, &packet, 1) == 0) {
            rte_pktmbuf_free(packet);
        }
        EXPECT_EQ(rte_eth_rx_burst(ports[1], 0, &packet, 1), 0);
    }
    EXPECT_GT(xstats_of(ports[1]).at("tx_q0_ring_full"), 0u);
    rte_ether_addr address = {{2, 0, 0, 0, 1, 2}};
    EXPECT_EQ(rte_eth_dev_mac_addr_add(ports[1], &address, 0), -EIO);
    ASSERT_EQ(rte_eth_dev_stop(ports[1]), 0);
    EXPECT_EQ(rte_eth_dev_start(ports[1]), -EIO);
    const rte_eth_conf conf = {};
    EXPECT_EQ(rte_eth_dev_configure(ports[1], 1, 1, &conf), -EIO);

    close();
    open();
    settle();
    receive(ports[1]);  // what waited on the wire
    EXPECT_EQ(exchange(ethernet_frame(100)).size(), 1u);
}

TEST_F(EventsTest, ThePortMayBeClosedByItsOwnCallback) {
    NEEDS_SOFTCX();
    open({.interrupts = kAll});
    watch();
    close_in_callback = true;
    ASSERT_EQ(softcx_inject_device_fatal(rdma_device(1).c_str()), 0);
    ASSERT_TRUE(comes_true([&] { return closed.load(); }));
    close();
    open();
    EXPECT_EQ(exchange(ethernet_frame(100)).size(), 1u);
}

TEST_F(EventsTest, AnOverrunOfAReceiveQueueAsksForARestart) {
    NEEDS_SOFTCX();
    open({.interrupts = kAll});
    watch();
    ASSERT_EQ(exchange(ethernet_frame(100)).size(), 1u);
    ASSERT_EQ(softcx_inject_cq_overrun(rdma_device(1).c_str(), cqn_of(rx(0).wq())), 0);
    EXPECT_TRUE(exchange(ethernet_frame(100)).empty());
    ASSERT_TRUE(comes(RTE_ETH_EVENT_INTR_RESET));
    EXPECT_EQ(xstats_of(ports[1]).at("port_completion_queue_errors"), 1u);
    ASSERT_EQ(rte_eth_dev_stop(ports[1]), 0);
    ASSERT_EQ(rte_eth_dev_start(ports[1]), 0);
    EXPECT_EQ(exchange(ethernet_frame(100)).size(), 1u);
}

TEST_F(EventsTest, AnOverrunOfASendQueueAsksForARestart) {
    NEEDS_SOFTCX();
    open({.interrupts = kAll});
    watch();
    ASSERT_EQ(softcx_inject_cq_overrun(rdma_device(1).c_str(), cqn_of(tx(0).qp()->send_cq)), 0);
    // Until the device completes something.
    for (int i = 0; i < 400; ++i) {
        rte_mbuf* packet = make_mbuf(ethernet_frame(100));
        if (rte_eth_tx_burst(ports[1], 0, &packet, 1) == 0) {
            rte_pktmbuf_free(packet);
        }
    }
    settle();
    ASSERT_TRUE(comes(RTE_ETH_EVENT_INTR_RESET));
    receive(ports[0]);
    ASSERT_EQ(rte_eth_dev_stop(ports[1]), 0);
    ASSERT_EQ(rte_eth_dev_start(ports[1]), 0);
    Frame back = ethernet_frame_to(mac_of(ports[0]), 100);
    send(ports[1], 0, back);
    settle();
    EXPECT_EQ(receive(ports[0]).size(), 1u);
}

class RxInterruptTest : public EventsTest {
  protected:
    void SetUp() override {
        EventsTest::SetUp();
        open({.interrupts = {.lsc = 0, .rxq = 1, .rmv = 0}});
        for (uint16_t queue = 0; queue < 2; ++queue) {
            ASSERT_EQ(
                rte_eth_dev_rx_intr_ctl_q(ports[1], queue, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_ADD,
                                          reinterpret_cast<void*>(uintptr_t{queue})),
                0);
        }
    }
    void TearDown() override {
        for (uint16_t queue = 0; queue < 2; ++queue) {
            EXPECT_EQ(rte_eth_dev_rx_intr_ctl_q(ports[1], queue, RTE_EPOLL_PER_THREAD,
                                                RTE_INTR_EVENT_DEL, nullptr),
                      0);
        }
        EventsTest::TearDown();
    }
    // The queues that woke, as bits.
    static unsigned woken() {
        rte_epoll_event events[4];
        const int count = rte_epoll_wait(RTE_EPOLL_PER_THREAD, events, 4, 0);
        EXPECT_GE(count, 0);
        unsigned bits = 0;
        for (int i = 0; i < count; ++i) {
            bits |= 1u << reinterpret_cast<uintptr_t>(events[i].epdata.data);
        }
        return bits;
    }
    // Goes to queue 0: not hashed.
    void send_one() {
        send(ports[0], 0, ethernet_frame(100));
        settle();
    }
};

TEST_F(RxInterruptTest, AnArmedQueueWakesOnceForAPacket) {
    for (int round = 0; round < 10; ++round) {
        ASSERT_EQ(rte_eth_dev_rx_intr_enable(ports[1], 0), 0);
        ASSERT_EQ(rte_eth_dev_rx_intr_enable(ports[1], 1), 0);
        settle();
        EXPECT_EQ(woken(), 0u);
        send_one();
        EXPECT_EQ(woken(), 1u);
        ASSERT_EQ(rte_eth_dev_rx_intr_disable(ports[1], 0), 0);
        ASSERT_EQ(rte_eth_dev_rx_intr_disable(ports[1], 1), 0);
        EXPECT_EQ(woken(), 0u);
        EXPECT_EQ(receive(ports[1]).size(), 1u);
    }
}

TEST_F(RxInterruptTest, AQueueThatIsNotArmedSleeps) {
    send_one();
    EXPECT_EQ(woken(), 0u);
    EXPECT_EQ(receive(ports[1]).size(), 1u);
}

// Else a packet between the last poll and the arming would be slept over.
TEST_F(RxInterruptTest, ArmingWithAPacketWaitingWakesAtOnce) {
    send_one();
    ASSERT_EQ(rte_eth_dev_rx_intr_enable(ports[1], 0), 0);
    settle();
    EXPECT_EQ(woken(), 1u);
    ASSERT_EQ(rte_eth_dev_rx_intr_disable(ports[1], 0), 0);
    EXPECT_EQ(receive(ports[1]).size(), 1u);
}

TEST_F(RxInterruptTest, ArmingWithPartOfACompressedSessionWaitingWakesAtOnce) {
    std::vector<rte_mbuf*> frames;
    for (int i = 0; i < 16; ++i) {
        frames.push_back(make_mbuf(ethernet_frame(100)));
    }
    send(ports[0], 0, frames);
    settle();
    rte_mbuf* first[5];
    ASSERT_EQ(rte_eth_rx_burst(ports[1], 0, first, 5), 5);
    rte_pktmbuf_free_bulk(first, 5);
    ASSERT_EQ(xstats_of(ports[1])["rx_q0_compressed_sessions"], 1u);

    ASSERT_EQ(rte_eth_dev_rx_intr_enable(ports[1], 0), 0);
    settle();
    EXPECT_EQ(woken(), 1u);
    ASSERT_EQ(rte_eth_dev_rx_intr_disable(ports[1], 0), 0);
    EXPECT_EQ(receive(ports[1]).size(), 11u);
}

TEST_F(RxInterruptTest, WorksAfterARestart) {
    // Vectors are made anew: epoll entries go with the old ones.
    for (uint16_t queue = 0; queue < 2; ++queue) {
        ASSERT_EQ(rte_eth_dev_rx_intr_ctl_q(ports[1], queue, RTE_EPOLL_PER_THREAD,
                                            RTE_INTR_EVENT_DEL, nullptr),
                  0);
    }
    ASSERT_EQ(rte_eth_dev_stop(ports[1]), 0);
    ASSERT_EQ(rte_eth_dev_start(ports[1]), 0);
    for (uint16_t queue = 0; queue < 2; ++queue) {
        ASSERT_EQ(
            rte_eth_dev_rx_intr_ctl_q(ports[1], queue, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_ADD,
                                      reinterpret_cast<void*>(uintptr_t{queue})),
            0);
    }
    ASSERT_EQ(rte_eth_dev_rx_intr_enable(ports[1], 0), 0);
    send_one();
    EXPECT_EQ(woken(), 1u);
    ASSERT_EQ(rte_eth_dev_rx_intr_disable(ports[1], 0), 0);
    EXPECT_EQ(receive(ports[1]).size(), 1u);
}

// With a device that runs by itself, in a process of its own: the other tests step it.
TEST_F(EventsTest, SleepsUntilAPacketComes) {
    NEEDS_SOFTCX();
    const char* mode = std::getenv("SOFTCX_MODE");
    if (mode == nullptr || strcmp(mode, "thread") != 0) {
        setenv("SOFTCX_MODE", "thread", 1);
        EXPECT_EQ(run_alone("EventsTest.SleepsUntilAPacketComes"), 0);
        setenv("SOFTCX_MODE", "step", 1);
        return;
    }
    open({.interrupts = {.lsc = 0, .rxq = 1, .rmv = 0}});
    ASSERT_EQ(
        rte_eth_dev_rx_intr_ctl_q(ports[1], 0, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_ADD, nullptr),
        0);
    for (int round = 0; round < 20; ++round) {
        ASSERT_EQ(rte_eth_dev_rx_intr_enable(ports[1], 0), 0);
        std::atomic<bool> sending = false;
        std::thread later([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            sending = true;
            send(ports[0], 0, ethernet_frame(100));
        });
        rte_epoll_event event;
        EXPECT_EQ(rte_epoll_wait(RTE_EPOLL_PER_THREAD, &event, 1, 10000), 1);
        EXPECT_TRUE(sending) << "woken by nothing";
        later.join();
        ASSERT_EQ(rte_eth_dev_rx_intr_disable(ports[1], 0), 0);
        EXPECT_EQ(receive(ports[1]).size(), 1u);
    }
    EXPECT_EQ(
        rte_eth_dev_rx_intr_ctl_q(ports[1], 0, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_DEL, nullptr),
        0);
}

TEST_F(EventsTest, ADeviceIsResetByStoppingIt) {
    NEEDS_SOFTCX();
    open({.interrupts = kAll});
    ASSERT_EQ(softcx_inject_cq_overrun(rdma_device(1).c_str(), cqn_of(rx(0).wq())), 0);
    EXPECT_TRUE(exchange(ethernet_frame(100)).empty());
    ASSERT_EQ(rte_eth_dev_reset(ports[1]), 0);
    configure(ports[1], {});
    ASSERT_EQ(rte_eth_dev_start(ports[1]), 0);
    EXPECT_EQ(exchange(ethernet_frame(100)).size(), 1u);
}

TEST_F(EventsTest, WithoutRxInterruptsInTheConfigurationEnablingIsRefused) {
    open();
    EXPECT_EQ(rte_eth_dev_rx_intr_enable(ports[1], 0), -ENOTSUP);
}

}  // namespace
}  // namespace tagwire::mlx5raw
