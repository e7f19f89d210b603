// SPDX-License-Identifier: BSD-3-Clause
// Trap mode as a program sees it: nobody steps the device, no thread runs it, and yet a
// doorbell has been executed when the call that rang it returns.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "test/softcx/control/verbs_rig.h"

namespace softcx::test {
namespace {

int threads_of_this_process() {
    int count = 0;
    DIR* folder = ::opendir("/proc/self/task");
    while (const dirent* entry = ::readdir(folder))
        count += entry->d_name[0] != '.' ? 1 : 0;
    ::closedir(folder);
    return count;
}

int threads_at_start = 0;  // a sanitizer may have some

class VerbsTrap : public Verbs {
  protected:
    void SetUp() override {
#ifdef __SANITIZE_THREAD__
        GTEST_SKIP() << "ThreadSanitizer puts handlers of its own before those of the program";
#endif
        Verbs::SetUp();
        qp_ = make_raw_qp(cq_.get());
        ASSERT_NE(qp_, nullptr);
        ready_to_send(qp_.get());
        mr_ = register_memory(pd_.get(), frame_);
        far_context_ = open_device("mlx5_1");
        ASSERT_NE(far_context_, nullptr);
    }

    std::vector<uint8_t> frame_ = broadcast_frame();
    Owned<ibv_context> far_context_;
    Owned<ibv_qp> qp_;
    Owned<ibv_mr> mr_;
};

TEST_F(VerbsTrap, ASendIsCompleteWhenThePostReturns) {
    EXPECT_EQ(threads_of_this_process(), threads_at_start);
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(post_send(qp_.get(), frame_, mr_->lkey), 0);
        const std::vector<ibv_wc> done = completions(cq_.get());
        ASSERT_EQ(done.size(), 1u);
        EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
    }
    EXPECT_EQ(threads_of_this_process(), threads_at_start);
}

TEST_F(VerbsTrap, TheOtherEndOfAPairHasReceivedWhenThePostReturns) {
    Owned<ibv_pd> pd(ibv_alloc_pd(far_context_.get()));
    Owned<ibv_cq> cq(ibv_create_cq(far_context_.get(), 16, nullptr, nullptr, 0));
    ibv_wq_init_attr attributes{};
    attributes.wq_type = IBV_WQT_RQ;
    attributes.max_wr = attributes.max_sge = 1;
    attributes.pd = pd.get();
    attributes.cq = cq.get();
    Owned<ibv_wq> wq(ibv_create_wq(far_context_.get(), &attributes));
    ASSERT_EQ(move(wq.get(), IBV_WQS_RDY), 0);
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RAW_PACKET;
    init.send_cq = init.recv_cq = cq.get();
    init.cap.max_recv_wr = init.cap.max_recv_sge = 1;
    Owned<ibv_qp> qp(ibv_create_qp(pd.get(), &init));
    ASSERT_EQ(move(qp.get(), IBV_QPS_INIT, IBV_QP_PORT), 0);
    ASSERT_EQ(move(qp.get(), IBV_QPS_RTR), 0);
    const Owned<ibv_flow> flow = take_all(qp.get());
    std::vector<uint8_t> memory(128);
    const Owned<ibv_mr> mr = register_memory(pd.get(), memory);
    ibv_sge segment{reinterpret_cast<uintptr_t>(memory.data()), 128, mr->lkey};
    ibv_recv_wr request{};
    request.sg_list = &segment;
    request.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(qp.get(), &request, &bad), 0);

    ASSERT_EQ(post_send(qp_.get(), frame_, mr_->lkey), 0);
    const std::vector<ibv_wc> received = completions(cq.get());
    ASSERT_EQ(received.size(), 1u);
    EXPECT_EQ(received[0].byte_len, frame_.size());
    EXPECT_TRUE(std::equal(frame_.begin(), frame_.end(), memory.begin()));
}

TEST_F(VerbsTrap, ArmingACqIsADoorbellToo) {
    Owned<ibv_comp_channel> channel(ibv_create_comp_channel(context_.get()));
    Owned<ibv_cq> cq(ibv_create_cq(context_.get(), 16, nullptr, channel.get(), 0));
    Owned<ibv_qp> qp = make_raw_qp(cq.get());
    ready_to_send(qp.get());
    const auto is_readable = [&] {
        pollfd file{channel->fd, POLLIN, 0};
        return ::poll(&file, 1, 0) == 1;
    };
    ASSERT_EQ(post_send(qp.get(), frame_, mr_->lkey), 0);
    EXPECT_FALSE(is_readable());
    ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
    EXPECT_TRUE(is_readable()) << "a completion that is there already";
    ibv_cq* which = nullptr;
    void* user = nullptr;
    ASSERT_EQ(ibv_get_cq_event(channel.get(), &which, &user), 0);
    ibv_ack_cq_events(cq.get(), 1);
    EXPECT_EQ(completions(cq.get()).size(), 1u);
}

TEST_F(VerbsTrap, ThreadsWithRingsOfTheirOwn) {
    constexpr int kThreads = 4, kSends = 500;
    std::atomic<int> done{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&] {
            Owned<ibv_cq> cq(ibv_create_cq(context_.get(), 16, nullptr, nullptr, 0));
            Owned<ibv_qp> qp = make_raw_qp(cq.get());
            ready_to_send(qp.get());
            for (int send = 0; send < kSends; ++send) {
                if (post_send(qp.get(), frame_, mr_->lkey) != 0)
                    return;
                // A store may have slipped through another thread's step: that one runs it.
                ibv_wc wc;
                while (ibv_poll_cq(cq.get(), 1, &wc) == 0)
                    std::this_thread::yield();
                done += wc.status == IBV_WC_SUCCESS ? 1 : 0;
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(done.load(), kThreads * kSends);
}

sigjmp_buf back;

TEST_F(VerbsTrap, TheProgramsOwnFaultHandlerWorks) {
    struct sigaction action {
    }, before{};
    action.sa_handler = [](int) { siglongjmp(back, 1); };
    ASSERT_EQ(::sigaction(SIGSEGV, &action, &before), 0);
    auto* page = static_cast<volatile uint8_t*>(
        ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    bool faulted = true;
    if (sigsetjmp(back, 1) == 0) {
        *page = 1;
        faulted = false;
    }
    EXPECT_TRUE(faulted);
    ASSERT_EQ(post_send(qp_.get(), frame_, mr_->lkey), 0);
    EXPECT_EQ(completions(cq_.get()).size(), 1u);
    ::sigaction(SIGSEGV, &before, nullptr);
}

TEST_F(VerbsTrap, BlockingEverySignalBlocksNoDoorbell) {
    sigset_t all, before;
    sigfillset(&all);
    ASSERT_EQ(pthread_sigmask(SIG_SETMASK, &all, &before), 0);
    EXPECT_EQ(post_send(qp_.get(), frame_, mr_->lkey), 0);
    EXPECT_EQ(completions(cq_.get()).size(), 1u);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace softcx::test

int main(int argc, char** argv) {
    ::testing::InitGoogleTest(&argc, argv);
    softcx::test::threads_at_start = softcx::test::threads_of_this_process();
    ::setenv("SOFTCX_DEVICES", "2", 1);
    ::setenv("SOFTCX_WIRE", "pair", 1);
    ::setenv("SOFTCX_MODE", "trap", 1);
    return RUN_ALL_TESTS();
}
