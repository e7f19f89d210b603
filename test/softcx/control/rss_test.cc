// SPDX-License-Identifier: BSD-3-Clause
// Rows W5, W6 and W8: indirection tables, the RSS QP, and the WQ's own PD.
#include <algorithm>

#include "test/softcx/control/verbs_rig.h"

namespace softcx::test {
namespace {

class Table : public Verbs {};

TEST_F(Table, TakesEveryPowerOfTwo) {
    const Owned<ibv_wq> first = make_wq(), second = make_wq();
    for (uint32_t log = 0; log <= 11; ++log) {
        std::vector<ibv_wq*> entries(size_t{1} << log, first.get());
        entries.back() = second.get();
        EXPECT_NE(make_table(entries), nullptr) << (1u << log) << " entries";
    }
}

TEST_F(Table, RefusesMoreThanAnnounced) {
    ibv_device_attr_ex attributes{};
    ASSERT_EQ(ibv_query_device_ex(context_.get(), nullptr, &attributes), 0);
    EXPECT_EQ(attributes.rss_caps.max_rwq_indirection_table_size, 2048u);
    const Owned<ibv_wq> wq = make_wq();
    EXPECT_EQ(make_table(std::vector<ibv_wq*>(4096, wq.get())), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(Table, RefusesAnEntryThatNamesNoWq) {
    const Owned<ibv_wq> wq = make_wq();
    ibv_wq stranger = *wq;
    stranger.handle = 0x7fffffff;
    EXPECT_EQ(make_table({wq.get(), &stranger}), nullptr);
    EXPECT_EQ(errno, EINVAL);
    // Another kind of object is no WQ either.
    stranger.handle = cq_->handle;
    EXPECT_EQ(make_table({wq.get(), &stranger}), nullptr);
    EXPECT_EQ(errno, EINVAL);
    // And the refused tables hold on to nothing (the WQ can be destroyed).
}

TEST_F(Table, IsSharedBySeveralQps) {
    const Owned<ibv_wq> wq = make_wq();
    Owned<ibv_rwq_ind_table> table = make_table({wq.get(), wq.get()});
    Owned<ibv_qp> tcp = make_rss_qp(table.get(), IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_SRC_PORT_TCP);
    Owned<ibv_qp> udp = make_rss_qp(table.get(), IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_SRC_PORT_UDP);
    ASSERT_NE(tcp, nullptr);
    ASSERT_NE(udp, nullptr);

    EXPECT_EQ(ibv_destroy_rwq_ind_table(table.get()), EBUSY);
    tcp.reset();
    EXPECT_EQ(ibv_destroy_rwq_ind_table(table.get()), EBUSY);
    udp.reset();
    EXPECT_EQ(ibv_destroy_rwq_ind_table(table.release()), 0);
}

class RssQp : public Verbs {
  protected:
    void SetUp() override {
        Verbs::SetUp();
        wq_ = make_wq();
        table_ = make_table({wq_.get(), wq_.get()});
        ASSERT_NE(table_, nullptr);
    }

    Owned<ibv_wq> wq_;
    Owned<ibv_rwq_ind_table> table_;
};

TEST_F(RssQp, TakesTheFieldsOfOneIpAndOneTransport) {
    const uint64_t ipv4 = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4;
    const uint64_t ipv6 = IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6;
    const uint64_t tcp = IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP;
    const uint64_t udp = IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP;
    for (const uint64_t legal : {ipv4, ipv6, ipv4 | tcp, ipv6 | udp})
        EXPECT_NE(make_rss_qp(table_.get(), legal), nullptr) << legal;
    for (const uint64_t illegal : {ipv4 | ipv6, ipv4 | tcp | udp}) {
        EXPECT_EQ(make_rss_qp(table_.get(), illegal), nullptr) << illegal;
        EXPECT_EQ(errno, EINVAL);
    }
}

TEST_F(RssQp, NeedsAFullKey) {
    EXPECT_EQ(make_rss_qp(table_.get(), IBV_RX_HASH_SRC_IPV4, 39), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(RssQp, WithoutFieldsNeedsATableOfOne) {
    EXPECT_EQ(make_rss_qp(table_.get(), 0), nullptr);
    EXPECT_EQ(errno, EINVAL);
    const Owned<ibv_rwq_ind_table> one = make_table({wq_.get()});
    EXPECT_NE(make_rss_qp(one.get(), 0), nullptr);
}

TEST_F(RssQp, IsOfTheRawPacketTypeOnly) {
    std::array<uint8_t, 40> key{};
    ibv_qp_init_attr_ex attributes{};
    attributes.qp_type = IBV_QPT_UD;
    attributes.comp_mask =
        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_IND_TABLE;
    attributes.pd = pd_.get();
    attributes.rwq_ind_tbl = table_.get();
    attributes.rx_hash_conf = {IBV_RX_HASH_FUNC_TOEPLITZ, 40, key.data(), IBV_RX_HASH_SRC_IPV4};
    EXPECT_EQ(ibv_create_qp_ex(context_.get(), &attributes), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(RssQp, HasNoSendSideAndNoStates) {
    std::array<uint8_t, 40> key{};
    ibv_qp_init_attr_ex attributes{};
    attributes.qp_type = IBV_QPT_RAW_PACKET;
    attributes.comp_mask =
        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_IND_TABLE;
    attributes.pd = pd_.get();
    attributes.rwq_ind_tbl = table_.get();
    attributes.send_cq = cq_.get();
    attributes.cap.max_send_wr = 16;
    attributes.cap.max_send_sge = 1;
    attributes.rx_hash_conf = {IBV_RX_HASH_FUNC_TOEPLITZ, 40, key.data(), IBV_RX_HASH_SRC_IPV4};
    EXPECT_EQ(ibv_create_qp_ex(context_.get(), &attributes), nullptr);
    EXPECT_EQ(errno, EINVAL);

    const Owned<ibv_qp> qp = make_rss_qp(table_.get(), IBV_RX_HASH_SRC_IPV4);
    EXPECT_EQ(move(qp.get(), IBV_QPS_INIT, IBV_QP_PORT), EOPNOTSUPP);
}

TEST_F(RssQp, ReceivesThroughItsWqOnly) {
    const Owned<ibv_rwq_ind_table> one = make_table({wq_.get()});
    const Owned<ibv_qp> qp = make_rss_qp(one.get());
    std::vector<uint8_t> memory(2048), frame = broadcast_frame(200);
    const Owned<ibv_mr> mr = register_memory(pd_.get(), memory);
    const Owned<ibv_mr> frame_mr = register_memory(pd_.get(), frame);
    const Owned<ibv_flow> flow = take_all(qp.get());
    const Owned<ibv_qp> sender = make_raw_qp(cq_.get(), 16, 0);
    ready_to_send(sender.get());
    ASSERT_EQ(move(wq_.get(), IBV_WQS_RDY), 0);
    ASSERT_EQ(post_receive(wq_.get(), memory, mr->lkey, 5), 0);
    ASSERT_EQ(post_send(sender.get(), frame, frame_mr->lkey), 0);
    run_device();

    std::vector<ibv_wc> done = completions(cq_.get());
    std::erase_if(done, [](const ibv_wc& one) { return one.opcode != IBV_WC_RECV; });
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].wr_id, 5u);
    EXPECT_EQ(done[0].byte_len, frame.size());
    EXPECT_TRUE(std::equal(frame.begin(), frame.end(), memory.begin()));
}

TEST_F(RssQp, MemoryIsCheckedAgainstTheWqsPd) {
    const Owned<ibv_rwq_ind_table> one = make_table({wq_.get()});
    const Owned<ibv_qp> qp = make_rss_qp(one.get());
    const Owned<ibv_flow> flow = take_all(qp.get());
    const Owned<ibv_qp> sender = make_raw_qp(cq_.get(), 16, 0);
    ready_to_send(sender.get());
    const Owned<ibv_pd> foreign(ibv_alloc_pd(context_.get()));
    std::vector<uint8_t> memory(2048, 0xee), frame = broadcast_frame();
    const Owned<ibv_mr> mr = register_memory(foreign.get(), memory);
    const Owned<ibv_mr> frame_mr = register_memory(pd_.get(), frame);
    ASSERT_EQ(move(wq_.get(), IBV_WQS_RDY), 0);
    ASSERT_EQ(post_receive(wq_.get(), memory, mr->lkey, 5), 0);

    ASSERT_EQ(post_send(sender.get(), frame, frame_mr->lkey), 0);
    run_device();

    bool seen = false;
    for (const ibv_wc& one : completions(cq_.get())) {
        if (one.wr_id != 5)
            continue;
        seen = true;
        EXPECT_EQ(one.status, IBV_WC_LOC_PROT_ERR);
    }
    EXPECT_TRUE(seen);
    EXPECT_EQ(memory, std::vector<uint8_t>(2048, 0xee));
}

}  // namespace
}  // namespace softcx::test
