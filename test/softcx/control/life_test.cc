// SPDX-License-Identifier: BSD-3-Clause
// The life of regions, events, devices and processes.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "test/softcx/control/verbs_rig.h"

namespace softcx::test {
namespace {

class Life : public Verbs {};

TEST_F(Life, RegionNeedsMappedMemory) {
    const size_t page = static_cast<size_t>(::getpagesize());
    auto* memory = static_cast<uint8_t*>(
        ::mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::munmap(memory + 2 * page, page);

    EXPECT_EQ(ibv_reg_mr(pd_.get(), memory, 4 * page, IBV_ACCESS_LOCAL_WRITE), nullptr);
    EXPECT_EQ(errno, EFAULT);
    ::mprotect(memory, page, PROT_READ);
    EXPECT_EQ(ibv_reg_mr(pd_.get(), memory, page, IBV_ACCESS_LOCAL_WRITE), nullptr);
    EXPECT_EQ(errno, EFAULT);
    const Owned<ibv_mr> readable(ibv_reg_mr(pd_.get(), memory, page, 0));
    EXPECT_NE(readable, nullptr);
    ::munmap(memory, 4 * page);
}

TEST_F(Life, RemoteWriteNeedsLocalWrite) {
    std::vector<uint8_t> memory(4096);
    EXPECT_EQ(ibv_reg_mr(pd_.get(), memory.data(), memory.size(), IBV_ACCESS_REMOTE_WRITE),
              nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(Life, RegionKeepsPdBusyAndItsKeyIsNotReused) {
    std::vector<uint8_t> memory(4096);
    uint32_t key;
    {
        const Owned<ibv_mr> mr = register_memory(pd_.get(), memory);
        key = mr->lkey;
        EXPECT_EQ(ibv_dealloc_pd(pd_.get()), EBUSY);
    }
    const Owned<ibv_mr> mr = register_memory(pd_.get(), memory);
    EXPECT_NE(mr->lkey, key);
}

class CompletionEvent : public Verbs {
  protected:
    void SetUp() override {
        Verbs::SetUp();
        channel_.reset(ibv_create_comp_channel(context_.get()));
        ASSERT_NE(channel_, nullptr);
        ::fcntl(channel_->fd, F_SETFL, O_NONBLOCK);
        watched_.reset(ibv_create_cq(context_.get(), 63, this, channel_.get(), 0));
        ASSERT_NE(watched_, nullptr);
        sender_ = make_raw_qp(watched_.get(), 16, 0);
        ready_to_send(sender_.get());
        frame_ = broadcast_frame();
        frame_mr_ = register_memory(pd_.get(), frame_);
    }

    void send_one() {
        ASSERT_EQ(post_send(sender_.get(), frame_, frame_mr_->lkey), 0);
        run_device();
    }

    bool readable() const {
        pollfd watched{channel_->fd, POLLIN, 0};
        return ::poll(&watched, 1, 0) == 1;
    }

    Owned<ibv_comp_channel> channel_;
    Owned<ibv_cq> watched_;
    std::vector<uint8_t> frame_;
    Owned<ibv_mr> frame_mr_;
    Owned<ibv_qp> sender_;
};

TEST_F(CompletionEvent, ComesOnceForEachArm) {
    send_one();
    EXPECT_FALSE(readable());

    completions(watched_.get());
    ASSERT_EQ(ibv_req_notify_cq(watched_.get(), 0), 0);
    send_one();
    send_one();

    ASSERT_TRUE(readable());
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    ASSERT_EQ(ibv_get_cq_event(channel_.get(), &cq, &context), 0);
    EXPECT_EQ(cq, watched_.get());
    EXPECT_EQ(context, this);
    ibv_ack_cq_events(cq, 1);
    EXPECT_FALSE(readable());
}

// ibv_destroy_cq waits for as many acknowledgements as the card says it reported:
// an event that nobody read must not be among them.
TEST_F(CompletionEvent, UnreadIsNotCountedAtDestroy) {
    ASSERT_EQ(ibv_req_notify_cq(watched_.get(), 0), 0);
    send_one();
    ASSERT_TRUE(readable());
    sender_.reset();
    EXPECT_EQ(ibv_destroy_cq(watched_.release()), 0);
    EXPECT_FALSE(readable());
}

TEST_F(Life, LinkEventsReachTheClient) {
    ::fcntl(context_->async_fd, F_SETFL, O_NONBLOCK);
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(context_.get(), 1, &port), 0);
    EXPECT_EQ(port.state, IBV_PORT_ACTIVE);

    ASSERT_EQ(softcx_set_link("mlx5_0", 0), 0);

    ibv_async_event event;
    ASSERT_EQ(ibv_get_async_event(context_.get(), &event), 0);
    EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ERR);
    EXPECT_EQ(event.element.port_num, 1);
    ibv_ack_async_event(&event);
    ASSERT_EQ(ibv_query_port(context_.get(), 1, &port), 0);
    EXPECT_EQ(port.state, IBV_PORT_DOWN);

    ASSERT_EQ(softcx_set_link("mlx5_0", 1), 0);
    ASSERT_EQ(ibv_get_async_event(context_.get(), &event), 0);
    EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ACTIVE);
    ibv_ack_async_event(&event);
}

TEST_F(Life, ClosingTheDeviceReleasesWhatIsLeft) {
    int descriptors_before = 0, descriptors_after = 0;
    const auto count = [](int& descriptors) {
        descriptors = 0;
        for ([[maybe_unused]] const auto& entry :
             std::filesystem::directory_iterator("/proc/self/fd"))
            ++descriptors;
    };
    count(descriptors_before);
    ibv_context* other = open_device().release();
    std::vector<uint8_t> memory(4096);
    ibv_pd* pd = ibv_alloc_pd(other);
    ibv_comp_channel* channel = ibv_create_comp_channel(other);
    ibv_cq* cq = ibv_create_cq(other, 15, nullptr, channel, 0);
    ibv_mr* mr = ibv_reg_mr(pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(cq, nullptr);
    ASSERT_NE(mr, nullptr);
    const uint32_t lkey = mr->lkey;

    // Closing its files is all that a process does when it ends.
    ::close(other->cmd_fd);
    ::close(other->async_fd);
    ::close(channel->fd);

    count(descriptors_after);
    EXPECT_EQ(descriptors_after, descriptors_before);
    // The key is gone: a send with it fails.
    const Owned<ibv_qp> sender = make_raw_qp(cq_.get(), 16, 0);
    ready_to_send(sender.get());
    memory.resize(60);
    ASSERT_EQ(post_send(sender.get(), memory, lkey), 0);
    run_device();
    const std::vector<ibv_wc> done = completions(cq_.get());
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, IBV_WC_LOC_PROT_ERR);
    // The client's own structures stay; reachable, so that nobody reports a leak.
    static void* volatile left_over[5];
    void* const pointers[] = {other, pd, channel, cq, mr};
    std::copy(std::begin(pointers), std::end(pointers), std::begin(left_over));
}

TEST_F(Life, AChildHasDevicesOfItsOwn) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        // The parent's device is not the child's to use or to step.
        if (ibv_alloc_pd(context_.get()) != nullptr || errno != EIO || softcx_step() != 0)
            ::_exit(1);
        ibv_context* own = open_device().release();
        if (own == nullptr || ibv_alloc_pd(own) == nullptr)
            ::_exit(2);
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    const Owned<ibv_pd> still(ibv_alloc_pd(context_.get()));
    EXPECT_NE(still, nullptr);
}

TEST_F(Life, HandlesMeanNothingInAnotherContext) {
    std::vector<Owned<ibv_pd>> ours;
    for (int i = 0; i < 8; ++i)
        ours.emplace_back(ibv_alloc_pd(context_.get()));
    const Owned<ibv_context> other = open_device();
    ibv_pd stranger = *ours.back();
    stranger.context = other.get();
    std::vector<uint8_t> memory(4096);
    EXPECT_EQ(ibv_reg_mr(&stranger, memory.data(), memory.size(), 0), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(Life, DevicesAreListedWithTheirAddresses) {
    ibv_gid_entry entry{};
    ASSERT_EQ(ibv_query_gid_ex(context_.get(), 1, 0, &entry, 0), 0);
    EXPECT_EQ(entry.gid_type, IBV_GID_TYPE_ROCE_V1);
    ASSERT_EQ(ibv_query_gid_ex(context_.get(), 1, 1, &entry, 0), 0);
    EXPECT_EQ(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
    EXPECT_EQ(entry.gid.raw[0], 0xfe);
    EXPECT_EQ(ibv_query_gid_ex(context_.get(), 1, 2, &entry, 0), ENODATA);
    std::array<ibv_gid_entry, 16> table{};
    EXPECT_EQ(ibv_query_gid_table(context_.get(), table.data(), table.size(), 0), 2);
    EXPECT_NE(open_device("mlx5_1"), nullptr);
    EXPECT_EQ(open_device("mlx5_2"), nullptr);
}

}  // namespace
}  // namespace softcx::test
