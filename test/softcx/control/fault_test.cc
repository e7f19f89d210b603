// SPDX-License-Identifier: BSD-3-Clause
// Faults on demand: the device dies, a CQ overruns.
#include <poll.h>

#include "test/softcx/control/verbs_rig.h"

namespace softcx::test {
namespace {

class Faults : public Verbs {
  protected:
    // The type of the next event, or -1 when there is none.
    int next_event() {
        pollfd readable{.fd = context_->async_fd, .events = POLLIN, .revents = 0};
        if (::poll(&readable, 1, 0) != 1)
            return -1;
        ibv_async_event event{};
        if (ibv_get_async_event(context_.get(), &event) != 0)
            return -1;
        const int type = event.event_type;
        ibv_ack_async_event(&event);
        return type;
    }
};

TEST_F(Faults, AFatalDeviceRaisesItsEventOnce) {
    ASSERT_EQ(softcx_inject_device_fatal("mlx5_0"), 0);
    ASSERT_EQ(softcx_inject_device_fatal("mlx5_0"), 0);
    EXPECT_EQ(next_event(), IBV_EVENT_DEVICE_FATAL);
    EXPECT_EQ(next_event(), -1);
}

TEST_F(Faults, AFatalDeviceOnlyLetsGo) {
    Owned<ibv_wq> wq = make_wq();
    ASSERT_NE(wq, nullptr);
    ASSERT_EQ(softcx_inject_device_fatal("mlx5_0"), 0);
    EXPECT_EQ(make_wq(), nullptr);
    EXPECT_EQ(errno, EIO);
    EXPECT_EQ(move(wq.get(), IBV_WQS_RDY), EIO);
    wq.reset();  // Release expects success
}

TEST_F(Faults, AFatalDeviceWorksAgainAfterTheLastClose) {
    ASSERT_EQ(softcx_inject_device_fatal("mlx5_0"), 0);
    cq_.reset();
    pd_.reset();
    context_.reset();
    SetUp();
    EXPECT_NE(make_wq(), nullptr);
}

TEST_F(Faults, TheCommandThatWasNamedIsRefusedAndNoOther) {
    const unsigned long long objects = softcx_objects("mlx5_0");
    ASSERT_EQ(softcx_refuse_command("mlx5_0", 1, ENOSPC), 0);
    Owned<ibv_wq> first = make_wq();
    ASSERT_NE(first, nullptr);
    errno = 0;
    EXPECT_EQ(make_wq(), nullptr);
    EXPECT_EQ(errno, ENOSPC);
    EXPECT_NE(make_wq(), nullptr);
    EXPECT_EQ(softcx_objects("mlx5_0"), objects + 1);
    first.reset();
    EXPECT_EQ(softcx_objects("mlx5_0"), objects);
}

TEST_F(Faults, ACommandThatReleasesIsNeverRefused) {
    Owned<ibv_wq> wq = make_wq();
    ASSERT_EQ(softcx_refuse_command("mlx5_0", 0, EIO), 0);
    wq.reset();  // Release expects success
    EXPECT_EQ(softcx_refuse_command("mlx5_0", -1, 0), 1) << "the order waits";
    EXPECT_NE(make_wq(), nullptr);
    EXPECT_EQ(softcx_refuse_command("mlx5_0", 0, 0), -EINVAL);
    EXPECT_EQ(softcx_refuse_command("none", 0, EIO), -ENODEV);
}

TEST_F(Faults, AFatalDeviceWakesWhoSleepsOnACq) {
    const Owned<ibv_comp_channel> channel(ibv_create_comp_channel(context_.get()));
    const Owned<ibv_cq> cq(ibv_create_cq(context_.get(), 16, nullptr, channel.get(), 0));
    ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
    ASSERT_EQ(softcx_inject_device_fatal("mlx5_0"), 0);
    pollfd readable{.fd = channel->fd, .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&readable, 1, 0), 1);
    ibv_cq* raised = nullptr;
    void* data = nullptr;
    ASSERT_EQ(ibv_get_cq_event(channel.get(), &raised, &data), 0);
    EXPECT_EQ(raised, cq.get());
    ibv_ack_cq_events(raised, 1);
}

TEST_F(Faults, NamesThatAreUnknown) {
    EXPECT_EQ(softcx_inject_device_fatal("mlx5_9"), -ENODEV);
    EXPECT_EQ(softcx_inject_cq_overrun("mlx5_9", 1), -ENODEV);
    EXPECT_EQ(softcx_inject_cq_overrun("mlx5_0", 0xffffff), -ENOENT);
}

}  // namespace
}  // namespace softcx::test
