// SPDX-License-Identifier: BSD-3-Clause
// Places of peers are used again, and nothing of the old peer reaches the new one.
#include <rte_mempool.h>

#include "test/transport/frames.h"
#include "test/transport/host.h"

namespace transport_test {
namespace {

using tagwire::wire::PacketType;

class Retire : public testing::Test {
  protected:
    static constexpr uint32_t kPlaces = 8;

    static TransportConfig many_peers(const sim::Node& node) {
        TransportConfig config = small_config(node);
        config.max_peers = 256;
        return config;
    }
    bool run(const std::function<bool()>& done, uint64_t limit = 30 * kSecond) {
        return simulator.run_until(done, limit);
    }
    // A client is an endpoint of its machine, so that one machine has many.
    PeerId open(uint16_t endpoint) {
        EXPECT_EQ(clients.transport->open_endpoint(endpoint, kNoKey), 0);
        return clients.peer(server, endpoint, 0);
    }
    Sent& call(uint16_t endpoint) {
        const PeerId to_server = open(endpoint);
        Sent& sent = clients.send(to_server, endpoint, 3'000);
        EXPECT_TRUE(run([&] { return sent.status != kPending; }));
        clients.transport->release_peer(to_server);
        return sent;
    }
    void hang_up(uint16_t endpoint) {
        ASSERT_TRUE(run([&] { return clients.transport->close_endpoint(endpoint) == 0; }));
        const uint32_t before = server.peer_events(EventType::kPeerDown);
        clients.node().wake();
        ASSERT_TRUE(run([&] { return server.peer_events(EventType::kPeerDown) > before; }));
    }
    // Until the place of `peer` is another's, who stays.
    void call_until_reused(PeerId peer, uint16_t endpoint) {
        for (uint16_t last = endpoint; last < endpoint + 100; ++last) {
            ASSERT_EQ(call(last).status, 0);
            if (server.received.back().peer == peer) {
                return;
            }
            hang_up(last);
        }
        FAIL() << "it is not used again";
    }

    sim::Simulator simulator{sim::seed() + 11};
    Host server{simulator.add_node()};
    sim::Node& client_node = simulator.add_node();
    Host clients{client_node, many_peers(client_node)};
};

TEST_F(Retire, ten_times_as_many_peers_as_places_come_and_go) {
    ASSERT_EQ(server.config.max_peers, kPlaces);
    uint32_t idle_buffers = 0;
    for (uint16_t client = 1; client <= 10 * kPlaces; ++client) {
        ASSERT_EQ(call(client).status, 0) << client;
        hang_up(client);
        ASSERT_EQ(server.received.size(), client);
        ASSERT_EQ(server.received.back().buffer, Host::pattern(client, 3'000));
        ASSERT_LT(server.received.back().peer, kPlaces);
        if (client == 2 * kPlaces) {
            simulator.run_for(kSecond);
            idle_buffers = rte_mempool_avail_count(server.config.packet_pool);
        }
    }
    EXPECT_EQ(server.count(Counter::drop_refused), 0u);
    EXPECT_GE(server.count(Counter::peers_forgotten), 9u * kPlaces);
    EXPECT_EQ(server.count(Counter::peers_up), 10u * kPlaces);
    EXPECT_EQ(server.count(Counter::peers_down), 10u * kPlaces);
    simulator.run_for(kSecond);
    EXPECT_GE(rte_mempool_avail_count(server.config.packet_pool) + 32, idle_buffers)
        << "but for those that it has at hand";
}

TEST_F(Retire, also_over_a_bad_network) {
    simulator.faults = {.loss = 0.1, .duplication = 0.1, .reordering = 0.2};
    for (uint16_t client = 1; client <= 10 * kPlaces; ++client) {
        const Sent& sent = call(client);
        ASSERT_EQ(sent.status, 0) << client;
        ASSERT_EQ(sent.ended, 1u);
        ASSERT_EQ(clients.transport->close_endpoint(client), 0);
        clients.node().wake();
        simulator.run_for(kSecond);
    }
    for (const Received& received : server.received) {
        EXPECT_EQ(received.buffer, Host::pattern(received.header.tag,
                                                 static_cast<uint32_t>(received.header.length)));
        EXPECT_EQ(received.ended, 1u);
    }
    EXPECT_EQ(server.received.size(), 10u * kPlaces);
}

TEST_F(Retire, late_packets_of_the_old_peer_are_refused_and_counted) {
    std::vector<sim::Frame> data;
    simulator.filter = [&](sim::Node& from, sim::Frame& frame) {
        if (&from == &clients.node() && is_sequenced(frame)) {
            data.push_back(frame);
        }
        return true;
    };
    ASSERT_EQ(call(1).status, 0);
    const PeerId place = server.received.at(0).peer;
    hang_up(1);
    simulator.filter = nullptr;
    call_until_reused(place, 2);
    const size_t received = server.received.size();
    const uint32_t down = server.peer_events(EventType::kPeerDown);

    const uint64_t before = server.count(Counter::drop_stale_tag);
    for (const sim::Frame& frame : data) {
        simulator.inject(server.node(), frame);
    }
    simulator.run_for(kMs);

    ASSERT_GE(data.size(), 2u);
    EXPECT_EQ(server.count(Counter::drop_stale_tag), before + data.size());
    EXPECT_EQ(server.received.size(), received);
    EXPECT_EQ(server.peer_events(EventType::kPeerDown), down);
}

TEST_F(Retire, a_late_hello_of_a_forgotten_peer_opens_nothing) {
    std::vector<sim::Frame> hellos;
    simulator.filter = [&](sim::Node&, sim::Frame& frame) {
        if (type_of(frame) == PacketType::kHello && handshake(frame).cookie != 0) {
            hellos.push_back(frame);
        }
        return true;
    };
    ASSERT_EQ(call(1).status, 0);
    hang_up(1);
    ASSERT_EQ(hellos.size(), 1u);
    simulator.filter = nullptr;
    call_until_reused(server.received.at(0).peer, 2);
    const uint32_t up = server.peer_events(EventType::kPeerUp);
    const uint64_t wrong = server.count(Counter::drop_cookie);

    simulator.inject(server.node(), hellos[0]);
    simulator.run_for(10 * kMs);

    EXPECT_EQ(server.peer_events(EventType::kPeerUp), up);
    EXPECT_EQ(server.count(Counter::drop_cookie), wrong + 1);
}

TEST_F(Retire, a_place_with_a_message_that_nobody_took_stays) {
    server.accept_at_once = false;
    ASSERT_EQ(call(1).status, 0);
    hang_up(1);
    server.accept_at_once = true;
    const PeerId place = server.received.at(0).peer;
    for (uint16_t client = 2; client < 4 * kPlaces; ++client) {
        ASSERT_EQ(call(client).status, 0) << client;
        hang_up(client);
        ASSERT_NE(server.received.back().peer, place);
    }
    EXPECT_EQ(server.transport->address_of(place).endpoint, 1u);
    Received& kept = server.received.at(0);
    server.accept(kept);
    EXPECT_EQ(kept.buffer, Host::pattern(1, 3'000));
    call_until_reused(place, 4 * kPlaces);
}

TEST_F(Retire, a_place_that_is_held_stays_until_it_is_released) {
    const PeerId held = server.peer(clients, 0, 500);
    for (uint16_t client = 1; client < 3 * kPlaces; ++client) {
        ASSERT_EQ(call(client).status, 0) << client;
        hang_up(client);
        ASSERT_NE(server.received.back().peer, held);
    }
    EXPECT_EQ(server.transport->address_of(held).endpoint, 500u);
    server.transport->release_peer(held);
    call_until_reused(held, 3 * kPlaces);
}

TEST_F(Retire, the_core_finds_a_place_at_once) {
    PeerId peer = kNoPeer;
    for (uint16_t i = 0; i < kPlaces; ++i) {
        ASSERT_EQ(server.transport->open_peer(
                      0, client_node.address(clients.config.local.udp_port, i), kNoKey, &peer),
                  0);
    }
    EXPECT_EQ(server.transport->open_peer(0, client_node.address(clients.config.local.udp_port, 99),
                                          kNoKey, &peer),
              -ENOSPC);
    server.transport->hold_peer(3);
    server.transport->release_peer(3);
    EXPECT_EQ(server.transport->open_peer(0, client_node.address(clients.config.local.udp_port, 99),
                                          kNoKey, &peer),
              -ENOSPC)
        << "it is held once more";
    server.transport->release_peer(3);
    EXPECT_EQ(server.transport->open_peer(0, client_node.address(clients.config.local.udp_port, 99),
                                          kNoKey, &peer),
              0);
    EXPECT_EQ(peer, 3u);
}

// Clients that were killed say nothing.
TEST_F(Retire, sessions_that_nobody_uses_make_room) {
    for (uint16_t client = 1; client <= kPlaces; ++client) {
        ASSERT_EQ(call(client).status, 0);
    }
    simulator.run_for(kSecond);  // nothing is under way that a new life would answer
    clients.restart();
    EXPECT_EQ(call(101).status, -ECONNREFUSED) << "they may be alive";
    EXPECT_EQ(server.count(Counter::idle_sessions_closed), 0u);
    simulator.run_for(server.config.peer_timeout_ns + 3 * kSecond);
    uint32_t accepted = 0;
    for (uint16_t client = 102; accepted < kPlaces; ++client) {
        ASSERT_LT(client, 102 + 3 * kPlaces);
        call(client).status == 0 ? static_cast<void>(++accepted) : simulator.run_for(2 * kSecond);
    }
    EXPECT_GE(server.count(Counter::idle_sessions_closed), uint64_t{kPlaces});
}

TEST_F(Retire, a_session_that_was_closed_idle_opens_again) {
    for (uint16_t client = 1; client <= kPlaces; ++client) {
        ASSERT_EQ(call(client).status, 0);
    }
    EXPECT_EQ(call(101).status, -ECONNREFUSED);
    simulator.run_for(server.config.peer_timeout_ns + 3 * kSecond);
    EXPECT_GE(server.count(Counter::idle_sessions_closed), 1u) << "as many as were idle then";
    const uint64_t frames = server.count(Counter::tx_frames);
    simulator.run_for(100 * kSecond);
    EXPECT_EQ(server.count(Counter::tx_frames), frames) << "and then it is quiet";
    Sent& again = clients.send(clients.peer(server, 1, 0), 77, 8);
    ASSERT_TRUE(run([&] { return again.status != kPending; }));
    EXPECT_EQ(again.status, 0);
    EXPECT_EQ(server.received.back().header.tag, 77u);
}

}  // namespace
}  // namespace transport_test
