// SPDX-License-Identifier: BSD-3-Clause
// The device's clock: the counter, its time stamps, and the way to wall-clock time.
#include <cmath>
#include <ctime>

#include "test/softcx/control/verbs_rig.h"

namespace softcx::test {
namespace {

class Clock : public Verbs {
  protected:
    uint64_t raw() {
        ibv_values_ex values{};
        values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
        EXPECT_EQ(ibv_query_rt_values_ex(context_.get(), &values), 0);
        EXPECT_EQ(values.comp_mask, uint32_t{IBV_VALUES_MASK_RAW_CLOCK});
        return static_cast<uint64_t>(values.raw_clock.tv_nsec);
    }

    static int64_t nanoseconds(clockid_t clock) {
        timespec now;
        clock_gettime(clock, &now);
        return now.tv_sec * 1'000'000'000 + now.tv_nsec;
    }
};

TEST_F(Clock, RunsAtTheAnnouncedRate) {
    ibv_device_attr_ex attributes{};
    ASSERT_EQ(ibv_query_device_ex(context_.get(), nullptr, &attributes), 0);
    EXPECT_EQ(attributes.hca_core_clock, 78125u);
    EXPECT_EQ(attributes.completion_timestamp_mask, ~uint64_t{0});
    softcx_step();
    const int64_t from = nanoseconds(CLOCK_MONOTONIC);
    const uint64_t first = raw();
    const timespec pause{0, 20'000'000};
    nanosleep(&pause, nullptr);
    softcx_step();
    const uint64_t second = raw();
    const auto passed = static_cast<double>(nanoseconds(CLOCK_MONOTONIC) - from);
    EXPECT_GE(static_cast<double>(second - first), 0.020 * 78.125e6);
    EXPECT_LE(static_cast<double>(second - first), passed * 78.125e6 / 1e9 + 1e6);
}

TEST_F(Clock, StandsBetweenSteps) {
    softcx_step();
    const uint64_t first = raw();
    EXPECT_EQ(raw(), first);
    softcx_step();
    EXPECT_GT(raw(), first);
}

TEST_F(Clock, ACommandMovesItToo) {
    const uint64_t first = raw();
    ibv_device_attr attributes{};
    ASSERT_EQ(ibv_query_device(context_.get(), &attributes), 0);
    const Owned<ibv_pd> pd(ibv_alloc_pd(context_.get()));
    EXPECT_GT(raw(), first);
}

TEST_F(Clock, TheInformationPageLeadsToWallClockTime) {
    mlx5dv_clock_info info{};
    ASSERT_EQ(mlx5dv_get_clock_info(context_.get(), &info), 0);
    softcx_step();
    const auto now = static_cast<double>(nanoseconds(CLOCK_REALTIME));
    const auto converted = static_cast<double>(mlx5dv_ts_to_ns(&info, raw()));
    EXPECT_NEAR(converted, now, 50e6);
    // A count from before the page was written.
    const uint64_t second = 78'125'000;
    EXPECT_NEAR(static_cast<double>(mlx5dv_ts_to_ns(&info, info.last_cycles - 10 * second)),
                static_cast<double>(info.nsec) - 10e9, 1000);
    EXPECT_NEAR(static_cast<double>(mlx5dv_ts_to_ns(&info, info.last_cycles + 800 * second)),
                static_cast<double>(info.nsec) + 800e9, 1e4);
}

TEST_F(Clock, TheInformationPageIsRefreshed) {
    mlx5dv_clock_info before{}, after{};
    ASSERT_EQ(mlx5dv_get_clock_info(context_.get(), &before), 0);
    const timespec pause{0, 550'000'000};
    nanosleep(&pause, nullptr);
    softcx_step();
    ASSERT_EQ(mlx5dv_get_clock_info(context_.get(), &after), 0);
    EXPECT_GE(after.last_cycles - before.last_cycles, 39'062'500u);
    EXPECT_GT(after.nsec, before.nsec);
}

TEST_F(Clock, StampsCompletions) {
    ibv_cq_init_attr_ex attributes{};
    attributes.cqe = 15;
    attributes.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
    ibv_cq_ex* cq = ibv_create_cq_ex(context_.get(), &attributes);
    ASSERT_NE(cq, nullptr);
    const Owned<ibv_cq> owner(ibv_cq_ex_to_cq(cq));
    const Owned<ibv_qp> qp = make_raw_qp(owner.get());
    ready_to_send(qp.get());
    std::vector<uint8_t> frame = broadcast_frame();
    const Owned<ibv_mr> mr = register_memory(pd_.get(), frame);
    ASSERT_EQ(post_send(qp.get(), frame, mr->lkey), 0);
    softcx_step();
    ibv_poll_cq_attr poll{};
    ASSERT_EQ(ibv_start_poll(cq, &poll), 0);
    EXPECT_EQ(ibv_wc_read_completion_ts(cq), raw());
    ibv_end_poll(cq);
}

}  // namespace
}  // namespace softcx::test
