// SPDX-License-Identifier: BSD-3-Clause
// One buffer for many messages: row T16, from outside, tagged and untagged.
#include "test/tagwire/sim_peer.h"

namespace tagwire::test {
namespace {

class MultiReceive : public SimPair, public testing::WithParamInterface<bool> {
  protected:
    bool tagged() const { return GetParam(); }

    void post(SimPeer& peer, size_t size, void* context = nullptr, uint64_t flags = 0) {
        buffer.assign(size, '.');
        const iovec iov{buffer.data(), buffer.size()};
        if (tagged()) {
            const tw_msg_tagged message{&iov, 1, TW_ADDR_UNSPEC, 0, 0xff, context, 0};
            peer.posted(tw_trecvmsg(peer.ep, &message, TW_MULTI_RECV | flags));
        } else {
            const tw_msg message{&iov, 1, TW_ADDR_UNSPEC, context, 0};
            peer.posted(tw_recvmsg(peer.ep, &message, TW_MULTI_RECV | flags));
        }
    }
    void send(SimPeer& to, uint64_t tag, const std::string& payload) {
        const std::string& kept = payloads.emplace_back(payload);
        a.posted(tagged() ? tw_tsend(a.ep, kept.data(), kept.size(), a.address_of(to), tag, nullptr)
                          : tw_send(a.ep, kept.data(), kept.size(), a.address_of(to), nullptr));
    }
    static uint32_t releases(const SimPeer& peer) {
        uint32_t count = 0;
        for (const tw_cq_entry& entry : peer.received) {
            count += (entry.flags & TW_MULTI_RECV) != 0;
        }
        for (const tw_cq_error& error : peer.errors) {
            count += (error.entry.flags & TW_MULTI_RECV) != 0;
        }
        return count;
    }

