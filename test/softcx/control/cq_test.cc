// SPDX-License-Identifier: BSD-3-Clause
// Completion queues that change while they live: size and moderation; the forms of CQEs.
#include <poll.h>

#include <numeric>
#include <optional>

#include "test/softcx/control/verbs_rig.h"

namespace softcx::test {
namespace {

class Cq : public Verbs {
  protected:
    Owned<ibv_cq> make_cq(int entries, ibv_comp_channel* channel = nullptr) {
        return Owned<ibv_cq>(ibv_create_cq(context_.get(), entries, nullptr, channel, 0));
    }

    // A sender to the loopback wire whose sends are numbered.
    void use(ibv_cq* cq) {
        frame_ = broadcast_frame();
        frame_mr_ = register_memory(pd_.get(), frame_);
        qp_ = make_raw_qp(cq, 64, 1);
        ASSERT_NE(qp_, nullptr);
        ready_to_send(qp_.get());
    }

    void send(uint64_t count) {
        for (uint64_t i = 0; i < count; ++i) {
            ibv_sge segment{reinterpret_cast<uintptr_t>(frame_.data()),
                            static_cast<uint32_t>(frame_.size()), frame_mr_->lkey};
            ibv_send_wr request{};
            request.wr_id = next_++;
            request.sg_list = &segment;
            request.num_sge = 1;
            request.opcode = IBV_WR_SEND;
            request.send_flags = IBV_SEND_SIGNALED;
            ibv_send_wr* bad = nullptr;
            ASSERT_EQ(ibv_post_send(qp_.get(), &request, &bad), 0);
        }
        run_device();
    }

    // The next completions are those of the next sends, all good.
    void expect(ibv_cq* cq, uint64_t count) {
        const std::vector<ibv_wc> all = completions(cq);
        ASSERT_EQ(all.size(), count);
        for (const ibv_wc& one : all) {
            EXPECT_EQ(one.status, IBV_WC_SUCCESS);
            EXPECT_EQ(one.wr_id, seen_++);
        }
    }

    static int moderate(ibv_cq* cq, uint16_t count, uint16_t period) {
        ibv_modify_cq_attr attributes{};
        attributes.attr_mask = IBV_CQ_ATTR_MODERATE;
        attributes.moderate = {count, period};
        return ibv_modify_cq(cq, &attributes);
    }

    std::vector<uint8_t> frame_;
    Owned<ibv_mr> frame_mr_;
    Owned<ibv_qp> qp_;
    uint64_t next_ = 0, seen_ = 0;
};

TEST_F(Cq, GrowsWithWhatWaitsInIt) {
    const Owned<ibv_cq> cq = make_cq(15);
    use(cq.get());
    send(10);
    ASSERT_EQ(ibv_resize_cq(cq.get(), 60), 0);
    EXPECT_EQ(cq->cqe, 63);
    expect(cq.get(), 10);
    // More than once around the new ring.
    for (int round = 0; round < 6; ++round) {
        send(40);
        expect(cq.get(), 40);
    }
    qp_.reset();
}

TEST_F(Cq, ShrinksToWhatStillHoldsThem) {
    const Owned<ibv_cq> cq = make_cq(63);
    use(cq.get());
    for (int round = 0; round < 7; ++round) {
        send(13);
        expect(cq.get(), 13);
    }
    send(5);
    ASSERT_EQ(ibv_resize_cq(cq.get(), 7), 0);
    EXPECT_EQ(cq->cqe, 7);
    expect(cq.get(), 5);
    for (int round = 0; round < 9; ++round) {
        send(7);
        expect(cq.get(), 7);
    }
    qp_.reset();
}

TEST_F(Cq, DoesNotShrinkBelowWhatWaits) {
    const Owned<ibv_cq> cq = make_cq(31);
    use(cq.get());
    send(8);
    EXPECT_EQ(ibv_resize_cq(cq.get(), 7), EINVAL);
    EXPECT_EQ(cq->cqe, 31);
    expect(cq.get(), 8);
    qp_.reset();
}

TEST_F(Cq, ResizeKeepsAnArmedCqArmed) {
    const Owned<ibv_comp_channel> channel(ibv_create_comp_channel(context_.get()));
    const Owned<ibv_cq> cq = make_cq(15, channel.get());
    use(cq.get());
    ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
    run_device();
    ASSERT_EQ(ibv_resize_cq(cq.get(), 63), 0);
    pollfd waiting{channel->fd, POLLIN, 0};
    EXPECT_EQ(::poll(&waiting, 1, 0), 0);
    send(1);
    EXPECT_EQ(::poll(&waiting, 1, 0), 1);
    ibv_cq* named = nullptr;
    void* ignored = nullptr;
    ASSERT_EQ(ibv_get_cq_event(channel.get(), &named, &ignored), 0);
    EXPECT_EQ(named, cq.get());
    ibv_ack_cq_events(named, 1);
    qp_.reset();
}

class Moderation : public Cq {
  protected:
    void SetUp() override {
        Cq::SetUp();
        channel_.reset(ibv_create_comp_channel(context_.get()));
        ASSERT_NE(channel_, nullptr);
        moderated_ = make_cq(255, channel_.get());
        ASSERT_NE(moderated_, nullptr);
        use(moderated_.get());
    }
    void TearDown() override { qp_.reset(); }

