// SPDX-License-Identifier: BSD-3-Clause
// The small parts alone: serial numbers, timers, MAC, estimator, events, counters.
#include <set>

#include "lib/transport/event_queue.h"
#include "lib/transport/psn.h"
#include "lib/transport/rtt.h"
#include "lib/transport/siphash.h"
#include "lib/transport/timer_heap.h"
#include "test/transport/host.h"

namespace tagwire::transport {
namespace {

TEST(Psn, is_expanded_to_the_nearest_number) {
    constexpr uint64_t kNear = 0x5'0000'0005;
    EXPECT_EQ(expand_psn(7, kNear), 0x5'0000'0007u);
    EXPECT_EQ(expand_psn(0xffff'fff0, kNear), 0x4'ffff'fff0u);
    EXPECT_EQ(expand_psn(3, 0x5'ffff'fffe), 0x6'0000'0003u);
}

TEST(SipHash, matches_the_vector_of_its_paper) {
    // Aumasson, Bernstein, appendix A: key 00..0f, input 00..0e.
    const SipKey key = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
    uint8_t input[15];
    for (uint8_t i = 0; i < 15; ++i) {
        input[i] = i;
    }
    EXPECT_EQ(siphash24(key, input, sizeof(input)), 0xa129ca6149be45e5u);
}

TEST(TimerHeap, fires_in_order_of_time) {
    TimerHeap timers(100);
    std::multiset<uint64_t> expected;
    for (uint32_t timer = 0; timer < 100; ++timer) {
        const uint64_t time = (timer * 7919u) % 1000;
        timers.schedule(timer, time + 500);
        timers.schedule(timer, time);
        timers.schedule(timer, time + 9);  // later: no effect
        expected.insert(time);
    }
    for (const uint64_t time : expected) {
        EXPECT_EQ(timers.next(), time);
        timers.pop();
    }
    EXPECT_EQ(timers.next(), TimerHeap::kNever);
}

TEST(RttEstimator, follows_rfc_6298) {
    RttEstimator rtt;
    rtt.sample(100'000);
    EXPECT_EQ(rtt.timeout(), 100'000u + 4 * 50'000);
    for (int i = 0; i < 200; ++i) {
        rtt.sample(100'000);
    }
    EXPECT_NEAR(static_cast<double>(rtt.timeout()), 100'000, 1'000);
}

TEST(EventQueue, keeps_the_order_of_what_does_not_fit) {
    EventQueue queue(4);
    Event space[3];
    PeerId next = 0;
    PeerId expected = 0;
    for (int turn = 0; turn < 50; ++turn) {
        queue.begin(space);
        for (int i = 0; i < (turn < 10 ? 7 : 0); ++i) {
            Event event;
            event.peer = next++;
            queue.push(event);
        }
        const uint32_t count = queue.finish();
        for (uint32_t i = 0; i < count; ++i) {
            EXPECT_EQ(space[i].peer, expected++);
        }
    }
    EXPECT_EQ(expected, next);
    EXPECT_TRUE(queue.empty());
}

TEST(Counters, have_distinct_names) {
    std::set<std::string> names;
    for (size_t i = 0; i < kCounters; ++i) {
        names.insert(name(static_cast<Counter>(i)));
    }
    EXPECT_EQ(names.size(), kCounters);
    EXPECT_FALSE(names.contains("?"));
}

class Create : public testing::Test {
  protected:
    std::string error_of(void (*spoil)(TransportConfig&)) {
        TransportConfig config = transport_test::small_config(node);
        spoil(config);
        std::string error;
        EXPECT_EQ(Transport::create(config, node, node, &error), nullptr);
        return error;
    }

    sim::Simulator simulator{8};
    sim::Node& node = simulator.add_node();
};

TEST_F(Create, says_what_is_wrong) {
    EXPECT_NE(error_of([](auto& c) { c.local.family = AddressFamily::kIpv6; }).find("IPv6"),
              std::string::npos);
    EXPECT_NE(error_of([](auto& c) { c.mtu = 100; }).find("MTU"), std::string::npos);
    EXPECT_NE(error_of([](auto& c) { c.mtu = 9000; }).find("data room"), std::string::npos);
    EXPECT_NE(error_of([](auto& c) { c.packet_pool = nullptr; }).find("packet_pool"),
              std::string::npos);
    EXPECT_NE(error_of([](auto& c) { c.max_peers = 0; }).find("max_peers"), std::string::npos);
    EXPECT_NE(error_of([](auto& c) { c.max_incoming_messages = 9; }).find("max_incoming"),
              std::string::npos);
    EXPECT_NE(error_of([](auto& c) { c.send_window_packets = 513; }).find("send_window"),
              std::string::npos);
}

TEST_F(Create, refuses_bad_arguments_of_calls) {
    transport_test::Host a(node);
    PeerId peer;
    EXPECT_EQ(a.transport->open_endpoint(0, kNoKey), -EEXIST);
    EndpointAddress v6;
    v6.family = AddressFamily::kIpv6;
    EXPECT_EQ(a.transport->open_peer(0, v6, kNoKey, &peer), -EINVAL);
    EXPECT_EQ(a.transport->open_peer(1, node.address(), kNoKey, &peer), -EINVAL);
    SendOperation operation;
    EXPECT_EQ(a.transport->send(5, operation), -EINVAL);
    for (uint32_t i = 0; i < a.config.max_peers; ++i) {
        EXPECT_EQ(
            a.transport->open_peer(0, node.address(static_cast<uint16_t>(1 + i)), kNoKey, &peer),
            0);
    }
    EXPECT_EQ(a.transport->open_peer(0, node.address(999), kNoKey, &peer), -ENOSPC);
    operation.header.length = 8;
    EXPECT_EQ(a.transport->send(peer, operation), -EINVAL);
    operation.header.length = kMaxMessageSize + 1;
    operation.iov[0] = {nullptr, kMaxMessageSize + 1};
    operation.iov_count = 1;
    EXPECT_EQ(a.transport->send(peer, operation), -EMSGSIZE);
}

}  // namespace
}  // namespace tagwire::transport
