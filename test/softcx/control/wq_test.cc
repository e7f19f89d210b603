// SPDX-License-Identifier: BSD-3-Clause
// Rows W1, W2, W4 of the requirements: the work queue from outside.
#include <algorithm>

#include "test/softcx/control/verbs_rig.h"

namespace softcx::test {
namespace {

class Wq : public Verbs {};

TEST_F(Wq, GrantsAtLeastWhatWasAsked) {
    for (const uint32_t max_wr : {1u, 3u, 16u, 100u, 8192u}) {
        for (const uint32_t max_sge : {1u, 2u, 3u, 16u}) {
            ibv_wq_init_attr attributes{};
            attributes.wq_type = IBV_WQT_RQ;
            attributes.max_wr = max_wr;
            attributes.max_sge = max_sge;
            attributes.pd = pd_.get();
            attributes.cq = cq_.get();

            const Owned<ibv_wq> wq(ibv_create_wq(context_.get(), &attributes));

            ASSERT_NE(wq, nullptr) << max_wr << " x " << max_sge << ": " << std::strerror(errno);
            EXPECT_GE(attributes.max_wr, max_wr);
            EXPECT_GE(attributes.max_sge, max_sge);
        }
    }
}

TEST_F(Wq, StartsInReset) {
    const Owned<ibv_wq> wq = make_wq();
    ASSERT_NE(wq, nullptr);
    EXPECT_EQ(wq->state, IBV_WQS_RESET);
    // RESET is the one state from which RDY and RESET are legal, and ERR is not.
    EXPECT_EQ(move(wq.get(), IBV_WQS_ERR), EINVAL);
    EXPECT_EQ(move(wq.get(), IBV_WQS_RESET), 0);
}

TEST_F(Wq, ManyShareOneCq) {
    std::vector<Owned<ibv_wq>> wqs;
    for (int i = 0; i < 64; ++i) {
        wqs.push_back(make_wq());
        ASSERT_NE(wqs.back(), nullptr);
    }
    EXPECT_EQ(ibv_destroy_cq(cq_.get()), EBUSY);
}

TEST_F(Wq, HasItsOwnPdAndCq) {
    const Owned<ibv_pd> pd(ibv_alloc_pd(context_.get()));
    const Owned<ibv_cq> cq(ibv_create_cq(context_.get(), 15, nullptr, nullptr, 0));
    const Owned<ibv_wq> wq = make_wq(pd.get(), cq.get());
    ASSERT_NE(wq, nullptr);
    EXPECT_EQ(ibv_dealloc_pd(pd.get()), EBUSY);
    EXPECT_EQ(ibv_destroy_cq(cq.get()), EBUSY);
}

TEST_F(Wq, RefusesMoreThanTheCardHas) {
    EXPECT_EQ(make_wq(pd_.get(), cq_.get(), 65536), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(Wq, RefusesFlagsThatAreNotAnnounced) {
    ibv_wq_init_attr attributes{};
    attributes.wq_type = IBV_WQT_RQ;
    attributes.max_wr = 4;
    attributes.max_sge = 1;
    attributes.pd = pd_.get();
    attributes.cq = cq_.get();
    attributes.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
    attributes.create_flags = IBV_WQ_FLAGS_DELAY_DROP;
    EXPECT_EQ(ibv_create_wq(context_.get(), &attributes), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(Wq, VlanStrippingCanBeSwitched) {
    const Owned<ibv_wq> wq = make_wq();
    ibv_wq_attr attributes{};
    attributes.attr_mask = IBV_WQ_ATTR_FLAGS;
    attributes.flags_mask = IBV_WQ_FLAGS_CVLAN_STRIPPING;
    attributes.flags = IBV_WQ_FLAGS_CVLAN_STRIPPING;
    EXPECT_EQ(ibv_modify_wq(wq.get(), &attributes), 0);
    attributes.flags_mask = IBV_WQ_FLAGS_SCATTER_FCS;
    EXPECT_EQ(ibv_modify_wq(wq.get(), &attributes), EOPNOTSUPP);
}

// Puts a fresh WQ into `state` by legal moves.
int bring_to(ibv_wq* wq, ibv_wq_state state) {
    const auto step = [&](ibv_wq_state to) {
        ibv_wq_attr attributes{};
        attributes.attr_mask = IBV_WQ_ATTR_STATE;
        attributes.wq_state = to;
        return ibv_modify_wq(wq, &attributes);
    };
    if (state == IBV_WQS_RESET)
        return 0;
    if (const int error = step(IBV_WQS_RDY))
        return error;
    return state == IBV_WQS_RDY ? 0 : step(IBV_WQS_ERR);
}

struct Move {
    ibv_wq_state from, to;
    bool legal;
};

class WqMove : public Verbs, public ::testing::WithParamInterface<Move> {};

TEST_P(WqMove, IsAsTheSpecificationSays) {
    const Owned<ibv_wq> wq = make_wq();
    ASSERT_NE(wq, nullptr);
    ASSERT_EQ(bring_to(wq.get(), GetParam().from), 0);

    const int result = move(wq.get(), GetParam().to);

    EXPECT_EQ(result, GetParam().legal ? 0 : EINVAL);
    EXPECT_EQ(wq->state, GetParam().legal ? GetParam().to : GetParam().from);
    // The card agrees: curr_wq_state is compared with its own state.
    ibv_wq_attr probe{};
    probe.attr_mask = IBV_WQ_ATTR_CURR_STATE;
    probe.curr_wq_state = wq->state;
    EXPECT_EQ(ibv_modify_wq(wq.get(), &probe), 0);
}

INSTANTIATE_TEST_SUITE_P(EveryPair, WqMove,
                         ::testing::Values(Move{IBV_WQS_RESET, IBV_WQS_RESET, true},
                                           Move{IBV_WQS_RESET, IBV_WQS_RDY, true},
                                           Move{IBV_WQS_RESET, IBV_WQS_ERR, false},
                                           Move{IBV_WQS_RDY, IBV_WQS_RESET, true},
                                           Move{IBV_WQS_RDY, IBV_WQS_RDY, true},
                                           Move{IBV_WQS_RDY, IBV_WQS_ERR, true},
                                           Move{IBV_WQS_ERR, IBV_WQS_RESET, true},
                                           Move{IBV_WQS_ERR, IBV_WQS_RDY, false},
                                           Move{IBV_WQS_ERR, IBV_WQS_ERR, false}));

TEST_F(Wq, ChecksCurrentState) {
    const Owned<ibv_wq> wq = make_wq();
    ibv_wq_attr attributes{};
    attributes.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE;
    attributes.curr_wq_state = IBV_WQS_RDY;
    attributes.wq_state = IBV_WQS_RESET;

    EXPECT_EQ(ibv_modify_wq(wq.get(), &attributes), EINVAL);
    attributes.curr_wq_state = IBV_WQS_RESET;
    EXPECT_EQ(ibv_modify_wq(wq.get(), &attributes), 0);
}

TEST_F(Wq, RefusesAStateThatDoesNotExist) {
    const Owned<ibv_wq> wq = make_wq();
    EXPECT_EQ(move(wq.get(), static_cast<ibv_wq_state>(7)), EINVAL);
    ibv_wq_attr nothing{};
    EXPECT_EQ(ibv_modify_wq(wq.get(), &nothing), EINVAL);
}

TEST_F(Wq, ErrFlushesWhatWasPosted) {
    const Owned<ibv_wq> wq = make_wq();
    std::vector<uint8_t> memory(4096);
    const Owned<ibv_mr> mr = register_memory(pd_.get(), memory);
    ASSERT_EQ(move(wq.get(), IBV_WQS_RDY), 0);
    for (uint64_t id = 10; id < 13; ++id)
        ASSERT_EQ(post_receive(wq.get(), memory, mr->lkey, id), 0);

    ASSERT_EQ(move(wq.get(), IBV_WQS_ERR), 0);

    const std::vector<ibv_wc> flushed = completions(cq_.get());
    ASSERT_EQ(flushed.size(), 3u);
    for (size_t i = 0; i < flushed.size(); ++i) {
        EXPECT_EQ(flushed[i].status, IBV_WC_WR_FLUSH_ERR);
        EXPECT_EQ(flushed[i].wr_id, 10 + i);
    }
}

TEST_F(Wq, WorksAgainAfterErrAndReset) {
    const Owned<ibv_wq> wq = make_wq();
    const Owned<ibv_rwq_ind_table> table = make_table({wq.get()});
    const Owned<ibv_qp> rss = make_rss_qp(table.get());
    const Owned<ibv_flow> flow = take_all(rss.get());
    const Owned<ibv_qp> sender = make_raw_qp(cq_.get(), 16, 0);
    ready_to_send(sender.get());
    std::vector<uint8_t> memory(2048), frame = broadcast_frame();
    const Owned<ibv_mr> mr = register_memory(pd_.get(), memory);
    const Owned<ibv_mr> frame_mr = register_memory(pd_.get(), frame);
    ASSERT_EQ(move(wq.get(), IBV_WQS_RDY), 0);
    ASSERT_EQ(post_receive(wq.get(), memory, mr->lkey), 0);
    ASSERT_EQ(move(wq.get(), IBV_WQS_ERR), 0);
    completions(cq_.get());

    ASSERT_EQ(move(wq.get(), IBV_WQS_RESET), 0);
    ASSERT_EQ(move(wq.get(), IBV_WQS_RDY), 0);
    ASSERT_EQ(post_receive(wq.get(), memory, mr->lkey, 77), 0);
    ASSERT_EQ(post_send(sender.get(), frame, frame_mr->lkey), 0);
    run_device();

    std::vector<ibv_wc> done = completions(cq_.get());
    std::erase_if(done, [](const ibv_wc& one) { return one.opcode != IBV_WC_RECV; });
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(done[0].wr_id, 77u);
    EXPECT_TRUE(std::equal(frame.begin(), frame.end(), memory.begin()));
}

TEST_F(Wq, IsBusyWhileATableNamesIt) {
    Owned<ibv_wq> wq = make_wq();
    {
        const Owned<ibv_rwq_ind_table> table = make_table({wq.get(), wq.get()});
        ASSERT_NE(table, nullptr);
        EXPECT_EQ(ibv_destroy_wq(wq.get()), EBUSY);
    }
    EXPECT_EQ(ibv_destroy_wq(wq.release()), 0);
}

TEST_F(Wq, GivesPdAndCqBack) {
    Owned<ibv_pd> pd(ibv_alloc_pd(context_.get()));
    Owned<ibv_cq> cq(ibv_create_cq(context_.get(), 15, nullptr, nullptr, 0));
    Owned<ibv_wq> wq = make_wq(pd.get(), cq.get());
    ASSERT_EQ(ibv_dealloc_pd(pd.get()), EBUSY);
    ASSERT_EQ(ibv_destroy_cq(cq.get()), EBUSY);

    wq.reset();

    EXPECT_EQ(ibv_dealloc_pd(pd.release()), 0);
    EXPECT_EQ(ibv_destroy_cq(cq.release()), 0);
}

}  // namespace
}  // namespace softcx::test
