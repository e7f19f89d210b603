// SPDX-License-Identifier: BSD-3-Clause
// Every library call that makes a queue, refused at its first use, its second, and so
// on: the start fails with a reason, nothing stays behind, and the next start works.
#include <cerrno>

#include "drivers/net/mlx5raw/port.h"
#include "drivers/softcx/softcx.h"
#include "test/mlx5raw/port_fixture.h"
#include "test/mlx5raw/refused_calls.h"

namespace tagwire::mlx5raw {
namespace {

constexpr unsigned kLocalProtection = 0x04;

class RefusedSteps : public PortPair {
  protected:
    rte_eth_dev* dev(unsigned index) { return &rte_eth_devices[ports[index]]; }
    TxQueue& sender() { return *tx_queue(dev(0), 0); }

    void SetUp() override {
        NEEDS_SOFTCX();
        PortPair::SetUp();
        open({.start = false});
        ASSERT_EQ(rte_eth_dev_start(ports[0]), 0);
    }
    void TearDown() override {
        refused_one();
        if (!IsSkipped()) {
            PortPair::TearDown();
        }
    }

    // How many starts were refused before one made no more of these calls.
    int refuse_each(Call call, int error) {
        const unsigned buffers = rte_mempool_avail_count(pool);
        for (int use = 0;; ++use) {
            refuse(call, use);
            const int result = rte_eth_dev_start(ports[1]);
            if (!refused_one()) {
                EXPECT_EQ(result, 0);
                EXPECT_EQ(exchange(ethernet_frame(100)).size(), 1u);
                return use;
            }
            EXPECT_EQ(result, error) << use;
            EXPECT_EQ(rte_mempool_avail_count(pool), buffers) << use;
            EXPECT_FALSE(port_of(dev(1)).steering.active());
            for (uint16_t queue = 0; queue < 2; ++queue) {
                EXPECT_EQ(rx_queue(dev(1), queue)->wq(), nullptr);
                EXPECT_EQ(tx_queue(dev(1), queue)->qp(), nullptr);
                EXPECT_EQ(tx_queue(dev(1), queue)->used_descriptors(), 0u);
            }
        }
    }
};

// Two queues of each direction; as many for rings that are mapped.
TEST_F(RefusedSteps, CreatingCompletionQueues) {
    EXPECT_EQ(refuse_each(Call::kCreateCq, -ENOSPC), 4);
}

TEST_F(RefusedSteps, CreatingSendQueues) {
    EXPECT_EQ(refuse_each(Call::kCreateQp, -ENOSPC), 2);
}

TEST_F(RefusedSteps, MappingRings) {
    EXPECT_EQ(refuse_each(Call::kMapRings, -ENOSPC), 4);
}

TEST_F(RefusedSteps, MakingSendQueuesReady) {
    EXPECT_EQ(refuse_each(Call::kModifyQp, -ENOSPC), 6);  // INIT, RTR, RTS
}

TEST_F(RefusedSteps, RegisteringThePool) {
    EXPECT_EQ(refuse_each(Call::kRegister, -ENOSPC), 1);
}

TEST_F(RefusedSteps, AllocatingRings) {
    EXPECT_GE(refuse_each(Call::kAllocate, -ENOMEM), 2 * 2 + 2);
}

// A single queue whose start is refused stays stopped, and starts later.
TEST_F(RefusedSteps, StartingOneSendQueue) {
    ASSERT_EQ(rte_eth_dev_start(ports[1]), 0);
    for (int step = 0; step < 3; ++step) {
        ASSERT_EQ(rte_eth_dev_tx_queue_stop(ports[0], 0), 0);
        refuse(Call::kModifyQp, step);
        EXPECT_EQ(rte_eth_dev_tx_queue_start(ports[0], 0), -ENOSPC);
        EXPECT_TRUE(refused_one());
        rte_mbuf* packet = make_mbuf(ethernet_frame(100));
        EXPECT_EQ(rte_eth_tx_burst(ports[0], 0, &packet, 1), 0);
        rte_pktmbuf_free(packet);
        ASSERT_EQ(rte_eth_dev_tx_queue_start(ports[0], 0), 0) << step;
        EXPECT_EQ(exchange(ethernet_frame(100)).size(), 1u);
    }
}

// A recovery that the device refuses stops the queue; what was under way is counted and,
// at the latest when the queue is stopped, back in its pool.
TEST_F(RefusedSteps, Recovering) {
    ASSERT_EQ(rte_eth_dev_start(ports[1]), 0);
    constexpr uint64_t kLost = 5;
    for (int step = 0; step < 4; ++step) {  // RESET, INIT, RTR, RTS
        ASSERT_EQ(softcx_inject_qp_error("mlx5_0", sender().qp()->qp_num, kLocalProtection), 0);
        std::vector<rte_mbuf*> packets;
        for (uint64_t i = 0; i < kLost; ++i) {
            packets.push_back(make_mbuf(ethernet_frame(100)));
        }
        send(ports[0], 0, packets);
        settle();
        refuse(Call::kModifyQp, step);
        rte_mbuf* packet = make_mbuf(ethernet_frame(100));
        EXPECT_EQ(rte_eth_tx_burst(ports[0], 0, &packet, 1), 0);
        EXPECT_TRUE(refused_one());
        EXPECT_EQ(rte_eth_tx_burst(ports[0], 0, &packet, 1), 0) << "stays stopped";
        rte_pktmbuf_free(packet);
        const uint64_t times = static_cast<uint64_t>(step) + 1;
        EXPECT_EQ(xstats_of(ports[0])["tx_q0_recovery_failures"], times);
        EXPECT_EQ(xstats_of(ports[0])["tx_q0_dropped_by_recovery"], times * kLost);
        EXPECT_EQ(xstats_of(ports[0])["tx_q0_recoveries"], 0u);
        ASSERT_EQ(rte_eth_dev_tx_queue_stop(ports[0], 0), 0);
        EXPECT_EQ(sender().used_descriptors(), 0u);
        ASSERT_EQ(rte_eth_dev_tx_queue_start(ports[0], 0), 0);
        EXPECT_EQ(exchange(ethernet_frame(100)).size(), 1u);
    }
}

TEST_F(RefusedSteps, ClosingAfterARefusedRecoveryLosesNoMbuf) {
    ASSERT_EQ(rte_eth_dev_start(ports[1]), 0);
    ASSERT_EQ(softcx_inject_qp_error("mlx5_0", sender().qp()->qp_num, kLocalProtection), 0);
    send(ports[0], 0, ethernet_frame(100));
    settle();
    refuse(Call::kModifyQp, 0);
    rte_mbuf* packet = make_mbuf(ethernet_frame(100));
    EXPECT_EQ(rte_eth_tx_burst(ports[0], 0, &packet, 1), 0);
    EXPECT_TRUE(refused_one());
    rte_pktmbuf_free(packet);
    close();
}

}  // namespace
}  // namespace tagwire::mlx5raw
