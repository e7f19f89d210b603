// SPDX-License-Identifier: BSD-3-Clause
// What a port without a kernel netdev must do itself: ARP and ping.
#include <algorithm>

#include "test/transport/frames.h"
#include "test/transport/host.h"

namespace transport_test {
namespace {

namespace wire = tagwire::wire;

class Neighbour : public testing::Test {
  protected:
    Neighbour() {
        simulator.filter = [this](sim::Node& from, sim::Frame& frame) {
            if (from.index() == 0) {
                sent.push_back(frame);
            }
            return true;
        };
    }

    static wire::ArpPacket& arp(sim::Frame& frame) {
        return *reinterpret_cast<wire::ArpPacket*>(frame.data() + sizeof(wire::EthernetHeader));
    }

    sim::Frame arp_frame(uint16_t operation, uint32_t sender_ip, wire::Mac sender,
                         uint32_t target_ip) {
        sim::Frame frame(wire::kMinFrame);
        *reinterpret_cast<wire::EthernetHeader*>(frame.data()) = {wire::kBroadcastMac, sender,
                                                                  wire::kEtherTypeArp};
        arp(frame) = {wire::kArpHardwareEthernet,
                      wire::kEtherTypeIpv4,
                      6,
                      4,
                      operation,
                      sender,
                      sender_ip,
                      wire::Mac{},
                      target_ip};
        return frame;
    }

    sim::Frame ping(uint32_t length) {
        const auto icmp_length = static_cast<uint32_t>(sizeof(wire::IcmpHeader)) + length;
        sim::Frame frame(sizeof(wire::EthernetHeader) + sizeof(wire::Ipv4Header) + icmp_length);
        auto& h = headers(frame);
        h.ethernet = {a.node().mac(), kStranger, wire::kEtherTypeIpv4};
        h.ip = {};
        h.ip.version_length = wire::kIpv4NoOptions;
        h.ip.total_length = static_cast<uint16_t>(frame.size() - sizeof(wire::EthernetHeader));
        h.ip.time_to_live = 9;
        h.ip.protocol = wire::kIpProtocolIcmp;
        h.ip.source = 0x0a0000c8;
        h.ip.destination = a.node().ip();
        h.ip.checksum = wire::be16::from_raw(wire::ipv4_header_checksum(h.ip));
        uint8_t* at = frame.data() + sizeof(wire::EthernetHeader) + sizeof(wire::Ipv4Header);
        auto& icmp = *reinterpret_cast<wire::IcmpHeader*>(at);
        icmp = {wire::kIcmpEchoRequest, 0, 0, 0x12345678};
        for (uint32_t i = 0; i < length; ++i) {
            at[sizeof(icmp) + i] = static_cast<uint8_t>(i);
        }
        icmp.checksum = wire::be16::from_raw(wire::checksum(at, icmp_length));
        return frame;
    }