    std::string buffer;
    std::deque<std::string> payloads;
    int context = 0;
};

TEST_P(MultiReceive, packs_messages_and_is_released_with_the_last) {
    post(b, 164, &context);
    for (uint64_t tag = 0; tag < 6; ++tag) {
        send(b, tag, pattern(tag, 20));
    }
    settle();
    ASSERT_EQ(b.received.size(), 6u);
    for (size_t i = 0; i < 6; ++i) {
        const tw_cq_entry& entry = b.received[i];
        EXPECT_EQ(entry.buffer, buffer.data() + 20 * i);
        EXPECT_EQ(entry.length, 20u);
        EXPECT_EQ(entry.context, &context);
        EXPECT_EQ(buffer.substr(20 * i, 20), pattern(i, 20));
        EXPECT_EQ(entry.flags & TW_MULTI_RECV, i == 5 ? TW_MULTI_RECV : 0u)
            << "64 bytes are left after five, 44 after six";
    }
    EXPECT_EQ(b.stat("receives_outstanding"), 0u);
    send(b, 7, "x");
    settle();
    EXPECT_EQ(b.stat("unexpected_messages"), 1u);
}

TEST_P(MultiReceive, takes_unexpected_messages_in_order) {
    for (uint64_t tag = 0; tag < 6; ++tag) {
        send(b, tag, pattern(tag, 20));
    }
    settle();
    post(b, 164, &context);
    settle();
    ASSERT_EQ(b.received.size(), 6u);
    EXPECT_EQ(releases(b), 1u);
    EXPECT_NE(b.received[5].flags & TW_MULTI_RECV, 0u);
    EXPECT_EQ(buffer.substr(100, 20), pattern(5, 20));
}

TEST_P(MultiReceive, is_released_only_after_the_last_placement) {
    post(b, 300'100);
    const std::string large = pattern(1, 300'000);
    send(b, 1, large);
    send(b, 2, pattern(2, 60));  // ends before the large one
    ASSERT_TRUE(run([&] { return b.received.size() == 2; }));
    EXPECT_EQ(b.received[0].length, 60u);
    EXPECT_EQ(b.received[0].flags & TW_MULTI_RECV, 0u);
    EXPECT_EQ(b.received[1].length, 300'000u);
    EXPECT_NE(b.received[1].flags & TW_MULTI_RECV, 0u);
    EXPECT_EQ(buffer.substr(0, large.size()), large);
}

TEST_P(MultiReceive, too_long_message_is_truncated_and_the_release_comes_apart) {
    post(b, 100, &context);
    send(b, 1, pattern(1, 30));
    send(b, 2, pattern(2, 80));
    settle();
    ASSERT_EQ(b.errors.size(), 1u);
    EXPECT_EQ(b.errors[0].error, TW_ETRUNC);
    EXPECT_EQ(b.errors[0].entry.length, 70u);
    EXPECT_EQ(b.errors[0].overflow, 10u);
    ASSERT_EQ(b.received.size(), 2u);
    EXPECT_EQ(b.received[1].flags, TW_MULTI_RECV);
    EXPECT_EQ(b.received[1].context, &context);
}

TEST_P(MultiReceive, is_released_when_cancelled) {
    post(b, 1000, &context);
    send(b, 1, "x");
    settle();
    ASSERT_EQ(tw_cancel(b.ep, &context), 0);
    EXPECT_EQ(tw_cancel(b.ep, &context), -ENOENT);
    settle();
    b.wake();
    settle();
    ASSERT_EQ(b.errors.size(), 1u);
    EXPECT_EQ(b.errors[0].error, ECANCELED);
    EXPECT_EQ(releases(b), 1u);
    EXPECT_EQ(b.stat("receives_outstanding"), 0u);
}

TEST_P(MultiReceive, cancelled_under_way_is_released_behind_its_last_message) {
    post(b, 400'000, &context);
    send(b, 1, pattern(1, 300'000));
    ASSERT_TRUE(run([&] { return b.stat("rx_messages") == 1; }));
    ASSERT_EQ(b.received.size(), 0u);
    ASSERT_EQ(tw_cancel(b.ep, &context), 0);
    b.wake();
    ASSERT_TRUE(run([&] { return b.errors.size() == 1; }));
    EXPECT_EQ(b.received.size(), 1u);
    EXPECT_EQ(releases(b), 1u);
}

TEST_P(MultiReceive, release_is_reported_when_completions_are_suppressed) {
    SimPeer c(simulator.add_node(), {.cq_flags = TW_SELECTIVE_COMPLETION});
    post(c, 100, &context);
    send(c, 1, pattern(1, 30));
    send(c, 2, pattern(2, 30));
    settle();
    ASSERT_EQ(c.received.size(), 1u);
    EXPECT_EQ(c.received[0].flags, TW_MULTI_RECV);
    EXPECT_EQ(c.received[0].context, &context);
}

TEST_P(MultiReceive, minimum_is_an_option) {
    const size_t least = 500;
    ASSERT_EQ(tw_ep_setopt(b.ep, TW_OPT_MIN_MULTI_RECV, &least, sizeof(least)), 0);
    size_t now = 0;
    size_t size = sizeof(now);
    ASSERT_EQ(tw_ep_getopt(b.ep, TW_OPT_MIN_MULTI_RECV, &now, &size), 0);
    EXPECT_EQ(now, least);
    post(b, 600);
    send(b, 1, pattern(1, 100));
    settle();
    EXPECT_EQ(releases(b), 0u);
    send(b, 2, "x");
    settle();
    EXPECT_EQ(releases(b), 1u);
}

TEST_P(MultiReceive, waits_for_room_in_the_completion_queue_and_keeps_the_order) {
    SimPeer c(simulator.add_node(), {.cq_entries = 4});
    c.read_completions = false;
    post(c, 100'000, &context);
    for (uint64_t tag = 0; tag < 20; ++tag) {
        send(c, tag, pattern(tag, 8 + tag));
    }
    settle();
    EXPECT_EQ(c.stat("receives_blocked"), 1u);
    std::string spare(8, '\0');
    EXPECT_EQ(tagged() ? tw_trecv(c.ep, spare.data(), 8, TW_ADDR_UNSPEC, 0, ~0ull, nullptr)
                       : tw_recv(c.ep, spare.data(), 8, TW_ADDR_UNSPEC, nullptr),
              -EAGAIN);
    c.read_completions = true;
    c.wake();
    ASSERT_TRUE(run([&] { return c.received.size() == 20; }));
    for (size_t i = 0; i < 20; ++i) {
        EXPECT_EQ(c.received[i].length, 8 + i);
    }
}

TEST_P(MultiReceive, unexpected_messages_wait_for_room_too) {
    SimPeer c(simulator.add_node(), {.cq_entries = 4});
    c.read_completions = false;
    for (uint64_t tag = 0; tag < 20; ++tag) {
        send(c, tag, pattern(tag, 8 + tag));
    }
    settle();
    post(c, 100'000, &context);
    send(c, 20, pattern(20, 28));
    settle();
    c.read_completions = true;
    c.wake();
    ASSERT_TRUE(run([&] { return c.received.size() == 21; }));
    for (size_t i = 0; i < 21; ++i) {
        EXPECT_EQ(c.received[i].length, 8 + i);
    }
}

TEST_P(MultiReceive, blocked_messages_go_with_the_endpoint) {
    SimPeer c(simulator.add_node(), {.cq_entries = 4});
    c.read_completions = false;
    post(c, 100'000, &context);
    for (uint64_t tag = 0; tag < 20; ++tag) {
        send(c, tag, pattern(tag, 8 + tag));
    }
    settle();
    ASSERT_TRUE(run([&] {
        c.wake();
        return tw_ep_close(c.ep) == 0;
    }));
    c.ep = nullptr;
    EXPECT_EQ(c.stat("unexpected_messages"), 0u);
    EXPECT_EQ(c.stat("receives_outstanding"), 0u);
    ASSERT_TRUE(run([&] { return a.stat("sends_outstanding") == 0; }));
}

INSTANTIATE_TEST_SUITE_P(TaggedAndNot, MultiReceive, testing::Bool(),
                         [](const auto& param) { return param.param ? "tagged" : "untagged"; });

}  // namespace
}  // namespace tagwire::test