    void arm() {
        ASSERT_EQ(ibv_req_notify_cq(moderated_.get(), 0), 0);
        run_device();
    }

    bool event_waits() const {
        pollfd waiting{channel_->fd, POLLIN, 0};
        return ::poll(&waiting, 1, 0) == 1;
    }

    void take_event() {
        ibv_cq* named = nullptr;
        void* ignored = nullptr;
        ASSERT_TRUE(event_waits());
        ASSERT_EQ(ibv_get_cq_event(channel_.get(), &named, &ignored), 0);
        ibv_ack_cq_events(named, 1);
    }

    Owned<ibv_comp_channel> channel_;
    Owned<ibv_cq> moderated_;
};

TEST_F(Moderation, IsAnnounced) {
    ibv_device_attr_ex attributes{};
    ASSERT_EQ(ibv_query_device_ex(context_.get(), nullptr, &attributes), 0);
    EXPECT_EQ(attributes.cq_mod_caps.max_cq_count, 65535);
    EXPECT_EQ(attributes.cq_mod_caps.max_cq_period, 4095);
}

TEST_F(Moderation, AnEventWaitsForTheCount) {
    ASSERT_EQ(moderate(moderated_.get(), 4, 4095), 0);
    arm();
    send(3);
    EXPECT_FALSE(event_waits());
    send(1);
    take_event();
    // The next arm counts anew.
    expect(moderated_.get(), 4);
    arm();
    send(3);
    EXPECT_FALSE(event_waits());
    send(1);
    take_event();
}

TEST_F(Moderation, AnEventWaitsNoLongerThanThePeriod) {
    ASSERT_EQ(moderate(moderated_.get(), 1000, 1), 0);
    arm();
    send(1);
    for (int i = 0; i < 100'000 && !event_waits(); ++i)
        run_device();
    take_event();
}

TEST_F(Moderation, CqesBehindTheArmCountToo) {
    ASSERT_EQ(moderate(moderated_.get(), 4, 4095), 0);
    send(3);
    arm();
    EXPECT_FALSE(event_waits());
    send(1);
    take_event();
}

TEST_F(Moderation, ZeroTurnsItOff) {
    ASSERT_EQ(moderate(moderated_.get(), 4, 4095), 0);
    ASSERT_EQ(moderate(moderated_.get(), 0, 0), 0);
    arm();
    send(1);
    take_event();
}

TEST_F(Moderation, APeriodBeyondTheLimitIsRefused) {
    EXPECT_EQ(moderate(moderated_.get(), 4, 4096), EINVAL);
    arm();
    send(1);
    take_event();
}

class CqForms : public Cq {
  protected:
    ibv_cq_ex* make(uint64_t wc_flags, const mlx5dv_cq_init_attr& vendor, uint32_t flags = 0) {
        ibv_cq_init_attr_ex attributes{};
        attributes.cqe = 63;
        attributes.wc_flags = wc_flags;
        if (flags != 0) {
            attributes.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
            attributes.flags = flags;
        }
        mlx5dv_cq_init_attr copy = vendor;
        return mlx5dv_create_cq(context_.get(), &attributes, &copy);
    }

    static ibv_cq* plain(ibv_cq_ex* cq) { return ibv_cq_ex_to_cq(cq); }
};

TEST_F(CqForms, PaddedCqesOf128Bytes) {
    mlx5dv_cq_init_attr vendor{};
    vendor.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE | MLX5DV_CQ_INIT_ATTR_MASK_FLAGS;
    vendor.cqe_size = 128;
    vendor.flags = MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD;
    const Owned<ibv_cq> cq(plain(make(IBV_WC_STANDARD_FLAGS, vendor)));
    ASSERT_NE(cq, nullptr);
    use(cq.get());
    send(3);
    expect(cq.get(), 3);
    qp_.reset();
    vendor.cqe_size = 64;
    EXPECT_EQ(make(IBV_WC_STANDARD_FLAGS, vendor), nullptr);
}

TEST_F(CqForms, CompressionOf128ByteCqesIsAnnouncedAndGranted) {
    mlx5dv_context properties{};
    ASSERT_EQ(mlx5dv_query_device(context_.get(), &properties), 0);
    constexpr uint64_t kBoth =
        MLX5DV_CONTEXT_FLAGS_CQE_128B_COMP | MLX5DV_CONTEXT_FLAGS_CQE_128B_PAD;
    EXPECT_EQ(properties.flags & kBoth, kBoth);
    mlx5dv_cq_init_attr vendor{};
    vendor.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE | MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE;
    vendor.cqe_size = 128;
    vendor.cqe_comp_res_format = MLX5DV_CQE_RES_FORMAT_HASH;
    const Owned<ibv_cq> cq(plain(make(IBV_WC_STANDARD_FLAGS, vendor)));
    EXPECT_NE(cq, nullptr);
}

// What the extended interface can read of a received frame.
TEST_F(CqForms, EveryFieldOfTheExtendedInterfaceThatRawPacketsHave) {
    ibv_cq_init_attr_ex attributes{};
    attributes.cqe = 63;
    attributes.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_QP_NUM |
                          IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_CVLAN |
                          IBV_WC_EX_WITH_FLOW_TAG | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
    attributes.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    attributes.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    ibv_cq_ex* cq = ibv_create_cq_ex(context_.get(), &attributes);
    ASSERT_NE(cq, nullptr) << strerror(errno);
    const Owned<ibv_cq> owner(plain(cq));
    const Owned<ibv_wq> wq = make_wq(pd_.get(), owner.get());
    const Owned<ibv_rwq_ind_table> table = make_table({wq.get()});
    const Owned<ibv_qp> rss = make_rss_qp(table.get());
    const Owned<ibv_flow> flow = take_all(rss.get());
    ASSERT_EQ(move(wq.get(), IBV_WQS_RDY), 0);
    std::vector<uint8_t> memory(256);
    const Owned<ibv_mr> mr = register_memory(pd_.get(), memory);
    ASSERT_EQ(post_receive(wq.get(), memory, mr->lkey, 77), 0);
    use(cq_.get());
    send(1);

    ibv_poll_cq_attr poll{};
    ASSERT_EQ(ibv_start_poll(cq, &poll), 0);
    EXPECT_EQ(cq->wr_id, 77u);
    EXPECT_EQ(cq->status, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_RECV);
    EXPECT_EQ(ibv_wc_read_byte_len(cq), frame_.size());
    EXPECT_EQ(ibv_wc_read_flow_tag(cq), 0u);
    EXPECT_EQ(ibv_wc_read_cvlan(cq), 0u);
    EXPECT_NE(ibv_wc_read_completion_ts(cq), 0u);
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t wall = static_cast<int64_t>(ibv_wc_read_completion_wallclock_ns(cq));
    EXPECT_NEAR(static_cast<double>(wall),
                static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec), 1e9);
    EXPECT_EQ(ibv_next_poll(cq), ENOENT);
    ibv_end_poll(cq);
    qp_.reset();
}

}  // namespace
}  // namespace softcx::test
