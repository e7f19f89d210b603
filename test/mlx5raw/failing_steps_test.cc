// SPDX-License-Identifier: BSD-3-Clause
// Verbs that a start needs, refused at the first use, the second, and so on: the start
// fails, nothing stays behind, and the next start works. This also runs on a card, where
// no command can be refused (failing_commands_test.cc). Queues are made by mlx5dv_*, which
// has no table of functions to be replaced.
#include <infiniband/verbs.h>

#include <cerrno>

#include "drivers/net/mlx5raw/port.h"
#include "test/mlx5raw/port_fixture.h"

namespace tagwire::mlx5raw {
namespace {

// Calls that still succeed before one fails; negative: all succeed.
int calls_left = -1;

bool refused() {
    if (calls_left < 0) {
        return false;
    }
    if (calls_left-- == 0) {
        errno = ENOSPC;
        return true;
    }
    return false;
}

struct Originals {
    decltype(verbs_context::modify_wq) modify_wq;
    decltype(verbs_context::create_rwq_ind_table) create_table;
    decltype(verbs_context::create_qp_ex) create_qp;
    decltype(verbs_context::ibv_create_flow) create_flow;
} originals;

int modify_wq(ibv_wq* wq, ibv_wq_attr* attributes) {
    return attributes->wq_state == IBV_WQS_RDY && refused() ? ENOSPC
                                                            : originals.modify_wq(wq, attributes);
}
ibv_rwq_ind_table* create_table(ibv_context* context, ibv_rwq_ind_table_init_attr* attributes) {
    return refused() ? nullptr : originals.create_table(context, attributes);
}
ibv_qp* create_qp(ibv_context* context, ibv_qp_init_attr_ex* attributes) {
    return refused() ? nullptr : originals.create_qp(context, attributes);
}
ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attributes) {
    return refused() ? nullptr : originals.create_flow(qp, attributes);
}

class FailingSteps : public PortPair {
  protected:
    verbs_context& verbs() { return *verbs_get_ctx(port().device->context()); }
    Port& port() { return port_of(&rte_eth_devices[ports[1]]); }

    void SetUp() override {
        PortPair::SetUp();
        open({.start = false});
        ASSERT_EQ(rte_eth_dev_start(ports[0]), 0);
        verbs_context& v = verbs();
        originals = {v.modify_wq, v.create_rwq_ind_table, v.create_qp_ex, v.ibv_create_flow};
        calls_left = -1;
    }

    // How many uses were refused, one per start, before a start needed no more.
    int refuse_each_use() {
        const unsigned buffers = rte_mempool_avail_count(pool);
        for (int refused_use = 0;; ++refused_use) {
            calls_left = refused_use;
            const int result = rte_eth_dev_start(ports[1]);
            const bool none_refused = calls_left >= 0;
            calls_left = -1;
            if (none_refused) {
                EXPECT_EQ(result, 0);
                EXPECT_EQ(exchange(ethernet_frame(100)).size(), 1u);
                return refused_use;
            }
            EXPECT_EQ(result, -ENOSPC) << refused_use;
            EXPECT_EQ(rte_mempool_avail_count(pool), buffers) << refused_use;
            EXPECT_FALSE(port().steering.active());
            for (uint16_t queue = 0; queue < 2; ++queue) {
                EXPECT_EQ(rx_queue(&rte_eth_devices[ports[1]], queue)->wq(), nullptr);
                EXPECT_EQ(tx_queue(&rte_eth_devices[ports[1]], queue)->qp(), nullptr);
            }
        }
    }
};

TEST_F(FailingSteps, MakingWorkQueuesReady) {
    verbs().modify_wq = modify_wq;
    EXPECT_EQ(refuse_each_use(), 2);
}

TEST_F(FailingSteps, CreatingIndirectionTables) {
    verbs().create_rwq_ind_table = create_table;
    EXPECT_EQ(refuse_each_use(), 2);
}

TEST_F(FailingSteps, CreatingHashQueuePairs) {
    verbs().create_qp_ex = create_qp;
    EXPECT_EQ(refuse_each_use(), int{kHashTypeCount});
}

TEST_F(FailingSteps, CreatingFlowRules) {
    verbs().ibv_create_flow = create_flow;
    EXPECT_EQ(refuse_each_use(), int{kHashTypeCount} + 1);
}

// A change that the device refuses leaves the steering as it was.
TEST_F(FailingSteps, ARefusedTableLeavesTheOldOneInForce) {
    ASSERT_EQ(rte_eth_dev_start(ports[1]), 0);
    const Frame frame =
        ip_frame(mac_of(ports[1]), {{10, 0, 0, 1}, {10, 0, 0, 2}, 5, 6}, IPPROTO_UDP, 20);
    const std::vector<Received> before = exchange(frame);
    ASSERT_EQ(before.size(), 1u);
    verbs().ibv_create_flow = create_flow;
    rte_eth_rss_reta_entry64 entries[2] = {};
    for (unsigned i = 0; i < 128; ++i) {
        entries[i / 64].mask |= uint64_t{1} << (i % 64);
        entries[i / 64].reta[i % 64] = static_cast<uint16_t>(1 - before[0].queue);
    }
    for (int use = 0; use < int{kHashTypeCount} + 1; ++use) {
        calls_left = use;
        EXPECT_EQ(rte_eth_dev_rss_reta_update(ports[1], entries, 128), -ENOSPC);
        const std::vector<Received> after = exchange(frame);
        ASSERT_EQ(after.size(), 1u);
        EXPECT_EQ(after[0].queue, before[0].queue);
    }
    calls_left = -1;
    EXPECT_EQ(rte_eth_dev_rss_reta_update(ports[1], entries, 128), 0);
    const std::vector<Received> changed = exchange(frame);
    ASSERT_EQ(changed.size(), 1u);
    EXPECT_NE(changed[0].queue, before[0].queue);
}

TEST_F(FailingSteps, ARefusedAddressLeavesTheOthers) {
    ASSERT_EQ(rte_eth_dev_start(ports[1]), 0);
    verbs().ibv_create_flow = create_flow;
    const size_t rules = port().steering.rule_count();
    rte_ether_addr second = {{2, 0, 0, 0, 1, 2}};
    calls_left = 3;
    EXPECT_EQ(rte_eth_dev_mac_addr_add(ports[1], &second, 0), -ENOSPC);
    EXPECT_EQ(port().steering.rule_count(), rules);
    EXPECT_TRUE(exchange(ethernet_frame_to(second, 60)).empty());
    EXPECT_EQ(exchange(ethernet_frame(60)).size(), 1u);
}

}  // namespace
}  // namespace tagwire::mlx5raw
