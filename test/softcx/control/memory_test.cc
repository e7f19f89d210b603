// SPDX-License-Identifier: BSD-3-Clause
// Memory regions that change while they live, and what the card has not.
#include <sys/mman.h>

#include "test/softcx/control/verbs_rig.h"

namespace softcx::test {
namespace {

class Memory : public Verbs {
  protected:
    void SetUp() override {
        Verbs::SetUp();
        frame_ = broadcast_frame();
        mr_ = register_memory(pd_.get(), frame_);
        qp_ = make_raw_qp(cq_.get());
        ASSERT_NE(qp_, nullptr);
        ready_to_send(qp_.get());
    }

    ibv_wc_status send(const std::vector<uint8_t>& frame) {
        EXPECT_EQ(post_send(qp_.get(), frame, mr_->lkey), 0);
        run_device();
        const std::vector<ibv_wc> all = completions(cq_.get());
        EXPECT_EQ(all.size(), 1u);
        return all.empty() ? IBV_WC_GENERAL_ERR : all.front().status;
    }

    int change(int flags, ibv_pd* pd, std::vector<uint8_t>& memory, int access) {
        return ibv_rereg_mr(mr_.get(), flags, pd, memory.data(), memory.size(), access);
    }

    std::vector<uint8_t> frame_;
    Owned<ibv_mr> mr_;
    Owned<ibv_qp> qp_;
};

TEST_F(Memory, AMovedRegionCoversTheNewRangeOnly) {
    ASSERT_EQ(send(frame_), IBV_WC_SUCCESS);
    std::vector<uint8_t> other = broadcast_frame(200);
    const uint32_t key = mr_->lkey;
    ASSERT_EQ(change(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, other, 0), 0);
    EXPECT_EQ(mr_->lkey, key);
    EXPECT_EQ(send(other), IBV_WC_SUCCESS);
    EXPECT_EQ(send(frame_), IBV_WC_LOC_PROT_ERR);
}

TEST_F(Memory, AnotherDomainTakesTheRegion) {
    const Owned<ibv_pd> other(ibv_alloc_pd(context_.get()));
    ASSERT_EQ(change(IBV_REREG_MR_CHANGE_PD, other.get(), frame_, 0), 0);
    EXPECT_EQ(send(frame_), IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(ibv_dealloc_pd(other.get()), EBUSY);
    ASSERT_EQ(change(IBV_REREG_MR_CHANGE_PD, pd_.get(), frame_, 0), 0);
}

TEST_F(Memory, AccessRightsChange) {
    const Owned<ibv_wq> wq = make_wq();
    const Owned<ibv_rwq_ind_table> table = make_table({wq.get()});
    const Owned<ibv_qp> rss = make_rss_qp(table.get());
    const Owned<ibv_flow> flow = take_all(rss.get());
    ASSERT_EQ(move(wq.get(), IBV_WQS_RDY), 0);
    std::vector<uint8_t> buffer(256);
    const Owned<ibv_mr> target = register_memory(pd_.get(), buffer);
    ASSERT_EQ(ibv_rereg_mr(target.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0), 0);
    ASSERT_EQ(post_receive(wq.get(), buffer, target->lkey), 0);
    ASSERT_EQ(post_send(qp_.get(), frame_, mr_->lkey), 0);
    run_device();
    bool failed = false;
    for (const ibv_wc& one : completions(cq_.get()))
        failed |= one.status == IBV_WC_LOC_PROT_ERR;
    EXPECT_TRUE(failed);
}

TEST_F(Memory, ARefusedChangeChangesNothing) {
    std::vector<uint8_t> other = broadcast_frame(200);
    EXPECT_EQ(change(IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, nullptr, other,
                     IBV_ACCESS_REMOTE_WRITE),
              IBV_REREG_MR_ERR_CMD);
    EXPECT_EQ(errno, EINVAL);
    const size_t page = 4096;
    void* gone = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(gone, MAP_FAILED);
    munmap(gone, page);
    EXPECT_EQ(ibv_rereg_mr(mr_.get(), IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, gone, page, 0),
              IBV_REREG_MR_ERR_CMD);
    EXPECT_EQ(errno, EFAULT);
    EXPECT_EQ(send(frame_), IBV_WC_SUCCESS);
}

TEST_F(Memory, WhatTheCardHasNotIsNotSupported) {
    for (const int access : {IBV_ACCESS_MW_BIND, IBV_ACCESS_ON_DEMAND, IBV_ACCESS_HUGETLB}) {
        EXPECT_EQ(
            ibv_reg_mr(pd_.get(), frame_.data(), frame_.size(), IBV_ACCESS_LOCAL_WRITE | access),
            nullptr);
        EXPECT_EQ(errno, EOPNOTSUPP) << access;
    }
    EXPECT_EQ(ibv_alloc_mw(pd_.get(), IBV_MW_TYPE_1), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    ibv_srq_init_attr attributes{};
    attributes.attr.max_wr = 100;
    attributes.attr.max_sge = 1;
    EXPECT_EQ(ibv_create_srq(pd_.get(), &attributes), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
}

}  // namespace
}  // namespace softcx::test
