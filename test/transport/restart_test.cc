// SPDX-License-Identifier: BSD-3-Clause
// The end of a session: restart, silence, close. What was outstanding ends once.
#include "test/transport/frames.h"
#include "test/transport/host.h"

namespace transport_test {
namespace {

using tagwire::wire::PacketType;

class Restart : public testing::Test {
  protected:
    bool run(const std::function<bool()>& done, uint64_t limit = kSecond) {
        return simulator.run_until(done, limit);
    }

    sim::Simulator simulator{4};
    Host a{simulator.add_node()};
    Host b{simulator.add_node()};
};

TEST_F(Restart, of_a_peer_is_noticed_with_the_first_packet_to_it) {
    const PeerId to_b = a.peer(b);
    Sent& before = a.send(to_b, 1, 8);
    ASSERT_TRUE(run([&] { return before.status == 0; }));
    b.restart();

    Sent& during = a.send(to_b, 2, 8);
    ASSERT_TRUE(run([&] { return during.status != kPending; }, 5 * kMs));

    EXPECT_EQ(during.status, -ECONNRESET);
    EXPECT_EQ(a.peers.back().type, EventType::kPeerDown);
    EXPECT_EQ(a.peers.back().status, -ECONNRESET);
    Sent& after = a.send(to_b, 3, 8);
    ASSERT_TRUE(run([&] { return after.status != kPending; }));
    EXPECT_EQ(after.status, 0);
    ASSERT_EQ(b.received.size(), 1u);
    EXPECT_EQ(b.received[0].header.tag, 3u);
}

TEST_F(Restart, of_a_peer_that_calls_first_is_noticed_by_its_incarnation) {
    Sent& before = a.send(a.peer(b), 1, 8);
    ASSERT_TRUE(run([&] { return before.status == 0; }));
    b.restart();

    Sent& call = b.send(b.peer(a), 9, 8);
    ASSERT_TRUE(run([&] { return call.status != kPending; }));

    EXPECT_EQ(call.status, 0);
    EXPECT_EQ(a.count(Counter::peer_restarts), 1u);
    EXPECT_EQ(a.peer_events(EventType::kPeerDown), 1u);
    EXPECT_EQ(a.peer_events(EventType::kPeerUp), 2u);
    EXPECT_EQ(a.received.at(0).peer, a.peer(b));
}

TEST_F(Restart, ends_everything_outstanding_once_before_the_peer_is_down) {
    b.accept_at_once = false;
    const PeerId to_b = a.peer(b);
    a.send(to_b, 1, 300'000);  // accepted, its rest never comes
    a.send(to_b, 2, 300'000);  // announced, not accepted
    a.send(to_b, 3, 5'000);    // complete, not accepted
    ASSERT_TRUE(run([&] { return b.received.size() == 3 && a.sent[2].status == 0; }));
    simulator.filter = [](sim::Node&, sim::Frame&) { return false; };
    b.accept(b.received[0]);
    simulator.run_for(kMs);
    a.restart();
    simulator.filter = nullptr;

    Sent& call = a.send(a.peer(b), 4, 8);
    ASSERT_TRUE(run([&] { return call.status == 0; }));

    EXPECT_EQ(b.received[0].ended, 1u);
    EXPECT_EQ(b.received[0].status, -ECONNRESET);
    EXPECT_EQ(b.received[1].ended, 1u);
    EXPECT_TRUE(b.received[1].lost);
    EXPECT_EQ(b.received[2].ended, 0u);  // all of it is here: it can still be taken
    b.accept(b.received[2]);
    EXPECT_EQ(b.received[2].ended, 1u);
    EXPECT_EQ(b.received[2].buffer, Host::pattern(3, 5'000));
}

TEST_F(Restart, silence_ends_what_is_outstanding_with_ETIMEDOUT) {
    const PeerId to_b = a.peer(b);
    Sent& before = a.send(to_b, 1, 8);
    ASSERT_TRUE(run([&] { return before.status == 0; }));
    b.stop();
    const uint64_t start = simulator.now();

    Sent& sent = a.send(to_b, 2, 100'000);
    ASSERT_TRUE(run([&] { return sent.status != kPending; }, 60 * kSecond));

    EXPECT_EQ(sent.status, -ETIMEDOUT);
    EXPECT_EQ(sent.ended, 1u);
    const uint64_t took = simulator.now() - start;
    EXPECT_GE(took, a.config.peer_timeout_ns);
    EXPECT_LE(took, a.config.peer_timeout_ns * 5 / 4 + kMs);
}

TEST_F(Restart, a_receive_whose_sender_falls_silent_ends_with_ETIMEDOUT) {
    b.accept_at_once = false;
    a.send(a.peer(b), 1, 300'000);
    ASSERT_TRUE(run([&] { return !b.received.empty(); }));
    a.stop();

    b.accept(b.received[0]);
    ASSERT_TRUE(run([&] { return b.received[0].ended != 0; }, 60 * kSecond));

    EXPECT_EQ(b.received[0].status, -ETIMEDOUT);
}

TEST_F(Restart, a_peer_that_waits_for_us_is_not_dead) {
    b.accept_at_once = false;
    Sent& sent = a.send(a.peer(b), 1, 1 << 20);

    simulator.run_for(100 * kSecond);

    EXPECT_EQ(sent.status, kPending);
    EXPECT_GE(a.count(Counter::tx_probes), 20u);
    EXPECT_EQ(a.count(Counter::retransmits), 0u);
    b.accept(b.received.at(0));
    ASSERT_TRUE(run([&] { return sent.status == 0; }));
}

TEST_F(Restart, probes_lost_in_a_row_do_not_make_a_waiting_peer_look_dead) {
    b.accept_at_once = false;
    Sent& sent = a.send(a.peer(b), 1, 1 << 20);
    ASSERT_TRUE(run([&] { return !b.received.empty(); }));
    int lost = 0;
    simulator.filter = [&](sim::Node&, sim::Frame& frame) {
        return type_of(frame) != PacketType::kProbe || ++lost > 8;
    };

    simulator.run_for(3 * a.config.peer_timeout_ns);

    EXPECT_GT(lost, 8);
    EXPECT_EQ(sent.status, kPending);
    b.accept(b.received[0]);
    ASSERT_TRUE(run([&] { return sent.status == 0; }));
}

TEST_F(Restart, idle_peers_exchange_nothing) {
    Sent& sent = a.send(a.peer(b), 1, 8);
    ASSERT_TRUE(run([&] { return sent.status == 0; }));
    simulator.run_for(kSecond);
    const uint64_t frames = a.count(Counter::tx_frames) + b.count(Counter::tx_frames);

    simulator.run_for(1000 * kSecond);

    EXPECT_EQ(a.count(Counter::tx_frames) + b.count(Counter::tx_frames), frames);
}

TEST_F(Restart, quiesce_sends_what_was_queued_then_closes_both_sides) {
    const PeerId to_b = a.peer(b);
    for (uint64_t tag = 0; tag < 20; ++tag) {
        a.send(to_b, tag, 10'000);
    }

    ASSERT_TRUE(run([&] {
        a.node().wake();
        return a.transport->quiesce();
    }));
    simulator.run_for(kMs);

    EXPECT_EQ(b.received.size(), 20u);
    EXPECT_EQ(a.sends_pending(), 0u);
    EXPECT_EQ(a.peers.back().status, -ECANCELED);
    EXPECT_EQ(b.peers.back().type, EventType::kPeerDown);
    EXPECT_EQ(b.peers.back().status, 0);
}

TEST_F(Restart, stale_duplicates_after_a_close_are_not_delivered) {
    std::vector<sim::Frame> data;
    simulator.filter = [&](sim::Node&, sim::Frame& frame) {
        if (is_sequenced(frame)) {
            data.push_back(frame);
        }
        return true;
    };
    Sent& sent = a.send(a.peer(b), 1, 8);
    ASSERT_TRUE(run([&] { return sent.status == 0; }));
    ASSERT_TRUE(run([&] {
        a.node().wake();
        return a.transport->quiesce();
    }));
    simulator.inject(b.node(), data.at(0));
    simulator.run_for(kMs);
    EXPECT_EQ(b.count(Counter::drop_stale_tag), 1u);
    Sent& again = a.send(a.peer(b), 2, 8);
    ASSERT_TRUE(run([&] { return again.status == 0; }));

    simulator.inject(b.node(), data.at(0));
    simulator.run_for(kMs);

    EXPECT_EQ(b.count(Counter::drop_stale_tag), 2u);
    EXPECT_EQ(b.received.size(), 2u);
    EXPECT_EQ(a.peer_events(EventType::kPeerDown), 1u);
}

TEST_F(Restart, a_sleeping_machine_does_not_take_its_peers_for_dead) {
    b.accept_at_once = false;
    Sent& sent = a.send(a.peer(b), 1, 1 << 20);
    ASSERT_TRUE(run([&] { return !b.received.empty(); }));
    simulator.run_for(kSecond);
    // Nobody is called for a minute: both machines slept.
    simulator.sleep(60 * kSecond);

    simulator.run_for(kSecond);

    EXPECT_EQ(sent.status, kPending);
    EXPECT_GT(a.count(Counter::clock_jumps), 0u);
    b.accept(b.received[0]);
    ASSERT_TRUE(run([&] { return sent.status == 0; }));
}

}  // namespace
}  // namespace transport_test
