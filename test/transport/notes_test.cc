// SPDX-License-Identifier: BSD-3-Clause
// What a sender is told beyond the acknowledgement: matched, delivered, refused;
// and what waits for that.
#include "test/transport/frames.h"
#include "test/transport/host.h"

namespace transport_test {
namespace {

using tagwire::wire::PacketType;

class Notes : public testing::TestWithParam<uint32_t> {
  protected:
    Notes() { b.accept_at_once = false; }

    bool run(const std::function<bool()>& done, uint64_t limit = kSecond) {
        return simulator.run_until(done, limit);
    }
    void settle() { simulator.run_for(50 * kMs); }

    // Sends one message of the size at hand; it has been announced.
    Sent& send(uint8_t flags) {
        Sent& sent = a.send(a.peer(b), 1, GetParam(), flags);
        EXPECT_TRUE(run([&] { return !b.received.empty(); }));
        settle();
        return sent;
    }
    bool is_eager() const { return GetParam() <= 64 * 1024; }

    sim::Simulator simulator{7};
    Host a{simulator.add_node()};
    Host b{simulator.add_node()};
};

TEST_P(Notes, without_them_a_message_is_done_when_it_is_acknowledged) {
    Sent& sent = send(0);
    EXPECT_EQ(sent.status, is_eager() ? 0 : kPending);
}

TEST_P(Notes, of_a_match_come_after_accept) {
    Sent& sent = send(kWantsMatchNote);
    EXPECT_EQ(sent.status, kPending);
    b.transport->keep(*b.received[0].message);
    settle();
    EXPECT_EQ(sent.status, kPending);

    b.accept(b.received[0]);

    ASSERT_TRUE(run([&] { return sent.status != kPending; }));
    EXPECT_EQ(sent.status, 0);
    EXPECT_EQ(b.received[0].buffer, sent.payload);
}

TEST_P(Notes, of_a_delivery_come_once_the_core_keeps_the_whole_message) {
    Sent& sent = send(kWantsDeliveryNote);
    EXPECT_EQ(sent.status, kPending);
    b.transport->keep(*b.received[0].message);
    b.node().wake();
    settle();
    EXPECT_EQ(sent.status, is_eager() ? 0 : kPending);

    b.accept(b.received[0]);

    ASSERT_TRUE(run([&] { return sent.status != kPending && b.received[0].status != kPending; }));
    EXPECT_EQ(sent.status, 0);
    EXPECT_EQ(sent.ended, 1u);
}

TEST_P(Notes, of_a_delivery_come_after_accept_without_keep) {
    Sent& sent = send(kWantsDeliveryNote);
    EXPECT_EQ(sent.status, kPending);

    b.accept(b.received[0]);

    ASSERT_TRUE(run([&] { return sent.status != kPending; }));
    EXPECT_EQ(sent.status, 0);
    EXPECT_EQ(b.received[0].status, 0);
}

TEST_P(Notes, of_a_match_come_for_a_discarded_message) {
    Sent& sent = send(kWantsMatchNote | kWantsDeliveryNote);
    EXPECT_EQ(sent.status, kPending);

    b.discard(b.received[0]);

    ASSERT_TRUE(run([&] { return sent.status != kPending; }));
    EXPECT_EQ(sent.status, 0);
}

TEST_P(Notes, of_a_truncated_message_come_too) {
    Sent& sent = send(kWantsMatchNote | kWantsDeliveryNote);

    b.accept(b.received[0], GetParam() / 2);

    ASSERT_TRUE(run([&] { return sent.status != kPending; }));
    EXPECT_EQ(sent.status, 0);
}

TEST_P(Notes, of_a_refusal_carry_the_status) {
    Sent& sent = send(kWantsDeliveryNote);

    b.transport->refuse(*b.received[0].message, EACCES);
    b.node().wake();

    ASSERT_TRUE(run([&] { return sent.status != kPending; }));
    EXPECT_EQ(sent.status, -EACCES);
    Sent& next = a.send(a.peer(b), 2, 8);
    ASSERT_TRUE(run([&] { return next.status == 0; }));
}

TEST_P(Notes, are_not_sent_into_the_next_session) {
    a.config.first_psn = 1000;  // so that the ids of both sessions are the same
    a.restart();
    send(kWantsMatchNote);
    a.config.random_seed += 2;
    a.restart();
    Sent& other = a.send(a.peer(b), 2, GetParam(), kWantsMatchNote);
    ASSERT_TRUE(run([&] { return b.received.size() == 2; }));
    settle();

    if (b.received[0].message != nullptr && !b.received[0].lost) {
        b.accept(b.received[0]);
        settle();
    }

    EXPECT_EQ(other.status, kPending);
    b.accept(b.received[1]);
    ASSERT_TRUE(run([&] { return other.status == 0; }));
}

TEST_P(Notes, survive_loss_duplication_and_reordering) {
    simulator.faults.loss = 0.1;
    simulator.faults.duplication = 0.1;
    simulator.faults.jitter_ns = 50 * kUs;
    b.accept_at_once = true;
    for (uint64_t tag = 0; tag < 100; ++tag) {
        const uint8_t flags[] = {0, kWantsMatchNote, kWantsDeliveryNote,
                                 kWantsMatchNote | kWantsDeliveryNote};
        a.send(a.peer(b), tag, GetParam(), flags[tag % 4]);
    }

    ASSERT_TRUE(run([&] { return a.sends_pending() == 0; }, 100 * kSecond));

    for (const Sent& sent : a.sent) {
        EXPECT_EQ(sent.status, 0);
        EXPECT_EQ(sent.ended, 1u);
    }
    ASSERT_EQ(b.received.size(), 100u);
    a.expect_exact_counters();
    b.expect_exact_counters();
}

INSTANTIATE_TEST_SUITE_P(OfEachSize, Notes, testing::Values(0u, 8u, 1000u, 20'000u, 300'000u));

class Fence : public Notes {};

TEST_P(Fence, holds_a_message_and_later_ones_until_all_earlier_are_done) {
    Host c(simulator.add_node());
    Sent& earlier = send(kWantsMatchNote);
    Sent& fenced = a.send(a.peer(b), 2, 8, kFence);
    Sent& later = a.send(a.peer(b), 3, 8);
    Sent& elsewhere = a.send(a.peer(c), 4, 8);

    settle();

    EXPECT_EQ(b.received.size(), 1u);
    EXPECT_EQ(earlier.status, kPending);
    EXPECT_EQ(elsewhere.status, 0);
    b.accept(b.received[0]);
    ASSERT_TRUE(run([&] { return later.status == 0; }));
    EXPECT_EQ(fenced.status, 0);
    ASSERT_EQ(b.received.size(), 3u);
    EXPECT_EQ(b.received[1].header.tag, 2u);
    EXPECT_EQ(b.received[2].header.tag, 3u);
}

TEST_P(Fence, with_nothing_before_it_goes_at_once) {
    Sent& fenced = a.send(a.peer(b), 2, GetParam(), kFence);
    b.accept_at_once = true;
    ASSERT_TRUE(run([&] { return fenced.status == 0; }));
}

INSTANTIATE_TEST_SUITE_P(OfEachSize, Fence, testing::Values(8u, 300'000u));

class Keys : public testing::Test {
  protected:
    bool run(const std::function<bool()>& done, uint64_t limit = kSecond) {
        return simulator.run_until(done, limit);
    }
    void use(Host& host, KeyDigest key) {
        host.config_key = key;
        host.restart();
    }

    sim::Simulator simulator{8};
    Host a{simulator.add_node()};
    Host b{simulator.add_node()};
};

TEST_F(Keys, that_agree_let_messages_through) {
    use(a, 77);
    use(b, 77);
    Sent& sent = a.send(a.peer(b), 1, 8);
    ASSERT_TRUE(run([&] { return sent.status == 0; }));
    EXPECT_EQ(b.transport->key_of(b.received.at(0).peer), 77u);
}

TEST_F(Keys, that_differ_are_refused_and_counted) {
    for (const KeyDigest key : {KeyDigest{78}, kNoKey}) {
        use(a, key);
        use(b, 77);
        Sent& sent = a.send(a.peer(b), 1, 8);
        ASSERT_TRUE(run([&] { return sent.status != kPending; }));
        EXPECT_EQ(sent.status, -EKEYREJECTED);
        EXPECT_TRUE(b.received.empty());
        EXPECT_EQ(b.count(Counter::drop_refused_key), 1u);
    }
}

TEST_F(Keys, that_were_added_are_peers_of_their_own) {
    use(a, 77);
    use(b, 78);
    b.transport->add_key(0, 77);
    Sent& first = a.send(a.peer(b), 1, 8);
    ASSERT_TRUE(run([&] { return first.status == 0; }));
    const PeerId with_77 = b.received.at(0).peer;
    EXPECT_NE(with_77, b.peer(a));
    EXPECT_EQ(b.transport->key_of(with_77), 77u);
}

}  // namespace
}  // namespace transport_test
