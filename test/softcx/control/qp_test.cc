// SPDX-License-Identifier: BSD-3-Clause
// Raw packet queue pairs: states, use counts, flows.
#include "test/softcx/control/verbs_rig.h"

namespace softcx::test {
namespace {

class RawQp : public Verbs {
  protected:
    ibv_qp_state state_of(ibv_qp* qp) {
        ibv_qp_attr attributes{};
        ibv_qp_init_attr initial{};
        EXPECT_EQ(ibv_query_qp(qp, &attributes, IBV_QP_STATE, &initial), 0);
        return attributes.qp_state;
    }

    // By legal moves only.
    void bring_to(ibv_qp* qp, ibv_qp_state state) {
        if (state == IBV_QPS_RESET)
            return;
        if (state == IBV_QPS_ERR) {
            ASSERT_EQ(move(qp, IBV_QPS_ERR), 0);
            return;
        }
        ASSERT_EQ(move(qp, IBV_QPS_INIT, IBV_QP_PORT), 0);
        for (const ibv_qp_state next : {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD}) {
            if (static_cast<int>(next) > static_cast<int>(state))
                return;
            ASSERT_EQ(move(qp, next), 0);
        }
    }
};

TEST_F(RawQp, EveryMoveIsLegalOrLeavesTheState) {
    constexpr ibv_qp_state kStates[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
                                        IBV_QPS_RTS,   IBV_QPS_SQD,  IBV_QPS_ERR};
    // Rows: from; columns: to; in the order of kStates.
    constexpr bool kLegal[6][6] = {
        {true, true, false, false, false, true}, {true, true, true, false, false, true},
        {true, false, false, true, false, true}, {true, false, false, true, true, true},
        {true, false, false, true, true, true},  {true, false, false, false, false, true},
    };
    for (int from = 0; from < 6; ++from) {
        for (int to = 0; to < 6; ++to) {
            SCOPED_TRACE(std::to_string(from) + " to " + std::to_string(to));
            const Owned<ibv_qp> qp = make_raw_qp(cq_.get());
            ASSERT_NE(qp, nullptr);
            bring_to(qp.get(), kStates[from]);
            ASSERT_EQ(state_of(qp.get()), kStates[from]);

            const int result =
                move(qp.get(), kStates[to], kStates[to] == IBV_QPS_INIT ? IBV_QP_PORT : 0);

            EXPECT_EQ(result, kLegal[from][to] ? 0 : EINVAL);
            EXPECT_EQ(state_of(qp.get()), kLegal[from][to] ? kStates[to] : kStates[from]);
        }
    }
}

TEST_F(RawQp, InitNeedsThePort) {
    const Owned<ibv_qp> qp = make_raw_qp(cq_.get());
    EXPECT_EQ(move(qp.get(), IBV_QPS_INIT), EINVAL);
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 2;
    // libmlx5 looks the port up before it asks; 2 is beyond the card's only one.
    EXPECT_EQ(ibv_modify_qp(qp.get(), &attributes, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
}

TEST_F(RawQp, KeepsPdAndCqBusy) {
    Owned<ibv_cq> cq(ibv_create_cq(context_.get(), 31, nullptr, nullptr, 0));
    Owned<ibv_qp> qp = make_raw_qp(cq.get());
    EXPECT_EQ(ibv_destroy_cq(cq.get()), EBUSY);
    EXPECT_EQ(ibv_dealloc_pd(pd_.get()), EBUSY);
    qp.reset();
    EXPECT_EQ(ibv_destroy_cq(cq.release()), 0);
}

TEST_F(RawQp, IsBusyWhileAFlowLeadsToIt) {
    Owned<ibv_qp> qp = make_raw_qp(cq_.get());
    Owned<ibv_flow> flow = take_all(qp.get());
    ASSERT_NE(flow, nullptr);
    EXPECT_EQ(ibv_destroy_qp(qp.get()), EBUSY);
    flow.reset();
    EXPECT_EQ(ibv_destroy_qp(qp.release()), 0);
}

TEST_F(RawQp, ErrFlushesSendsAndReceives) {
    const Owned<ibv_qp> qp = make_raw_qp(cq_.get());
    ready_to_send(qp.get());
    std::vector<uint8_t> memory(2048);
    const Owned<ibv_mr> mr = register_memory(pd_.get(), memory);
    ibv_sge segment{reinterpret_cast<uintptr_t>(memory.data()), 2048, mr->lkey};
    ibv_recv_wr request{};
    request.wr_id = 9;
    request.sg_list = &segment;
    request.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(qp.get(), &request, &bad), 0);

    ASSERT_EQ(move(qp.get(), IBV_QPS_ERR), 0);

    const std::vector<ibv_wc> flushed = completions(cq_.get());
    ASSERT_EQ(flushed.size(), 1u);
    EXPECT_EQ(flushed[0].wr_id, 9u);
    EXPECT_EQ(flushed[0].status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(RawQp, OtherTransportsAreNotSupported) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = cq_.get();
    attributes.recv_cq = cq_.get();
    attributes.cap = {4, 4, 1, 1, 0};
    for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
        attributes.qp_type = type;
        EXPECT_EQ(ibv_create_qp(pd_.get(), &attributes), nullptr);
        EXPECT_EQ(errno, EOPNOTSUPP);
    }
}

struct RuleWithEthernetAndIpv4 {
    ibv_flow_attr attributes;
    ibv_flow_spec_eth ethernet;
    ibv_flow_spec_ipv4 ipv4;
};

RuleWithEthernetAndIpv4 ipv4_rule(uint16_t ether_type) {
    RuleWithEthernetAndIpv4 rule{};
    rule.attributes.type = IBV_FLOW_ATTR_NORMAL;
    rule.attributes.size = sizeof(rule);
    rule.attributes.num_of_specs = 2;
    rule.attributes.port = 1;
    rule.ethernet.type = IBV_FLOW_SPEC_ETH;
    rule.ethernet.size = sizeof(rule.ethernet);
    rule.ethernet.val.ether_type = htobe16(ether_type);
    rule.ethernet.mask.ether_type = 0xffff;
    rule.ipv4.type = IBV_FLOW_SPEC_IPV4;
    rule.ipv4.size = sizeof(rule.ipv4);
    rule.ipv4.val.dst_ip = htobe32(0x0a000001);
    rule.ipv4.mask.dst_ip = 0xffffffff;
    return rule;
}

TEST_F(RawQp, FlowLayersMustAgree) {
    const Owned<ibv_qp> qp = make_raw_qp(cq_.get());
    RuleWithEthernetAndIpv4 rule = ipv4_rule(0x0800);
    const Owned<ibv_flow> flow(ibv_create_flow(qp.get(), &rule.attributes));
    EXPECT_NE(flow, nullptr) << std::strerror(errno);
    rule = ipv4_rule(0x86dd);
    EXPECT_EQ(ibv_create_flow(qp.get(), &rule.attributes), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(RawQp, FlowPriorityHasAnEnd) {
    const Owned<ibv_qp> qp = make_raw_qp(cq_.get());
    RuleWithEthernetAndIpv4 rule = ipv4_rule(0x0800);
    rule.attributes.priority = 15;
    const Owned<ibv_flow> flow(ibv_create_flow(qp.get(), &rule.attributes));
    EXPECT_NE(flow, nullptr);
    rule.attributes.priority = 16;
    EXPECT_EQ(ibv_create_flow(qp.get(), &rule.attributes), nullptr);
    EXPECT_EQ(errno, ENOSPC);
}

// In the card they would be one entry, with one tag.
TEST_F(RawQp, RulesThatMatchTheSameCannotDifferInTheirTags) {
    struct {
        ibv_flow_attr attributes;
        ibv_flow_spec_eth ethernet;
        ibv_flow_spec_action_tag tag;
    } rule{};
    rule.attributes = {
        .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 2, .port = 1};
    rule.ethernet.type = IBV_FLOW_SPEC_ETH;
    rule.ethernet.size = sizeof(rule.ethernet);
    rule.ethernet.mask.dst_mac[0] = 0xff;
    rule.tag = {IBV_FLOW_SPEC_ACTION_TAG, sizeof(rule.tag), 7};
    const Owned<ibv_qp> one = make_raw_qp(cq_.get()), two = make_raw_qp(cq_.get());
    const Owned<ibv_flow> first(ibv_create_flow(one.get(), &rule.attributes));
    ASSERT_NE(first, nullptr) << std::strerror(errno);
    const Owned<ibv_flow> same(ibv_create_flow(two.get(), &rule.attributes));
    EXPECT_NE(same, nullptr) << std::strerror(errno);
    rule.tag.tag_id = 8;
    // Bits outside the mask make no difference.
    rule.ethernet.val.dst_mac[5] = 9;
    EXPECT_EQ(ibv_create_flow(two.get(), &rule.attributes), nullptr);
    EXPECT_EQ(errno, EEXIST);
    rule.attributes.priority = 1;
    EXPECT_NE(Owned<ibv_flow>(ibv_create_flow(two.get(), &rule.attributes)), nullptr);
}

}  // namespace
}  // namespace softcx::test
