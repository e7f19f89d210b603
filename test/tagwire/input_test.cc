// SPDX-License-Identifier: BSD-3-Clause
// A pipeline receives for itself and offers the frames: the worker's are taken, the others come
// back as they were.
#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>

#include "test/sim/pools.h"
#include "test/tagwire/sim_peer.h"
#include "test/transport/frames.h"

namespace tagwire::test {
namespace {

namespace wire = tagwire::wire;
using transport_test::headers;

constexpr wire::Mac kStranger = {0x02, 0, 0, 0, 0x99, 1};

// A program that polls by itself, beside one that does not.
class Input : public testing::Test {
  protected:
    Input() {
        // The other one announces its address to everybody, so also to what is behind the pipeline.
        simulator.run_for(kSecond / 1000);
        EXPECT_EQ(a.foreign.size(), 1u);
        a.foreign.clear();
    }

    bool run(const std::function<bool()>& done, uint64_t limit = 10 * kSecond) {
        return simulator.run_until(done, limit);
    }

    // A UDP packet of a stranger, `number` in its payload.
    sim::Frame foreign_frame(uint32_t number, size_t payload = 100) {
        sim::Frame frame(42 + payload);
        auto& h = headers(frame);
        h.ethernet = {node_a.mac(), kStranger, wire::kEtherTypeIpv4};
        h.ip = {};
        h.ip.version_length = wire::kIpv4NoOptions;
        h.ip.total_length = static_cast<uint16_t>(frame.size() - 14);
        h.ip.protocol = wire::kIpProtocolUdp;
        h.ip.source = 0x0a0000c8;
        h.ip.destination = node_a.ip();
        h.udp = {53, 53, static_cast<uint16_t>(8 + payload), 0};
        std::memcpy(frame.data() + 42, &number, sizeof(number));
        return frame;
    }

    sim::Frame arp_frame(uint16_t operation, const wire::Mac& sender, uint32_t sender_ip,
                         uint32_t target_ip) {
        sim::Frame frame(wire::kMinFrame);
        headers(frame).ethernet = {wire::kBroadcastMac, sender, wire::kEtherTypeArp};
        *reinterpret_cast<wire::ArpPacket*>(frame.data() + 14) = {wire::kArpHardwareEthernet,
                                                                  wire::kEtherTypeIpv4,
                                                                  6,
                                                                  4,
                                                                  operation,
                                                                  sender,
                                                                  sender_ip,
                                                                  {},
                                                                  target_ip};
        return frame;
    }

