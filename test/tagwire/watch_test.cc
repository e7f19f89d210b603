// SPDX-License-Identifier: BSD-3-Clause
// Receives that name a source which dies (TW_OPT_WATCH_SOURCES).
#include "test/tagwire/sim_peer.h"

namespace tagwire::test {
namespace {

class Watch : public SimPair {
  protected:
    void SetUp() override {
        set_watch(1);
        from_b = a.address_of(b);
        receive(1, from_b);  // b is heard
        b.send(a, 1, "hello");
        ASSERT_TRUE(run([&] { return a.received.size() == 1 && b.ended() == 1; }));
    }
    void set_watch(size_t value) {
        ASSERT_EQ(tw_ep_setopt(a.ep, TW_OPT_WATCH_SOURCES, &value, sizeof(value)), 0)
            << tw_last_error();
    }
    void receive(uint64_t tag, tw_addr source) { a.receive(buffer, tag, 0, source, &buffer); }

    // The timeout is 10 s; a peer is asked after a quarter of it.
    static constexpr uint64_t kNoticed = 12'600'000'000;

    std::string buffer = std::string(64, '.');
    tw_addr from_b = TW_ADDR_UNSPEC;
};

TEST_F(Watch, ReceivesOfAPeerThatDiedEndWithAnErrorInOrder) {
    int contexts[4];
    a.receive(buffer, 2, 0, from_b, &contexts[0]);
    a.posted(tw_recv(a.ep, buffer.data(), buffer.size(), from_b, &contexts[1]));
    a.receive(buffer, 2, 0xff, from_b, &contexts[2]);
    a.receive(buffer, 2, 0, TW_ADDR_UNSPEC, &contexts[3]);
    simulator.run_for(60 * kSecond);
    EXPECT_EQ(a.errors.size(), 0u) << "it lives";
    b.die();
    ASSERT_TRUE(run([&] { return a.errors.size() == 3; }, kNoticed));
    settle();
    ASSERT_EQ(a.errors.size(), 3u) << "that of any source waits";
    EXPECT_EQ(a.errors[0].entry.context, &contexts[0]);
    EXPECT_EQ(a.errors[1].entry.context, &contexts[2]);
    EXPECT_EQ(a.errors[2].entry.context, &contexts[1]) << "untagged ones behind tagged ones";
    for (const tw_cq_error& error : a.errors) {
        EXPECT_EQ(error.error, ETIMEDOUT);
        EXPECT_NE(std::string(error.text).find("silent"), std::string::npos);
    }
    EXPECT_EQ(tw_cancel(a.ep, &contexts[3]), 0);
}

TEST_F(Watch, ALongQueueOfThemEndsToo) {
    constexpr size_t kReceives = 1000;
    std::vector<int> contexts(kReceives);
    for (size_t i = 0; i < kReceives; ++i) {
        a.receive(buffer, i, 0, i % 10 == 9 ? TW_ADDR_UNSPEC : from_b, &contexts[i]);
    }
    b.die();
    ASSERT_TRUE(run([&] { return a.errors.size() == kReceives * 9 / 10; }, kNoticed));
    size_t next = 0;
    for (const tw_cq_error& error : a.errors) {
        next += next % 10 == 9 ? 1 : 0;
        EXPECT_EQ(error.entry.context, &contexts[next++]);
    }
}

TEST_F(Watch, AMultiReceiveIsReleased) {
    const iovec iov{buffer.data(), buffer.size()};
    tw_msg_tagged message{&iov, 1, from_b, 1, 0, &buffer, 0};
    a.posted(tw_trecvmsg(a.ep, &message, TW_MULTI_RECV));
    b.die();
    ASSERT_TRUE(run([&] { return a.errors.size() == 1; }, kNoticed));
    EXPECT_NE(a.errors[0].entry.flags & TW_MULTI_RECV, 0u);
}

TEST_F(Watch, OneThatRestartedIsNoticedAndHeardAgain) {
    receive(2, from_b);
    b.die();
    b.start();
    ASSERT_TRUE(run([&] { return a.errors.size() == 1; }, kNoticed));
    EXPECT_EQ(a.errors[0].error, ECONNRESET);
    receive(2, from_b);
    b.send(a, 2, "again");
    ASSERT_TRUE(run([&] { return a.received.size() == 2; }));
    EXPECT_EQ(a.errors.size(), 1u);
}

TEST_F(Watch, AReceivePostedAfterTheDeathEndsToo) {
    b.die();
    a.send(b, 1, "into the void");
    ASSERT_TRUE(run([&] { return a.errors.size() == 1; }, kNoticed));
    receive(2, from_b);
    // The tries to reach it are a quarter of the timeout apart at the end.
    ASSERT_TRUE(run([&] { return a.errors.size() == 2; }, kNoticed + 5 * kSecond / 2));
    EXPECT_EQ(a.errors[1].entry.context, &buffer);
}

TEST_F(Watch, APeerThatWasNeverHeardMayBeToCome) {
    sim::Node& node = simulator.add_node();
    SimPeer late{node};
    const tw_addr from_late = a.address_of(late);
    late.die();
    receive(3, from_late);
    simulator.run_for(100 * kSecond);
    EXPECT_EQ(a.errors.size(), 0u);
    late.start();
    late.send(a, 3, "here");
    ASSERT_TRUE(run([&] { return a.received.size() == 2; }));
}

TEST_F(Watch, APeerThatClosedInOrderIsNotDead) {
    receive(2, from_b);
    ASSERT_TRUE(run([&] {
        b.wake();
        return tw_worker_shutdown(b.worker) == 0;
    }));
    simulator.run_for(100 * kSecond);
    EXPECT_EQ(a.errors.size(), 0u);
}

TEST_F(Watch, WithoutTheOptionReceivesStay) {
    set_watch(0);
    receive(2, from_b);
    b.die();
    a.send(b, 1, "into the void");
    ASSERT_TRUE(run([&] { return a.errors.size() == 1; }, kNoticed));
    simulator.run_for(60 * kSecond);
    EXPECT_EQ(a.errors.size(), 1u) << "the send alone";
    b.start();
    b.send(a, 2, "next life");
    ASSERT_TRUE(run([&] { return a.received.size() == 2; }));
}

TEST_F(Watch, NothingIsAskedWhileNoReceiveNamesThePeer) {
    receive(2, TW_ADDR_UNSPEC);
    simulator.run_for(100 * kSecond);
    EXPECT_EQ(a.stat("connection_pings"), 0u);
    receive(2, from_b);
    simulator.run_for(100 * kSecond);
    EXPECT_GE(a.stat("connection_pings"), 30u);
    EXPECT_LE(a.stat("connection_pings"), 42u);
    EXPECT_EQ(a.stat("connections_alive"), 0u);
}

TEST_F(Watch, TheOptionIsOneOrZero) {
    size_t value = 2;
    EXPECT_EQ(tw_ep_setopt(a.ep, TW_OPT_WATCH_SOURCES, &value, sizeof(value)), -EINVAL);
    size_t size = sizeof(value);
    ASSERT_EQ(tw_ep_getopt(a.ep, TW_OPT_WATCH_SOURCES, &value, &size), 0);
    EXPECT_EQ(value, 1u);
    const tw_ep_attr attr{.size = sizeof(tw_ep_attr), .endpoint = TW_EP_ANY, .type = TW_EP_MSG};
    tw_ep* connected = nullptr;
    ASSERT_EQ(tw_ep_open(a.worker, &attr, &connected), 0);
    EXPECT_EQ(tw_ep_setopt(connected, TW_OPT_WATCH_SOURCES, &value, sizeof(value)), -EOPNOTSUPP);
    EXPECT_EQ(tw_ep_close(connected), 0);
}

}  // namespace
}  // namespace tagwire::test