    static constexpr wire::Mac kStranger = {0x02, 0, 0, 0, 0x99, 1};
    sim::Simulator simulator{6};
    std::vector<sim::Frame> sent;
    Host a{simulator.add_node()};
};

TEST_F(Neighbour, announces_its_address_at_the_start) {
    simulator.run_for(kMs);

    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(arp(sent[0]).sender_ip, arp(sent[0]).target_ip);
    EXPECT_EQ(headers(sent[0]).ethernet.destination, wire::kBroadcastMac);
}

TEST_F(Neighbour, answers_a_request_for_its_address) {
    simulator.run_for(kMs);
    sent.clear();

    simulator.inject(a.node(), arp_frame(wire::kArpRequest, 0x0a0000c8, kStranger, a.node().ip()));
    simulator.run_for(kMs);

    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(arp(sent[0]).operation, wire::kArpReply);
    EXPECT_EQ(headers(sent[0]).ethernet.destination, kStranger);
    EXPECT_EQ(arp(sent[0]).sender_mac, a.node().mac());
}

TEST_F(Neighbour, ignores_a_request_for_another_address) {
    simulator.run_for(kMs);
    sent.clear();

    simulator.inject(a.node(), arp_frame(wire::kArpRequest, 0x0a0000c8, kStranger, 0x0a0000c9));
    simulator.run_for(kMs);

    EXPECT_TRUE(sent.empty());
    EXPECT_EQ(a.count(Counter::drop_arp_not_for_us), 1u);
}

TEST_F(Neighbour, defends_its_address_and_not_again_soon) {
    simulator.run_for(kMs);
    sent.clear();
    const auto claim = [&] {
        simulator.inject(a.node(),
                         arp_frame(wire::kArpRequest, a.node().ip(), kStranger, a.node().ip()));
        simulator.run_for(kMs);
    };

    claim();
    claim();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(arp(sent[0]).sender_mac, a.node().mac());
    EXPECT_EQ(arp(sent[0]).sender_ip, arp(sent[0]).target_ip);
    EXPECT_EQ(headers(sent[0]).ethernet.destination, wire::kBroadcastMac);
    EXPECT_EQ(a.count(Counter::drop_arp_conflict), 2u);

    simulator.run_for(10 * kSecond);
    claim();
    EXPECT_EQ(sent.size(), 2u);
}

TEST_F(Neighbour, answers_a_probe_and_learns_nothing_from_it) {
    simulator.run_for(kMs);
    sent.clear();

    simulator.inject(a.node(), arp_frame(wire::kArpRequest, 0, kStranger, a.node().ip()));
    simulator.run_for(kMs);

    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(arp(sent[0]).operation, wire::kArpReply);
    EXPECT_EQ(arp(sent[0]).sender_mac, a.node().mac());
    EXPECT_EQ(arp(sent[0]).target_ip.raw(), 0u);
    EXPECT_EQ(headers(sent[0]).ethernet.destination, kStranger);
    EXPECT_EQ(a.count(Counter::drop_arp_conflict), 0u);
}

// Two stations with one address; `second` is told of it by the first, or by itself.
class Probe : public Neighbour {
  protected:
    TransportConfig same_address() {
        TransportConfig config = small_config(second_node);
        config.local.ip = a.config.local.ip;
        config.probes_address = true;
        return config;
    }
    static bool is_taken(Host& host, MacAddress* by) {
        return host.transport->address_is_taken(by);
    }
    sim::Node& second_node{simulator.add_node()};
    MacAddress rival;
};

TEST_F(Probe, finds_the_station_that_has_the_address) {
    simulator.run_for(kMs);
    Host second(second_node, same_address());
    simulator.run_for(kMs);

    ASSERT_TRUE(is_taken(second, &rival));
    EXPECT_EQ(rival.bytes, a.node().mac());
    EXPECT_FALSE(is_taken(a, &rival)) << "it was asked, and not contradicted";
    EXPECT_EQ(a.count(Counter::drop_arp_conflict), 0u);
}

TEST_F(Probe, finds_another_one_that_asks_for_the_same) {
    TransportConfig config = same_address();
    config.local.ip[3] = 200;
    Host second(second_node, config);
    sim::Node& third_node = simulator.add_node();
    config.mac = small_config(third_node).mac;
    Host third(third_node, config);
    simulator.run_for(kMs);
    second.transport->probe_address();
    third.transport->probe_address();
    simulator.run_for(kMs);

    EXPECT_TRUE(is_taken(second, &rival));
    EXPECT_TRUE(is_taken(third, &rival));
}

TEST_F(Probe, of_a_free_address_ends_with_its_announcement) {
    a.stop();
    Host second(second_node, same_address());
    std::vector<sim::Frame> frames;
    simulator.filter = [&](sim::Node& from, sim::Frame& frame) {
        if (from.index() == second_node.index()) {
            frames.push_back(frame);
        }
        return true;
    };
    simulator.run_for(kMs);
    simulator.inject(second_node,
                     arp_frame(wire::kArpRequest, 0x0a0000c8, kStranger, a.node().ip()));
    simulator.run_for(kMs);
    ASSERT_EQ(frames.size(), 1u) << "it claims nothing yet, and does not answer";
    EXPECT_EQ(arp(frames[0]).sender_ip.raw(), 0u);
    EXPECT_EQ(arp(frames[0]).target_ip, wire::be32(a.node().ip()));

    second.transport->claim_address();
    simulator.run_for(kMs);
    ASSERT_EQ(frames.size(), 2u);
    EXPECT_EQ(arp(frames[1]).sender_ip, arp(frames[1]).target_ip);
    EXPECT_FALSE(is_taken(second, &rival));
}

// A station that slept through the probes hears of the other later, and both know.
TEST_F(Probe, that_nobody_answered_leaves_the_conflict_to_be_seen_later) {
    simulator.run_for(kMs);
    bool asleep = true;
    simulator.filter = [&](sim::Node& from, sim::Frame&) {
        return from.index() != a.node().index() || !asleep;
    };
    Host second(second_node, same_address());
    simulator.run_for(kMs);
    EXPECT_FALSE(is_taken(second, &rival));
    asleep = false;
    second.transport->claim_address();
    simulator.run_for(kMs);

    EXPECT_TRUE(is_taken(a, &rival));
    EXPECT_EQ(rival.bytes, second_node.mac());
    EXPECT_TRUE(is_taken(second, &rival)) << "the first has defended its address";
    EXPECT_GE(a.count(Counter::drop_arp_conflict), 1u);
    EXPECT_GE(second.count(Counter::drop_arp_conflict), 1u);
}

TEST_F(Neighbour, follows_a_peer_to_its_new_card) {
    Host b(simulator.add_node());
    Sent& first = a.send(a.peer(b), 1, 8);
    ASSERT_TRUE(simulator.run_until([&] { return first.status == 0; }, kSecond));
    sent.clear();

    simulator.inject(a.node(),
                     arp_frame(wire::kArpRequest, b.node().ip(), kStranger, b.node().ip()));
    simulator.run_for(kMs);
    a.send(a.peer(b), 2, 8);
    simulator.run_for(kMs);

    ASSERT_FALSE(sent.empty());
    EXPECT_EQ(headers(sent[0]).ethernet.destination, kStranger);
}

TEST_F(Neighbour, answers_a_ping) {
    simulator.run_for(kMs);
    sent.clear();
    const sim::Frame request = ping(1000);

    simulator.inject(a.node(), request);
    simulator.run_for(kMs);

    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].size(), request.size());
    const uint8_t* at = sent[0].data() + sizeof(wire::EthernetHeader) + sizeof(wire::Ipv4Header);
    EXPECT_EQ(at[0], wire::kIcmpEchoReply);
    EXPECT_EQ(wire::checksum(at, sent[0].size() - 34), 0u);
    EXPECT_EQ(wire::ipv4_header_checksum(headers(sent[0]).ip), headers(sent[0]).ip.checksum.raw());
    EXPECT_TRUE(std::equal(sent[0].begin() + 42, sent[0].end(), request.begin() + 42));
}

TEST_F(Neighbour, counts_each_frame_once_whatever_it_is) {
    std::mt19937_64 random(7);
    simulator.run_for(kMs);
    for (int i = 0; i < 5000; ++i) {
        sim::Frame frame = i % 2 == 0
                               ? ping(30)
                               : arp_frame(wire::kArpRequest, 0x0a0000c8, kStranger, a.node().ip());
        frame.resize(1 + random() % frame.size());
        for (int flips = 0; flips < 3; ++flips) {
            frame[random() % frame.size()] ^= static_cast<uint8_t>(random());
        }
        simulator.inject(a.node(), frame);
        simulator.run_for(kUs);
    }
    simulator.run_for(kMs);

    EXPECT_GE(a.count(Counter::rx_frames), 5000u);
    a.expect_exact_counters();
}

}  // namespace
}  // namespace transport_test
