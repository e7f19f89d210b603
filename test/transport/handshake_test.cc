// SPDX-License-Identifier: BSD-3-Clause
// Set-up of a session: cookie, refusals, both sides at once, ARP.
#include <algorithm>

#include "test/transport/frames.h"
#include "test/transport/host.h"

namespace transport_test {
namespace {

using tagwire::wire::PacketType;

class Handshake : public testing::Test {
  protected:
    bool run(const std::function<bool()>& done, uint64_t limit = kSecond) {
        return simulator.run_until(done, limit);
    }

    // Remembers each frame of a type, in order.
    void record(PacketType type) {
        simulator.filter = [this, type](sim::Node&, sim::Frame& frame) {
            if (type_of(frame) == type) {
                recorded.push_back(frame);
            }
            return true;
        };
    }

    sim::Simulator simulator{2};
    std::vector<sim::Frame> recorded;
    Host a{simulator.add_node()};
    Host b{simulator.add_node()};
};

TEST_F(Handshake, takes_a_cookie_and_no_reply_is_larger_than_its_request) {
    std::vector<std::pair<PacketType, size_t>> seen;
    simulator.filter = [&](sim::Node&, sim::Frame& frame) {
        if (type_of(frame) >= PacketType::kHello) {
            seen.emplace_back(type_of(frame), frame.size());
        }
        return true;
    };

    Sent& sent = a.send(a.peer(b), 1, 8);
    ASSERT_TRUE(run([&] { return sent.status == 0; }));

    ASSERT_EQ(seen.size(), 4u);
    EXPECT_EQ(seen[0].first, PacketType::kHello);
    EXPECT_EQ(seen[1].first, PacketType::kCookie);
    EXPECT_EQ(seen[2].first, PacketType::kHello);
    EXPECT_EQ(seen[3].first, PacketType::kAccept);
    EXPECT_LE(seen[1].second, seen[0].second);
    EXPECT_LE(seen[3].second, seen[2].second);
    EXPECT_EQ(a.peer_events(EventType::kPeerUp), 1u);
    EXPECT_EQ(b.peer_events(EventType::kPeerUp), 1u);
}

TEST_F(Handshake, from_both_sides_at_once_gives_one_session) {
    Sent& to_b = a.send(a.peer(b), 1, 100);
    Sent& to_a = b.send(b.peer(a), 2, 100);

    ASSERT_TRUE(run([&] { return to_b.status == 0 && to_a.status == 0; }));
    simulator.run_for(kSecond);

    EXPECT_EQ(a.peer_events(EventType::kPeerUp), 1u);
    EXPECT_EQ(b.peer_events(EventType::kPeerUp), 1u);
    EXPECT_EQ(a.peer_events(EventType::kPeerDown) + b.peer_events(EventType::kPeerDown), 0u);
    EXPECT_EQ(a.received.at(0).peer, a.peer(b));
}

TEST_F(Handshake, from_both_sides_at_once_survives_faults) {
    simulator.faults.loss = 0.3;
    simulator.faults.duplication = 0.2;
    simulator.faults.jitter_ns = 200 * kUs;
    for (uint32_t round = 0; round < 50; ++round) {
        a.stop();
        b.stop();
        a.config.random_seed += 2 * round;
        a.start();
        b.start();
        Sent& to_b = a.send(a.peer(b), 1, 100);
        Sent& to_a = b.send(b.peer(a), 2, 100);
        ASSERT_TRUE(
            run([&] { return to_b.status != kPending && to_a.status != kPending; }, 60 * kSecond));
        EXPECT_EQ(to_b.status, 0);
        EXPECT_EQ(to_a.status, 0);
    }
}

TEST_F(Handshake, with_a_forged_cookie_opens_nothing) {
    record(PacketType::kHello);
    Sent& sent = a.send(a.peer(b), 1, 8);
    ASSERT_TRUE(run([&] { return sent.status == 0; }));
    simulator.filter = nullptr;
    sim::Frame forged = recorded.at(1);
    headers(forged).ip.source = 0x0a000099;  // somebody else's address
    handshake(forged).cookie = 0x1122334455667788;
    fix_checksums(forged);

    simulator.inject(b.node(), forged);
    simulator.run_for(10 * kMs);

    EXPECT_EQ(b.count(Counter::drop_cookie), 1u);
    EXPECT_EQ(b.peer_events(EventType::kPeerUp), 1u);
    EXPECT_EQ(b.peer_events(EventType::kPeerDown), 0u);
}

TEST_F(Handshake, of_another_version_is_refused_with_a_reason) {
    simulator.filter = [](sim::Node&, sim::Frame& frame) {
        if (type_of(frame) == PacketType::kHello) {
            headers(frame).base.version_type =
                static_cast<uint8_t>(headers(frame).base.version_type + 0x10);
            fix_checksums(frame);
        }
        return true;
    };

    Sent& sent = a.send(a.peer(b), 1, 8);
    ASSERT_TRUE(run([&] { return sent.status != kPending; }));

    EXPECT_EQ(sent.status, -ECONNREFUSED);
    EXPECT_EQ(b.count(Counter::drop_version), 1u);
    ASSERT_EQ(a.peers.size(), 1u);
    EXPECT_EQ(a.peers[0].status, -ECONNREFUSED);
}

TEST_F(Handshake, that_requires_an_unknown_feature_is_refused) {
    simulator.filter = [](sim::Node&, sim::Frame& frame) {
        if (type_of(frame) == PacketType::kHello) {
            handshake(frame).features = 0x80000000;
            fix_checksums(frame);
        }
        return true;
    };

    Sent& sent = a.send(a.peer(b), 1, 8);
    ASSERT_TRUE(run([&] { return sent.status != kPending; }));

    EXPECT_EQ(sent.status, -ECONNREFUSED);
    EXPECT_EQ(b.count(Counter::drop_refused), 1u);
}

TEST_F(Handshake, to_an_endpoint_that_is_not_open_is_refused) {
    Sent& sent = a.send(a.peer(b, 0, 77), 1, 8);

    ASSERT_TRUE(run([&] { return sent.status != kPending; }));

    EXPECT_EQ(sent.status, -ECONNREFUSED);
}

TEST_F(Handshake, agrees_on_the_smaller_mtu) {
    b.stop();
    b.config.mtu = 900;
    b.start();
    size_t longest = 0;
    simulator.filter = [&](sim::Node&, sim::Frame& frame) {
        longest = std::max(longest, frame.size());
        return true;
    };

    Sent& sent = a.send(a.peer(b), 1, 100'000);
    ASSERT_TRUE(run([&] { return sent.status == 0; }));

    EXPECT_EQ(longest, 900u + 14);
    EXPECT_EQ(b.received.at(0).buffer, sent.payload);
}

TEST_F(Handshake, of_an_earlier_life_that_arrives_late_changes_nothing) {
    record(PacketType::kHello);
    Sent& first = a.send(a.peer(b), 1, 8);
    ASSERT_TRUE(run([&] { return first.status == 0; }));
    const sim::Frame old_hello = recorded.at(1);
    a.restart();
    Sent& second = a.send(a.peer(b), 2, 8);
    ASSERT_TRUE(run([&] { return second.status == 0; }));

    simulator.inject(b.node(), old_hello);
    simulator.run_for(10 * kMs);

    EXPECT_EQ(b.count(Counter::drop_cookie), 1u);
    EXPECT_EQ(b.count(Counter::peer_restarts), 1u);
    Sent& third = a.send(a.peer(b), 3, 8);
    ASSERT_TRUE(run([&] { return third.status == 0; }));
    EXPECT_EQ(a.peer_events(EventType::kPeerDown), 0u);
}

TEST_F(Handshake, to_an_address_that_nobody_has_ends_with_EHOSTUNREACH) {
    PeerId nobody = kNoPeer;
    EndpointAddress address = b.node().address();
    address.ip[3] = 200;
    ASSERT_EQ(a.transport->open_peer(0, address, kNoKey, &nobody), 0);

    Sent& sent = a.send(nobody, 1, 8);
    ASSERT_TRUE(run([&] { return sent.status != kPending; }, 10 * kSecond));

    EXPECT_EQ(sent.status, -EHOSTUNREACH);
    EXPECT_EQ(a.peers.at(0).status, -EHOSTUNREACH);
}

TEST_F(Handshake, to_a_host_without_answer_ends_with_ETIMEDOUT) {
    simulator.filter = [](sim::Node&, sim::Frame& frame) {
        return type_of(frame) != PacketType::kHello;
    };

    Sent& sent = a.send(a.peer(b), 1, 8);
    ASSERT_TRUE(run([&] { return sent.status != kPending; }, 20 * kSecond));

    EXPECT_EQ(sent.status, -ETIMEDOUT);
}

TEST_F(Handshake, after_an_unreachable_one_works_when_the_host_is_back) {
    b.stop();
    Sent& lost = a.send(a.peer(b), 1, 8);
    ASSERT_TRUE(run([&] { return lost.status != kPending; }, 20 * kSecond));
    EXPECT_EQ(lost.status, -EHOSTUNREACH);
    b.start();

    Sent& sent = a.send(a.peer(b), 2, 8);
    ASSERT_TRUE(run([&] { return sent.status != kPending; }));

    EXPECT_EQ(sent.status, 0);
}

}  // namespace
}  // namespace transport_test
