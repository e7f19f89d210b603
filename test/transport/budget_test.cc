// SPDX-License-Identifier: BSD-3-Clause
// Messages that nobody takes: the sender is held back, nothing is lost.
#include "lib/transport/budget.h"

#include "test/transport/host.h"

namespace transport_test {
namespace {

class Budget : public testing::Test {
  protected:
    static TransportConfig tight(const sim::Node& node) {
        TransportConfig config = small_config(node);
        config.max_incoming_messages = 64;  // 8 peers: 4 units each, and 32 for all
        return config;
    }

    bool run(const std::function<bool()>& done, uint64_t limit = kSecond) {
        return simulator.run_until(done, limit);
    }

    sim::Simulator simulator{5};
    Host a{simulator.add_node()};
    sim::Node& node_b = simulator.add_node();
    Host b{node_b, tight(node_b)};
    Host c{simulator.add_node()};
};

TEST_F(Budget, holds_back_a_sender_and_loses_nothing) {
    b.accept_at_once = false;
    const PeerId to_b = a.peer(b);
    for (uint64_t tag = 0; tag < 500; ++tag) {
        a.send(to_b, tag, tag % 2 == 0 ? 8 : 700);
    }

    EXPECT_FALSE(run([&] { return a.sends_pending() == 0; }, 100 * kMs));

    EXPECT_LE(b.count(Counter::held_units_peak), 64u);
    EXPECT_GT(a.count(Counter::credit_stalls), 0u);
    EXPECT_EQ(b.count(Counter::drop_over_budget), 0u);
    EXPECT_EQ(a.count(Counter::retransmits), 0u);
    b.accept_at_once = true;
    for (size_t i = 0; i < b.received.size(); ++i) {
        if (b.received[i].message != nullptr) {
            b.accept(b.received[i]);
        }
    }
    ASSERT_TRUE(run([&] { return a.sends_pending() == 0 && b.received.size() == 500; }));
    for (uint64_t tag = 0; tag < 500; ++tag) {
        EXPECT_EQ(b.received[tag].header.tag, tag);
        EXPECT_EQ(b.received[tag].buffer, a.sent[tag].payload);
    }
}

TEST_F(Budget, used_up_by_one_peer_leaves_another_its_share) {
    b.accept_at_once = false;
    const PeerId a_to_b = a.peer(b);
    for (uint64_t tag = 0; tag < 500; ++tag) {
        a.send(a_to_b, tag, 8);
    }
    run([&] { return false; }, 100 * kMs);

    const PeerId c_to_b = c.peer(b);
    Sent& sent = c.send(c_to_b, 1000, 8);

    ASSERT_TRUE(run([&] { return sent.status == 0; }));
}

TEST_F(Budget, used_up_does_not_stop_a_message_that_was_accepted) {
    b.accept_at_once = false;
    const PeerId to_b = a.peer(b);
    Sent& large = a.send(to_b, 0, 300'000);
    for (uint64_t tag = 1; tag < 300; ++tag) {
        a.send(to_b, tag, 8);
    }
    ASSERT_TRUE(run([&] { return !b.received.empty(); }));
    run([&] { return false; }, 100 * kMs);

    b.accept(b.received[0]);

    ASSERT_TRUE(run([&] { return large.status == 0 && b.received[0].ended == 1; }));
    EXPECT_EQ(b.received[0].buffer, large.payload);
}

// A program that posts its receives in the reverse order waits for the last message first, and
// until that is there nothing that is held gives credit back.
TEST_F(Budget, of_long_messages_shows_the_last_one_before_any_is_taken) {
    constexpr uint32_t kMessages = 400;
    constexpr uint32_t kLength = 60'000;  // 41 packets; 4096 units would hold 100 of them
    const PeerId c_to_a = c.peer(a);
    const PeerId a_to_c = a.peer(c);
    a.accept_at_once = c.accept_at_once = false;
    for (uint64_t tag = 0; tag < kMessages; ++tag) {
        a.send(a_to_c, tag, kLength);
        c.send(c_to_a, tag, kLength);
    }

    ASSERT_TRUE(
        run([&] { return a.received.size() == kMessages && c.received.size() == kMessages; }));

    for (size_t i = kMessages; i-- > 0;) {
        a.accept(a.received[i]);
        c.accept(c.received[i]);
        ASSERT_TRUE(run([&] { return a.received[i].ended == 1 && c.received[i].ended == 1; })) << i;
        EXPECT_EQ(a.received[i].buffer, c.sent[i].payload);
        EXPECT_EQ(c.received[i].buffer, a.sent[i].payload);
    }
    EXPECT_TRUE(run([&] { return a.sends_pending() + c.sends_pending() == 0; }));
    EXPECT_EQ(a.count(Counter::drop_over_budget) + c.count(Counter::drop_over_budget), 0u);
}

TEST_F(Budget, leaves_two_thirds_of_the_receive_pool_to_the_ring) {
    b.stop();
    b.config.max_incoming_messages = 60'000;
    b.start();
    b.accept_at_once = false;
    const PeerId to_b = a.peer(b);
    for (uint64_t tag = 0; tag < 10'000; ++tag) {
        a.send(to_b, tag, 800);
    }

    run([&] { return false; }, 100 * kMs);

    EXPECT_GT(b.received.size(), 1000u);
    EXPECT_LE(b.received.size(), 8191u / 3);
    EXPECT_EQ(b.node().no_buffer, 0u);
}

TEST_F(Budget, of_two_that_flood_each_other_does_not_deadlock) {
    b.accept_at_once = false;
    const PeerId to_b = a.peer(b);
    const PeerId to_a = b.peer(a);
    for (uint64_t tag = 0; tag < 300; ++tag) {
        a.send(to_b, tag, 400);
        b.send(to_a, tag, 400);
    }
    run([&] { return false; }, 50 * kMs);
    b.accept_at_once = true;
    for (size_t i = 0; i < b.received.size(); ++i) {
        if (b.received[i].message != nullptr) {
            b.accept(b.received[i]);
        }
    }

    ASSERT_TRUE(run([&] { return a.sends_pending() + b.sends_pending() == 0; }));
}

TEST(ReceiveBudgetTest, gives_back_what_it_promised) {
    ReceiveBudget budget(1000, 10);  // 50 each, 500 shared
    uint32_t committed = 0;
    const uint32_t first = budget.promise(committed, 0, 0);
    EXPECT_EQ(first, 50u + 500 / 4);
    EXPECT_EQ(committed, first);

    budget.release(committed, first);

    EXPECT_EQ(committed, 0u);
    EXPECT_EQ(budget.promise(committed, 0, 0), first);
}

TEST(ReceiveBudgetTest, keeps_a_cap_and_still_lets_each_new_peer_send_one) {
    ReceiveBudget budget(1000, 10);
    budget.cap(100);
    uint32_t first = 0;
    for (int round = 0; round < 100; ++round) {
        budget.promise(first, 0, first);
    }
    EXPECT_EQ(first, 100u);
    uint32_t second = 0;
    EXPECT_EQ(budget.promise(second, 0, 100), 1u);
    EXPECT_EQ(budget.promise(second, 1, 100), 0u);
    EXPECT_EQ(budget.promise(second, 0, 101), 0u) << "it is held";
}

// A cap that becomes known late, and peers that were promised more before. What the second peer
// sent waits for its receive, and what it sends next is what the program waits for.
TEST(ReceiveBudgetTest, promises_that_are_not_used_do_not_hold_a_peer_back) {
    ReceiveBudget budget(1000, 10);
    uint32_t idle = 0;
    budget.promise(idle, 0, 0);
    budget.cap(idle / 2);
    uint32_t busy = 0;
    uint32_t held = 0;
    for (int sent = 0; sent < 1000 && held < idle / 2; ++sent) {
        const uint32_t more = budget.promise(busy, 0, held);
        ASSERT_GE(more, 1u) << held << " are held";
        held += more;  // all of it comes, and waits
    }
    EXPECT_EQ(budget.promise(busy, 0, held), 0u) << "now it is full";
    EXPECT_LE(held, idle / 2);
}

TEST(ReceiveBudgetTest, never_promises_more_than_there_is) {
    ReceiveBudget budget(1000, 10);
    uint32_t committed[10] = {};
    uint32_t total = 0;
    for (int round = 0; round < 50; ++round) {
        for (uint32_t& peer : committed) {
            total += budget.promise(peer, 0, total);
        }
    }
    EXPECT_LE(total, 1000u);
    EXPECT_GE(total, 990u);
}

}  // namespace
}  // namespace transport_test
