// SPDX-License-Identifier: BSD-3-Clause
// Counters of flows as a program sees them: ibv_create_counters and what follows.
#include "test/softcx/control/verbs_rig.h"

namespace softcx::test {
namespace {

struct ReleaseCounters {
    void operator()(ibv_counters* counters) const { EXPECT_EQ(ibv_destroy_counters(counters), 0); }
};
using OwnedCounters = std::unique_ptr<ibv_counters, ReleaseCounters>;

class FlowCounterTest : public Verbs {
  protected:
    void SetUp() override {
        Verbs::SetUp();
        ibv_qp_init_attr attributes{};
        attributes.send_cq = attributes.recv_cq = cq_.get();
        attributes.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};
        attributes.qp_type = IBV_QPT_RAW_PACKET;
        qp_.reset(ibv_create_qp(pd_.get(), &attributes));
        ASSERT_NE(qp_, nullptr);
    }
    void TearDown() override { qp_.reset(); }

    OwnedCounters make_counters() {
        ibv_counters_init_attr attributes{};
        return OwnedCounters(ibv_create_counters(context_.get(), &attributes));
    }
    static int attach(ibv_counters* counters, ibv_counter_description what, uint32_t place) {
        ibv_counter_attach_attr attributes{};
        attributes.counter_desc = what;
        attributes.index = place;
        return ibv_attach_counters_point_flow(counters, &attributes, nullptr);
    }
    Owned<ibv_flow> make_flow(ibv_counters* counters) {
        // One behind the other, without padding.
        alignas(8) std::array<uint8_t, sizeof(ibv_flow_attr) + sizeof(ibv_flow_spec_eth) +
                                           sizeof(ibv_flow_spec_counter_action)>
            message{};
        ibv_flow_attr attributes{};
        attributes.type = IBV_FLOW_ATTR_NORMAL;
        attributes.size = sizeof(message);
        attributes.num_of_specs = 2;
        attributes.port = 1;
        ibv_flow_spec_eth ethernet{};
        ethernet.type = IBV_FLOW_SPEC_ETH;
        ethernet.size = sizeof(ethernet);
        ibv_flow_spec_counter_action count{};
        count.type = IBV_FLOW_SPEC_ACTION_COUNT;
        count.size = sizeof(count);
        count.counters = counters;
        std::memcpy(&message[0], &attributes, sizeof(attributes));
        std::memcpy(&message[sizeof(attributes)], &ethernet, sizeof(ethernet));
        std::memcpy(&message[sizeof(attributes) + sizeof(ethernet)], &count, sizeof(count));
        return Owned<ibv_flow>(
            ibv_create_flow(qp_.get(), reinterpret_cast<ibv_flow_attr*>(message.data())));
    }

    Owned<ibv_qp> qp_;
};

TEST_F(FlowCounterTest, AFlowKeepsItsCountersBusy) {
    OwnedCounters counters = make_counters();
    ASSERT_NE(counters, nullptr);
    ASSERT_EQ(attach(counters.get(), IBV_COUNTER_PACKETS, 0), 0);
    Owned<ibv_flow> flow = make_flow(counters.get());
    ASSERT_NE(flow, nullptr);
    EXPECT_EQ(ibv_destroy_counters(counters.get()), EBUSY);
    flow.reset();
}

TEST_F(FlowCounterTest, ValuesComeWhereTheyWereAskedFor) {
    const OwnedCounters counters = make_counters();
    ASSERT_EQ(attach(counters.get(), IBV_COUNTER_BYTES, 3), 0);
    ASSERT_EQ(attach(counters.get(), IBV_COUNTER_PACKETS, 1), 0);
    uint64_t values[4] = {7, 7, 7, 7};
    EXPECT_NE(ibv_read_counters(counters.get(), values, 4, 0), 0) << "no flow has bound them";
    const Owned<ibv_flow> flow = make_flow(counters.get());
    ASSERT_NE(flow, nullptr);
    EXPECT_NE(ibv_read_counters(counters.get(), values, 3, 0), 0) << "place 3 does not fit";
    ASSERT_EQ(ibv_read_counters(counters.get(), values, 4, 0), 0);
    for (const uint64_t value : values)
        EXPECT_EQ(value, 0u);
}

TEST_F(FlowCounterTest, SeveralFlowsMayShareThem) {
    const OwnedCounters counters = make_counters();
    ASSERT_EQ(attach(counters.get(), IBV_COUNTER_PACKETS, 0), 0);
    const Owned<ibv_flow> first = make_flow(counters.get());
    const Owned<ibv_flow> second = make_flow(counters.get());
    EXPECT_NE(first, nullptr);
    EXPECT_NE(second, nullptr);
}

TEST_F(FlowCounterTest, WithoutAnythingToCountAFlowIsRefused) {
    const OwnedCounters counters = make_counters();
    EXPECT_EQ(make_flow(counters.get()), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(FlowCounterTest, AClosedContextLeavesNoCounters) {
    const unsigned long long before = softcx_objects("mlx5_0");
    Owned<ibv_context> other = open_device();
    ibv_counters_init_attr attributes{};
    ASSERT_NE(ibv_create_counters(other.get(), &attributes), nullptr);
    EXPECT_GT(softcx_objects("mlx5_0"), before + 1);
    other.reset();
    EXPECT_EQ(softcx_objects("mlx5_0"), before);
}

}  // namespace
}  // namespace softcx::test
