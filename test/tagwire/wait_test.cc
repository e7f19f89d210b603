// SPDX-License-Identifier: BSD-3-Clause
// Sleeping: what wakes, and that nothing is slept over. The wires here have an interrupt, so
// that a descriptor is readable for its reason only.
#include <poll.h>

#include <chrono>
#include <thread>

#include "test/tagwire/real_wire.h"

namespace tagwire::test {
namespace {

using std::chrono::steady_clock;

constexpr int kPatienceMs = 60'000;

bool readable(int fd, int timeout_ms = 0) {
    pollfd entry{fd, POLLIN, 0};
    return poll(&entry, 1, timeout_ms) == 1;
}

class Wait : public WirePair {
  protected:
    using WirePair::WirePair;
    ~Wait() override { EXPECT_TRUE(a.settle(b)); }

    void receive(WirePeer& peer, uint64_t tag) {
        ASSERT_EQ(tw_trecv(peer.ep, buffer, sizeof(buffer), TW_ADDR_UNSPEC, tag, 0, nullptr), 0);
    }
    void send(WirePeer& from, WirePeer& to, uint64_t tag) {
        ASSERT_EQ(tw_tinject(from.ep, "hello", 5, from.address_of(to), tag), 0);
    }
    // With the session up and idle, so that no timer of it wakes anybody.
    void connect() {
        receive(a, 99);
        send(b, a, 99);
        ASSERT_TRUE(a.wait_for(b, [&] { return tw_cq_read(a.cq, &entry, 1) == 1; }));
        ASSERT_TRUE(a.settle(b));
    }
    // Armed, and nothing to do.
    int sleep_on(WirePeer& peer) {
        int fd = -1;
        EXPECT_EQ(tw_worker_wait_fd(peer.worker, &fd), 0) << tw_last_error();
        EXPECT_TRUE(a.wait_for(b, [&] { return tw_worker_arm(peer.worker) == 0; }));
        EXPECT_FALSE(readable(fd));
        return fd;
    }

