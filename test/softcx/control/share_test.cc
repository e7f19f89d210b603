// SPDX-License-Identifier: BSD-3-Clause
// Copies of the device's descriptors, and a context that is imported through one.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "test/softcx/control/verbs_rig.h"

namespace softcx::test {
namespace {

class Share : public Verbs {
  protected:
    static size_t open_files() {
        size_t count = 0;
        for (int fd = 0; fd < 1024; ++fd)
            count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
        return count;
    }
};

struct Unimport {
    void operator()(ibv_pd* pd) const { ibv_unimport_pd(pd); }
    void operator()(ibv_mr* mr) const { ibv_unimport_mr(mr); }
};

TEST_F(Share, EveryKindOfCopyIsTheDevice) {
    const int spare = ::open("/dev/null", O_RDONLY);
    const int copies[] = {::dup(context_->cmd_fd), ::fcntl(context_->cmd_fd, F_DUPFD, 100),
                          ::fcntl(context_->cmd_fd, F_DUPFD_CLOEXEC, 100),
                          ::dup2(context_->cmd_fd, spare),
                          ::dup3(context_->cmd_fd, spare, O_CLOEXEC)};
    for (const int copy : copies) {
        ASSERT_GE(copy, 0);
        struct stat status;
        ASSERT_EQ(::fstat(copy, &status), 0);
        EXPECT_TRUE(S_ISCHR(status.st_mode));
    }
    for (const int copy : {copies[0], copies[1], copies[2], spare})
        EXPECT_EQ(::close(copy), 0);
    // The device lives on: its first descriptor is open.
    EXPECT_NE(Owned<ibv_pd>(ibv_alloc_pd(context_.get())), nullptr);
}

TEST_F(Share, AnImportedContextKnowsDomainsAndRegions) {
    std::vector<uint8_t> memory(4096);
    const Owned<ibv_mr> mr = register_memory(pd_.get(), memory);
    const Owned<ibv_context> second(ibv_import_device(::dup(context_->cmd_fd)));
    ASSERT_NE(second, nullptr) << strerror(errno);
    EXPECT_EQ(second->num_comp_vectors, context_->num_comp_vectors);
    const std::unique_ptr<ibv_pd, Unimport> pd(ibv_import_pd(second.get(), pd_->handle));
    ASSERT_NE(pd, nullptr);
    const std::unique_ptr<ibv_mr, Unimport> same(ibv_import_mr(pd.get(), mr->handle));
    ASSERT_NE(same, nullptr);
    EXPECT_EQ(same->lkey, mr->lkey);
    EXPECT_EQ(same->length, mr->length);
    // A region that the second registers serves a ring of the first.
    std::vector<uint8_t> frame = broadcast_frame();
    const Owned<ibv_mr> own = register_memory(pd.get(), frame);
    ASSERT_NE(own, nullptr);
    const Owned<ibv_qp> qp = make_raw_qp(cq_.get());
    ready_to_send(qp.get());
    ASSERT_EQ(post_send(qp.get(), frame, own->lkey), 0);
    run_device();
    const std::vector<ibv_wc> all = completions(cq_.get());
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all.front().status, IBV_WC_SUCCESS);
}

// To return 0 would tell the caller that nothing is left to do.
TEST_F(Share, AStepWaitsForTheCommandsOfAnotherThread) {
    std::vector<uint8_t> frame = broadcast_frame();
    const Owned<ibv_mr> mr = register_memory(pd_.get(), frame);
    const Owned<ibv_qp> qp = make_raw_qp(cq_.get());
    ready_to_send(qp.get());
    std::atomic<bool> done{false};
    std::thread commands([&] {
        while (!done)
            ibv_dealloc_pd(ibv_alloc_pd(context_.get()));
    });
    int skipped = 0;
    for (int i = 0; i < 5000; ++i) {
        EXPECT_EQ(post_send(qp.get(), frame, mr->lkey), 0);
        skipped += softcx_step() == 0 ? 1 : 0;
        run_device();
        EXPECT_EQ(completions(cq_.get()).size(), 1u);
    }
    done = true;
    commands.join();
    EXPECT_EQ(skipped, 0);
}

// Their events would need a descriptor that only the native ioctl names.
TEST_F(Share, AnImportedContextMakesNoCompletionQueue) {
    const Owned<ibv_context> second(ibv_import_device(::dup(context_->cmd_fd)));
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(ibv_create_cq(second.get(), 15, nullptr, nullptr, 0), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(Share, ObjectsLiveUntilTheLastDescriptorIsClosed) {
    const int copy = ::dup(context_->cmd_fd);
    cq_.reset();
    const uint32_t handle = pd_.release()->handle;  // the library forgets it with its context
    context_.reset();
    const Owned<ibv_context> second(ibv_import_device(copy));
    ASSERT_NE(second, nullptr) << strerror(errno);
    const std::unique_ptr<ibv_pd, Unimport> pd(ibv_import_pd(second.get(), handle));
    EXPECT_NE(pd, nullptr);
    EXPECT_EQ(ibv_import_pd(second.get(), handle + 1000), nullptr);
}

TEST_F(Share, EventsOfThePortReachEveryImportedContext) {
    const Owned<ibv_context> second(ibv_import_device(::dup(context_->cmd_fd)));
    ASSERT_NE(second, nullptr);
    ASSERT_EQ(softcx_set_link("mlx5_0", 0), 0);
    ASSERT_EQ(softcx_set_link("mlx5_0", 1), 0);
    for (ibv_context* context : {context_.get(), second.get()}) {
        for (const ibv_event_type expected : {IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE}) {
            pollfd waiting{context->async_fd, POLLIN, 0};
            ASSERT_EQ(::poll(&waiting, 1, 0), 1);
            ibv_async_event event{};
            ASSERT_EQ(ibv_get_async_event(context, &event), 0);
            EXPECT_EQ(event.event_type, expected);
            ibv_ack_async_event(&event);
        }
    }
}

TEST_F(Share, ACopyOfAChannelIsTheChannel) {
    const Owned<ibv_comp_channel> channel(ibv_create_comp_channel(context_.get()));
    const int original = channel->fd;
    channel->fd = ::dup(original);
    const Owned<ibv_cq> cq(ibv_create_cq(context_.get(), 15, nullptr, channel.get(), 0));
    EXPECT_NE(cq, nullptr);
    ASSERT_EQ(::close(original), 0);
    const Owned<ibv_cq> other(ibv_create_cq(context_.get(), 15, nullptr, channel.get(), 0));
    EXPECT_NE(other, nullptr);
}

TEST_F(Share, NoDescriptorIsLeft) {
    const size_t before = open_files();
    {
        const Owned<ibv_context> own = open_device();
        const Owned<ibv_context> second(ibv_import_device(::dup(own->cmd_fd)));
        ASSERT_NE(second, nullptr);
    }
    EXPECT_EQ(open_files(), before);
}

}  // namespace
}  // namespace softcx::test
