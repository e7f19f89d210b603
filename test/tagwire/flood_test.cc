// SPDX-License-Identifier: BSD-3-Clause
// Floods of messages that nobody receives: row T8, from outside.
#include "test/tagwire/sim_peer.h"

namespace tagwire::test {
namespace {

constexpr uint64_t kBudget = 512 * 1024;

class Flood : public testing::Test {
  protected:
    bool run(const std::function<bool()>& done, uint64_t limit = 100 * kSecond) {
        return simulator.run_until(done, limit);
    }
    void settle() { simulator.run_for(kSecond / 10); }

    void flood(SimPeer& from, const SimPeer& to, uint64_t count, size_t length) {
        for (uint64_t tag = 0; tag < count; ++tag) {
            from.send(to, tag, pattern(tag, length));
        }
    }
    // Receives of `peer` for the whole flood.
    void receive_all(SimPeer& peer, uint64_t count, size_t length) {
        for (uint64_t tag = 0; tag < count; ++tag) {
            peer.receive(buffers.emplace_back(length, '.'), tag);
        }
    }

    static constexpr PeerOptions kTight{.unexpected_bytes = kBudget};
    sim::Simulator simulator{sim::seed() + 5};
    SimPeer a{simulator.add_node(), kTight};
    SimPeer b{simulator.add_node(), kTight};
    SimPeer c{simulator.add_node(), kTight};
    std::deque<std::string> buffers;
};

TEST_F(Flood, stays_under_the_budget_and_leaves_other_peers_alone) {
    for (const size_t length : {size_t{8}, size_t{1000}, size_t{60'000}, size_t{200'000}}) {
        flood(a, b, 1000, length);
    }
    settle();
    EXPECT_LE(b.stat("held_units_peak"), kBudget / 1500);
    EXPECT_GT(a.stat("sends_outstanding"), 2000u) << "held back";
    std::string buffer(200'000, '.');
    for (const size_t length : {size_t{8}, size_t{200'000}}) {
        b.receive(buffer, 77, 0, b.address_of(c));
        c.send(b, 77, pattern(77, length));
        b.received.clear();
        ASSERT_TRUE(run([&] { return b.received.size() == 1; }, kSecond));
        EXPECT_EQ(buffer.substr(0, length), pattern(77, length));
    }
    EXPECT_EQ(b.stat("drop_over_budget"), 0u);
}

TEST_F(Flood, is_counted_for_each_peer) {
    flood(a, b, 1000, 1000);
    c.send(b, 5000, pattern(77, 1000));
    c.send(b, 5001, pattern(78, 3000));
    settle();
    EXPECT_EQ(b.peer_stat(c, "held_units"), 4u) << "one small message, and one of three packets";
    EXPECT_EQ(b.peer_stat(c, "held_units_peak"), 4u);
    EXPECT_GE(b.peer_stat(a, "held_units"), b.peer_stat(a, "reserved_units"));
    EXPECT_LE(b.peer_stat(a, "held_units") + b.peer_stat(a, "promised_units"), kBudget / 1500);
    EXPECT_GT(b.peer_stat(c, "promised_units"), 0u) << "the flood of another leaves it credit";
    receive_all(b, 1000, 1000);
    ASSERT_TRUE(run([&] { return b.received.size() == 1000; }));
    EXPECT_EQ(b.peer_stat(a, "held_units"), 0u);
    EXPECT_EQ(b.peer_stat(c, "held_units"), 4u);
    EXPECT_GT(b.peer_stat(a, "held_units_peak"), 0u);
}

TEST_F(Flood, of_one_peer_never_takes_what_is_reserved_for_the_others) {
    for (const size_t length : {size_t{8}, size_t{1000}, size_t{60'000}}) {
        flood(a, b, 1000, length);
    }
    settle();
    const uint64_t all = kBudget / 1500;
    // Of the 16 that this worker has room for.
    const uint64_t others = 15 * b.peer_stat(a, "reserved_units");
    EXPECT_LE(b.peer_stat(a, "held_units_peak"), all - others);
    EXPECT_EQ(b.stat("drop_over_budget"), 0u);
}

TEST_F(Flood, of_two_peers_against_each_other_does_not_deadlock) {
    for (const size_t length : {size_t{8}, size_t{1000}, size_t{60'000}, size_t{200'000}}) {
        flood(a, b, 300, length);
        flood(b, a, 300, length);
        settle();
        receive_all(a, 300, length);
        receive_all(b, 300, length);
        ASSERT_TRUE(run([&] { return a.received.size() == 300 && b.received.size() == 300; }))
            << length << " bytes: " << a.received.size() << ", " << b.received.size();
        ASSERT_TRUE(run(
            [&] { return a.stat("sends_outstanding") == 0 && b.stat("sends_outstanding") == 0; }));
        for (uint64_t i = 0; i < 600; ++i) {
            ASSERT_EQ(buffers[i], pattern(i % 300, length));
        }
        a.received.clear();
        b.received.clear();
        buffers.clear();
    }
}

TEST_F(Flood, of_long_messages_does_not_hide_the_one_that_is_wanted) {
    flood(a, b, 100, 60'000);  // 4,100 packets, of 349 that fit
    a.send(b, 1000, "wanted");
    std::string buffer(60'000, '.');
    b.receive(buffer, 1000);
    ASSERT_TRUE(run([&] { return b.received.size() == 1; }, kSecond));
    EXPECT_GT(a.stat("tx_announced"), 0u);
    receive_all(b, 100, 60'000);
    ASSERT_TRUE(run([&] { return b.received.size() == 101 && a.sent.size() == 101; }));
    for (uint64_t tag = 0; tag < 100; ++tag) {
        ASSERT_EQ(buffers[tag], pattern(tag, 60'000));
    }
}

TEST_F(Flood, of_messages_that_are_discarded_goes_on) {
    constexpr uint64_t kMessages = 500;
    flood(a, b, kMessages, 5000);  // 2,000 packets, of 349 that fit
    const tw_msg_tagged any{nullptr, 0, TW_ADDR_UNSPEC, 0, UINT64_MAX, nullptr, 0};
    while (b.received.size() < kMessages) {
        const size_t before = b.received.size();
        ASSERT_TRUE(run(
            [&] {
                EXPECT_EQ(tw_trecvmsg(b.ep, &any, TW_PEEK | TW_DISCARD), 0);
                b.wake();
                return b.received.size() > before;
            },
            kSecond))
            << before;
    }
    ASSERT_TRUE(run([&] { return a.stat("sends_outstanding") == 0; }));
    EXPECT_EQ(b.peer_stat(a, "held_units"), 0u);
}

TEST_F(Flood, goes_on_soon_when_the_news_of_room_was_lost) {
    flood(a, b, 2000, 1000);
    settle();
    ASSERT_GT(a.stat("sends_outstanding"), 0u);
    simulator.filter = [&](sim::Node& from, sim::Frame&) { return &from != &simulator.node(1); };
    receive_all(b, 2000, 1000);
    ASSERT_TRUE(run([&] { return b.received.size() > 100; }));
    settle();
    simulator.filter = nullptr;
    // Long before a peer is taken for dead.
    EXPECT_TRUE(run([&] { return b.received.size() == 2000; }, 2 * kSecond));
}

TEST_F(Flood, over_a_lossy_network_loses_nothing) {
    simulator.faults.loss = 0.05;
    simulator.faults.reordering = 0.1;
    flood(a, b, 100, 60'000);
    settle();
    // Some are truncated, some discarded, in any order.
    for (uint64_t tag = 100; tag-- > 0;) {
        if (tag % 5 == 0) {
            const tw_msg_tagged peek{nullptr, 0, TW_ADDR_UNSPEC, tag, 0, nullptr, 0};
            b.posted(tw_trecvmsg(b.ep, &peek, TW_PEEK | TW_DISCARD));
        } else {
            b.receive(buffers.emplace_back(tag % 7 == 0 ? 3000 : 60'000, '.'), tag);
        }
        settle();
    }
    ASSERT_TRUE(run([&] { return a.sent.size() + b.stat("messages_discarded") >= 100; }));
    settle();
    for (const tw_cq_error& error : b.errors) {
        EXPECT_TRUE(error.error == TW_ETRUNC || error.error == ENOMSG) << error.text;
    }
    EXPECT_EQ(b.stat("drop_inconsistent"), 0u);
    EXPECT_EQ(a.stat("send_errors"), 0u);
}

}  // namespace
}  // namespace tagwire::test