    sim::Simulator simulator{sim::seed() + 31};
    sim::Node& node_a = simulator.add_node();
    SimPeer a{node_a, {.pipeline = true}};
    SimPeer b{simulator.add_node()};
};

TEST_F(Input, messages_of_all_sizes_go_both_ways) {
    std::vector<std::string> to_a, to_b;
    const size_t sizes[] = {0, 1, 8, 200, 1500, 20'000, 300'000};
    for (const size_t size : sizes) {
        to_a.emplace_back(size, '\0');
        to_b.emplace_back(size, '\0');
    }
    for (size_t i = 0; i < std::size(sizes); ++i) {
        a.receive(to_a[i], i);
        b.receive(to_b[i], i);
        a.send(b, i, pattern(i, sizes[i]));
        b.send(a, i, pattern(i + 100, sizes[i]));
    }
    ASSERT_TRUE(run([&] { return a.ended() == 14 && b.ended() == 14; }));
    for (size_t i = 0; i < std::size(sizes); ++i) {
        EXPECT_EQ(to_b[i], pattern(i, sizes[i]));
        EXPECT_EQ(to_a[i], pattern(i + 100, sizes[i]));
    }
    EXPECT_TRUE(a.errors.empty());
    EXPECT_TRUE(a.foreign.empty());
}

TEST_F(Input, foreign_frames_come_back_in_order_while_messages_go_on) {
    simulator.faults = {.loss = 0.02, .duplication = 0.01, .reordering = 0.02};
    std::string buffer(400'000, '\0');
    const std::string payload = pattern(1, buffer.size());
    a.receive(buffer, 1);
    b.send(a, 1, payload);
    std::vector<sim::Frame> injected;
    for (uint32_t i = 0; i < 500; ++i) {
        injected.push_back(foreign_frame(i, 20 + i * 2));
        simulator.inject(node_a, injected.back());
        simulator.run_for(2'000);
    }
    ASSERT_TRUE(run([&] { return a.received.size() == 1; }));
    EXPECT_EQ(buffer, payload);
    EXPECT_TRUE(a.foreign == injected) << a.foreign.size() << " came back";
    EXPECT_EQ(a.stat("input_given_back"), 1 + injected.size());
}

TEST_F(Input, what_is_ours_and_bad_is_taken_and_counted) {
    simulator.run_for(kSecond / 1000);
    sim::Frame bad = foreign_frame(1);
    headers(bad).udp.destination_port = 4791;
    headers(bad).udp.checksum = 0x1234;
    headers(bad).ip.checksum = wire::be16::from_raw(wire::ipv4_header_checksum(headers(bad).ip));
    const uint64_t before = a.stat("drop_udp_checksum");
    simulator.inject(node_a, bad);
    headers(bad).ip.checksum = 1;
    simulator.inject(node_a, bad);
    simulator.run_for(kSecond / 1000);
    EXPECT_EQ(a.stat("drop_udp_checksum"), before + 1);
    EXPECT_EQ(a.stat("drop_ip_checksum"), 1u);
    EXPECT_TRUE(a.foreign.empty());
}

TEST_F(Input, arp_for_us_is_answered_and_other_arp_goes_on) {
    std::vector<sim::Frame> replies;
    simulator.filter = [&](sim::Node& from, sim::Frame& frame) {
        if (from.index() == 0 && headers(frame).ethernet.destination == kStranger) {
            replies.push_back(frame);
        }
        return true;
    };
    simulator.inject(node_a, arp_frame(wire::kArpRequest, kStranger, 0x0a0000c8, node_a.ip()));
    const sim::Frame other = arp_frame(wire::kArpRequest, kStranger, 0x0a0000c8, node_a.ip() + 77);
    simulator.inject(node_a, other);
    simulator.run_for(kSecond / 1000);
    EXPECT_EQ(replies.size(), 1u);
    ASSERT_EQ(a.foreign.size(), 1u);
    EXPECT_EQ(a.foreign[0], other);
}

TEST_F(Input, a_peer_that_announces_another_card_is_followed_and_the_frame_goes_on) {
    a.send(b, 1, "hello");
    ASSERT_TRUE(run([&] { return a.sent.size() == 1; }));
    const uint32_t ip_of_b = node_a.ip() + 1;
    const sim::Frame news = arp_frame(wire::kArpReply, kStranger, ip_of_b, ip_of_b);
    simulator.inject(node_a, news);
    simulator.run_for(kSecond / 1000);
    ASSERT_EQ(a.foreign.size(), 1u);
    EXPECT_EQ(a.foreign[0], news);
    bool followed = false;
    simulator.filter = [&](sim::Node& from, sim::Frame& frame) {
        followed =
            followed || (from.index() == 0 && headers(frame).ethernet.destination == kStranger);
        return true;
    };
    a.send(b, 2, "again");
    simulator.run_for(kSecond / 100);
    EXPECT_TRUE(followed);
}

// A burst of frames with many messages each, and no turn of the worker in between.
TEST_F(Input, completions_are_there_without_a_turn_of_the_worker) {
    constexpr uint64_t kMessages = 2000;
    std::string buffers(kMessages * 8, '\0');
    b.send(a, 1u << 20, "up");
    simulator.run_for(kSecond / 100);
    for (uint64_t i = 0; i < kMessages; ++i) {
        ASSERT_EQ(tw_trecv(a.ep, &buffers[i * 8], 8, TW_ADDR_UNSPEC, i, 0, nullptr), 0);
    }
    std::vector<rte_mbuf*> held;
    for (uint64_t i = 0; i < kMessages; ++i) {
        b.send(a, i, pattern(i, 8));
    }
    // The node's program is asleep meanwhile: its frames pile up.
    node_a.run([] { return UINT64_MAX; });
    simulator.run_for(kSecond / 1000);
    rte_mbuf* packets[4096];
    const uint16_t received = node_a.rx_burst(packets, 4096);
    ASSERT_GT(received, 5u);
    EXPECT_EQ(tw_worker_input(a.worker, packets, received), 0u);
    tw_cq_entry entries[kMessages];
    const ssize_t count = tw_cq_read(a.cq, entries, kMessages);
    EXPECT_GT(count, 500) << "far more than the 64 events of a turn";
    for (ssize_t i = 0; i < count; ++i) {
        EXPECT_EQ(entries[i].tag, static_cast<uint64_t>(i));
    }
}

// Everything of a foreign frame stays: the mbuf's fields, its segments, what is around the data.
TEST_F(Input, mbufs_of_others_are_not_touched) {
    rte_mempool* pool = sim::pool(1);
    std::vector<rte_mbuf*> offered;
    const auto add = [&](const sim::Frame& frame, size_t cut) {
        rte_mbuf* first = rte_pktmbuf_alloc(pool);
        rte_mbuf* second = cut < frame.size() ? rte_pktmbuf_alloc(pool) : nullptr;
        std::memcpy(rte_pktmbuf_append(first, static_cast<uint16_t>(std::min(cut, frame.size()))),
                    frame.data(), std::min(cut, frame.size()));
        if (second != nullptr) {
            const size_t rest = frame.size() - cut;
            std::memcpy(rte_pktmbuf_append(second, static_cast<uint16_t>(rest)), frame.data() + cut,
                        rest);
            ASSERT_EQ(rte_pktmbuf_chain(first, second), 0);
        }
        first->port = 7;
        first->vlan_tci = 0x1234;
        first->ol_flags = RTE_MBUF_F_RX_RSS_HASH | RTE_MBUF_F_RX_VLAN;
        first->hash.rss = 0xfeedbeef;
        first->packet_type = RTE_PTYPE_L2_ETHER;
        first->timesync = 9;
        offered.push_back(first);
    };
    add(foreign_frame(1), SIZE_MAX);
    add(foreign_frame(2, 1000), 20);  // cut inside of the IP header
    add(foreign_frame(3, 1000), 37);  // and of the UDP port
    add(arp_frame(wire::kArpRequest, kStranger, 0x0a0000c8, 0x0a0000c9), 30);
    add(sim::Frame(10, 0xaa), SIZE_MAX);
    add(sim::Frame(1514, 0xbb), 1000);

    std::vector<std::vector<uint8_t>> images;
    const auto image = [](const rte_mbuf* packet) {
        std::vector<uint8_t> bytes;
        for (; packet != nullptr; packet = packet->next) {
            const auto* at = reinterpret_cast<const uint8_t*>(packet);
            bytes.insert(bytes.end(), at, at + sizeof(*packet));
            const auto* data = static_cast<const uint8_t*>(packet->buf_addr);
            bytes.insert(bytes.end(), data, data + packet->buf_len);
        }
        return bytes;
    };
    for (const rte_mbuf* packet : offered) {
        images.push_back(image(packet));
    }
    std::vector<rte_mbuf*> given = offered;
    const uint64_t rx_frames = a.stat("rx_frames");
    ASSERT_EQ(tw_worker_input(a.worker, given.data(), static_cast<uint16_t>(given.size())),
              offered.size());
    EXPECT_EQ(given, offered);
    for (size_t i = 0; i < offered.size(); ++i) {
        EXPECT_TRUE(image(offered[i]) == images[i]) << "frame " << i;
        rte_pktmbuf_free(offered[i]);
    }
    EXPECT_EQ(a.stat("rx_frames"), rx_frames) << "what is given back was not received";
    EXPECT_EQ(a.stat("input_given_back"), 1 + offered.size());
}

// The headers of our own frames may be cut too.
TEST_F(Input, our_frames_in_segments_are_taken) {
    std::string buffer(8, '\0');
    a.receive(buffer, 5);
    b.send(a, 1u << 20, "up");
    simulator.run_for(kSecond / 100);
    node_a.run([] { return UINT64_MAX; });
    b.send(a, 5, "in two..");
    simulator.run_for(kSecond / 10'000);
    rte_mbuf* packets[8];
    const uint16_t received = node_a.rx_burst(packets, 8);
    ASSERT_EQ(received, 1u);
    rte_mbuf* whole = packets[0];
    rte_mbuf* rest = rte_pktmbuf_alloc(sim::pool(1));
    constexpr uint16_t kCut = 35;
    const uint16_t left = static_cast<uint16_t>(whole->data_len - kCut);
    std::memcpy(rte_pktmbuf_append(rest, left), rte_pktmbuf_mtod_offset(whole, char*, kCut), left);
    rte_pktmbuf_trim(whole, left);
    ASSERT_EQ(rte_pktmbuf_chain(whole, rest), 0);
    EXPECT_EQ(tw_worker_input(a.worker, &whole, 1), 0u);
    tw_cq_entry entry;
    ASSERT_EQ(tw_cq_read(a.cq, &entry, 1), 1);
    EXPECT_EQ(buffer, "in two..");
}

TEST_F(Input, a_restarted_peer_is_told_apart) {
    a.send(b, 1, "hello");
    ASSERT_TRUE(run([&] { return a.sent.size() == 1; }));
    b.die();
    b.start();
    std::string buffer(8, '\0');
    a.receive(buffer, 2);
    b.send(a, 2, "new life");
    ASSERT_TRUE(run([&] { return a.received.size() == 1; }));
    EXPECT_EQ(buffer, "new life");
}

}  // namespace
}  // namespace tagwire::test