    char buffer[64] = {};
    tw_cq_entry entry{};
};

TEST_F(Wait, BlockedReadSleepsUntilAMessageComes) {
    connect();
    receive(a, 1);
    std::atomic<bool> returned = false;
    ssize_t result = 0;
    const uint64_t polls = end_a.polls();
    std::thread reader([&] {
        result = tw_cq_sread(a.cq, &entry, 1, -1);
        returned = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(returned);
    EXPECT_LT(end_a.polls() - polls, 5000u) << "it polls";
    send(b, a, 1);
    while (!returned) {
        tw_progress(b.worker);
        std::this_thread::yield();
    }
    reader.join();
    EXPECT_EQ(result, 1);
    EXPECT_EQ(entry.tag, 1u);
    EXPECT_EQ(std::string(buffer, 5), "hello");
}

TEST_F(Wait, BlockedReadEndsAfterItsTime) {
    const auto start = steady_clock::now();
    EXPECT_EQ(tw_cq_sread(a.cq, &entry, 1, 20), -EAGAIN);
    EXPECT_GE(steady_clock::now() - start, std::chrono::milliseconds(20));
    EXPECT_EQ(tw_cq_sread(a.cq, &entry, 1, 0), -EAGAIN);
    EXPECT_EQ(tw_cq_sread(a.cq, &entry, 0, -1), 0);
}

TEST_F(Wait, BlockedReadSeesWhatIsThereWithoutSleeping) {
    receive(a, 1);
    ASSERT_EQ(tw_trecv(a.ep, buffer, 8, TW_ADDR_UNSPEC, 2, 0, &buffer), 0);
    ASSERT_EQ(tw_cancel(a.ep, &buffer), 0);
    EXPECT_EQ(tw_cq_sread(a.cq, &entry, 1, -1), -TW_EAVAIL);
    tw_cq_error error;
    EXPECT_EQ(tw_cq_readerr(a.cq, &error), 1);
}

TEST_F(Wait, SignalEndsABlockedRead) {
    std::atomic<bool> returned = false;
    ssize_t result = 0;
    std::thread reader([&] {
        result = tw_cq_sread(a.cq, &entry, 1, -1);
        returned = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(returned);
    EXPECT_EQ(tw_cq_signal(a.cq), 0);
    reader.join();
    EXPECT_EQ(result, -EAGAIN);
}

TEST_F(Wait, SignalThatNobodyWaitsForEndsTheNextReadOnly) {
    EXPECT_EQ(tw_cq_signal(a.cq), 0);
    EXPECT_EQ(tw_cq_signal(a.cq), 0);
    EXPECT_EQ(tw_cq_sread(a.cq, &entry, 1, -1), -EAGAIN);
    const auto start = steady_clock::now();
    EXPECT_EQ(tw_cq_sread(a.cq, &entry, 1, 20), -EAGAIN);
    EXPECT_GE(steady_clock::now() - start, std::chrono::milliseconds(20));
}

TEST_F(Wait, SignalsAtAnyMomentAreNotSleptOver) {
    for (int round = 0; round < 300; ++round) {
        std::thread signaller([&, round] {
            const auto until = steady_clock::now() + std::chrono::microseconds(round);
            while (steady_clock::now() < until) {
            }
            tw_cq_signal(a.cq);
        });
        EXPECT_EQ(tw_cq_sread(a.cq, &entry, 1, kPatienceMs), -EAGAIN);
        signaller.join();
    }
}

TEST_F(Wait, FrameMakesTheDescriptorReadable) {
    connect();
    const int fd = sleep_on(a);
    send(b, a, 1);
    tw_progress(b.worker);
    EXPECT_TRUE(readable(fd, kPatienceMs));
    EXPECT_EQ(tw_progress(a.worker), 1);
}

TEST_F(Wait, ArmRefusesWhileAFrameWaits) {
    connect();
    sleep_on(a);
    ASSERT_EQ(tw_progress(a.worker), 0);
    send(b, a, 1);
    tw_progress(b.worker);
    end_a.wait_for_frame();
    EXPECT_EQ(tw_worker_arm(a.worker), -EAGAIN);
    EXPECT_TRUE(a.wait_for(b, [&] { return tw_worker_arm(a.worker) == 0; }));
}

// More frames than a turn takes, of which none brings a message to its end.
TEST_F(Wait, ArmRefusesWhileManyFramesWait) {
    connect();
    std::vector<char> large(1 << 20), target(1 << 20);
    ASSERT_EQ(tw_trecv(a.ep, target.data(), target.size(), TW_ADDR_UNSPEC, 5, 0, nullptr), 0);
    ASSERT_EQ(tw_tsend(b.ep, large.data(), large.size(), b.address_of(a), 5, nullptr), 0);
    int fd = -1;
    ASSERT_EQ(tw_worker_wait_fd(a.worker, &fd), 0);
    bool done = false;
    const auto end = steady_clock::now() + std::chrono::seconds(60);
    while (!done && steady_clock::now() < end) {
        for (int i = 0; i < 8; ++i) {
            tw_progress(b.worker);
        }
        while (tw_worker_arm(a.worker) == -EAGAIN) {
            tw_progress(a.worker);
        }
        done = tw_cq_read(a.cq, &entry, 1) == 1;
    }
    EXPECT_TRUE(done);
    EXPECT_TRUE(a.wait_for(b, [&] { return tw_cq_read(b.cq, &entry, 1) == 1; }));
}

TEST_F(Wait, SignalMakesTheDescriptorReadableUntilArmed) {
    EXPECT_EQ(tw_worker_signal(a.worker), 0);  // before there is a descriptor
    int fd = -1;
    ASSERT_EQ(tw_worker_wait_fd(a.worker, &fd), 0);
    ASSERT_TRUE(a.settle(b));
    EXPECT_EQ(tw_worker_arm(a.worker), -EAGAIN);
    ASSERT_EQ(tw_worker_arm(a.worker), 0);
    EXPECT_FALSE(readable(fd));
    EXPECT_EQ(tw_worker_signal(a.worker), 0);
    EXPECT_TRUE(readable(fd));
    tw_progress(a.worker);
    EXPECT_TRUE(readable(fd));
    EXPECT_EQ(tw_worker_arm(a.worker), -EAGAIN);
    EXPECT_EQ(tw_worker_arm(a.worker), 0);
    EXPECT_FALSE(readable(fd));
}

TEST_F(Wait, TheSameDescriptorIsGivenAgain) {
    int first = -1, second = -2;
    ASSERT_EQ(tw_worker_wait_fd(a.worker, &first), 0);
    ASSERT_EQ(tw_worker_wait_fd(a.worker, &second), 0);
    EXPECT_EQ(first, second);
}

TEST_F(Wait, SendPostedMeanwhileWakes) {
    connect();
    const int fd = sleep_on(a);
    send(a, b, 1);
    EXPECT_TRUE(readable(fd, kPatienceMs));
}

TEST_F(Wait, LostFrameWakesWhenItIsTimeToResend) {
    connect();
    end_a.loss_interval = 1;
    send(a, b, 1);
    const int fd = sleep_on(a);
    EXPECT_TRUE(readable(fd, kPatienceMs));
    end_a.loss_interval = 0;
    receive(b, 1);
    EXPECT_TRUE(a.wait_for(b, [&] { return tw_cq_read(b.cq, &entry, 1) == 1; }));
}

TEST_F(Wait, OperationThatEndsInItsOwnCallWakes) {
    connect();
    send(b, a, 1);
    ASSERT_TRUE(a.settle(b));
    const int fd = sleep_on(a);
    receive(a, 1);
    EXPECT_TRUE(readable(fd));
    EXPECT_EQ(tw_cq_read(a.cq, &entry, 1), 1);
}

TEST_F(Wait, CounterThatIsSetWakes) {
    const int fd = sleep_on(a);
    EXPECT_EQ(tw_cntr_add(a.receives, 1), 0);
    EXPECT_TRUE(readable(fd));
}

TEST_F(Wait, WakeUpOfOneDescriptorIsNotTakenByAnother) {
    connect();
    tw_wait* waits[2] = {};
    int fds[2] = {};
    for (int i = 0; i < 2; ++i) {
        ASSERT_EQ(tw_wait_open(a.worker, &waits[i]), 0);
        ASSERT_EQ(tw_wait_fd(waits[i], &fds[i]), 0);
        ASSERT_TRUE(a.wait_for(b, [&] { return tw_wait_arm(waits[i]) == 0; }));
    }
    EXPECT_EQ(tw_worker_close(a.worker), -EBUSY);
    send(b, a, 1);
    tw_progress(b.worker);
    EXPECT_TRUE(readable(fds[0], kPatienceMs));
    EXPECT_EQ(tw_wait_arm(waits[0]), -EAGAIN);  // takes the message
    ASSERT_TRUE(a.wait_for(b, [&] { return tw_wait_arm(waits[0]) == 0; }));
    EXPECT_FALSE(readable(fds[0]));
    EXPECT_TRUE(readable(fds[1]));
    EXPECT_EQ(tw_wait_signal(waits[0]), 0);
    EXPECT_TRUE(readable(fds[0]));
    EXPECT_EQ(tw_wait_arm(waits[0]), -EAGAIN);
    for (tw_wait* wait : waits) {
        EXPECT_EQ(tw_wait_close(wait), 0);
    }
}

TEST_F(Wait, CounterIsWaitedForAsleep) {
    connect();
    receive(a, 1);
    std::atomic<bool> returned = false;
    int result = -1;
    const uint64_t polls = end_a.polls();
    std::thread waiter([&] {
        result = tw_cntr_wait(a.receives, 2, -1);
        returned = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_LT(end_a.polls() - polls, 5000u) << "it polls";
    send(b, a, 1);
    while (!returned) {
        tw_progress(b.worker);
        std::this_thread::yield();
    }
    waiter.join();
    EXPECT_EQ(result, 0);
    EXPECT_EQ(tw_cntr_wait(a.receives, 3, 5), -ETIMEDOUT);
    receive(a, 7);
    ASSERT_EQ(tw_trecv(a.ep, buffer, 8, TW_ADDR_UNSPEC, 2, 0, &buffer), 0);
    ASSERT_EQ(tw_cancel(a.ep, &buffer), 0);
    EXPECT_EQ(tw_cntr_wait(a.receives, 3, 5), -ETIMEDOUT) << "that error was before";
}

TEST_F(Wait, BadArgumentsAreRefused) {
    int fd = 0;
    tw_wait* wait = nullptr;
    EXPECT_EQ(tw_worker_wait_fd(nullptr, &fd), -EINVAL);
    EXPECT_EQ(tw_worker_wait_fd(a.worker, nullptr), -EINVAL);
    EXPECT_EQ(tw_worker_arm(nullptr), -EINVAL);
    EXPECT_EQ(tw_worker_arm(a.worker), -EINVAL) << "no descriptor yet";
    EXPECT_EQ(tw_worker_signal(nullptr), -EINVAL);
    EXPECT_EQ(tw_wait_open(nullptr, &wait), -EINVAL);
    EXPECT_EQ(tw_wait_open(a.worker, nullptr), -EINVAL);
    EXPECT_EQ(tw_wait_close(nullptr), -EINVAL);
    EXPECT_EQ(tw_wait_fd(nullptr, &fd), -EINVAL);
    EXPECT_EQ(tw_wait_arm(nullptr), -EINVAL);
    EXPECT_EQ(tw_wait_signal(nullptr), -EINVAL);
    EXPECT_EQ(tw_cq_sread(nullptr, &entry, 1, 0), -EINVAL);
    EXPECT_EQ(tw_cq_sread(a.cq, nullptr, 1, 0), -EINVAL);
    EXPECT_EQ(tw_cq_signal(nullptr), -EINVAL);
}

class WaitWithoutInterrupt : public Wait {
  protected:
    WaitWithoutInterrupt() : Wait(TW_THREAD_DOMAIN, false) {}
};

TEST_F(WaitWithoutInterrupt, TheTimerWakesToLookForFrames) {
    connect();
    int fd = -1;
    ASSERT_EQ(tw_worker_wait_fd(a.worker, &fd), 0);
    for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(a.wait_for(b, [&] { return tw_worker_arm(a.worker) == 0; }));
        EXPECT_TRUE(readable(fd, kPatienceMs));
        tw_progress(a.worker);
    }
}

TEST_F(WaitWithoutInterrupt, BlockedReadEndsWithAMessage) {
    connect();
    receive(a, 1);
    std::atomic<bool> returned = false;
    ssize_t result = 0;
    std::thread reader([&] {
        result = tw_cq_sread(a.cq, &entry, 1, -1);
        returned = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    send(b, a, 1);
    while (!returned) {
        tw_progress(b.worker);
        std::this_thread::yield();
    }
    reader.join();
    EXPECT_EQ(result, 1);
}

}  // namespace
}  // namespace tagwire::test
