// SPDX-License-Identifier: BSD-3-Clause
// What is lost is sent again, and nothing else.
#include <algorithm>

#include "test/transport/frames.h"
#include "test/transport/host.h"

namespace transport_test {
namespace {

using tagwire::wire::PacketType;

class Loss : public testing::Test {
  protected:
    bool run(const std::function<bool()>& done, uint64_t limit = kSecond) {
        return simulator.run_until(done, limit);
    }

    PeerId connect() {
        const PeerId to_b = a.peer(b);
        Sent& sent = a.send(to_b, 0, 8);
        EXPECT_TRUE(run([&] { return sent.status == 0; }));
        return to_b;
    }

    // Drops the sequenced frames with these numbers, counted from now.
    void drop_data(std::vector<uint32_t> numbers) {
        simulator.filter = [this, numbers](sim::Node& from, sim::Frame& frame) {
            if (!is_sequenced(frame) || &from != &a.node()) {
                return true;
            }
            const uint32_t number = data_frames++;
            return std::find(numbers.begin(), numbers.end(), number) == numbers.end();
        };
    }

    uint64_t resent(const Host& host) const {
        return host.count(Counter::retransmits) + host.count(Counter::tail_probes);
    }

    sim::Simulator simulator{3};
    uint32_t data_frames = 0;
    Host a{simulator.add_node()};
    Host b{simulator.add_node()};
};

TEST_F(Loss, none_means_nothing_is_sent_again) {
    const PeerId to_b = connect();
    for (uint64_t tag = 1; tag <= 50; ++tag) {
        a.send(to_b, tag, tag % 5 == 0 ? 100'000 : 500);
    }

    ASSERT_TRUE(run([&] { return a.sends_pending() == 0; }));
    simulator.run_for(kSecond);

    EXPECT_EQ(resent(a) + resent(b), 0u);
    EXPECT_EQ(b.count(Counter::drop_duplicate), 0u);
}

TEST_F(Loss, of_one_in_the_middle_resends_that_one) {
    const PeerId to_b = connect();
    drop_data({10});

    Sent& sent = a.send(to_b, 1, 60'000);
    ASSERT_TRUE(run([&] { return sent.status == 0; }));

    EXPECT_EQ(a.count(Counter::retransmits), 1u);
    EXPECT_EQ(a.count(Counter::timeouts), 0u);
    EXPECT_EQ(b.received.at(1).buffer, sent.payload);
}

TEST_F(Loss, of_the_last_packet_is_repaired_by_a_probe_before_the_timeout) {
    const PeerId to_b = connect();
    drop_data({0});

    Sent& sent = a.send(to_b, 1, 8);
    ASSERT_TRUE(run([&] { return sent.status == 0; }));

    EXPECT_EQ(a.count(Counter::tail_probes), 1u);
    EXPECT_EQ(a.count(Counter::timeouts), 0u);
}

TEST_F(Loss, of_a_whole_flight_takes_a_timeout) {
    const PeerId to_b = connect();
    bool black_hole = true;
    simulator.filter = [&](sim::Node&, sim::Frame&) { return !black_hole; };

    Sent& sent = a.send(to_b, 1, 30'000);
    simulator.run_for(20 * kMs);
    black_hole = false;
    ASSERT_TRUE(run([&] { return sent.status == 0; }));

    EXPECT_GT(a.count(Counter::timeouts), 0u);
    EXPECT_EQ(b.received.at(1).buffer, sent.payload);
}

TEST_F(Loss, of_acknowledgements_resends_next_to_nothing) {
    const PeerId to_b = connect();
    uint32_t acks = 0;
    simulator.filter = [&](sim::Node&, sim::Frame& frame) {
        return type_of(frame) != PacketType::kAck || ++acks % 2 != 0;
    };

    for (uint64_t tag = 1; tag <= 20; ++tag) {
        a.send(to_b, tag, 100'000);
    }
    ASSERT_TRUE(run([&] { return a.sends_pending() == 0; }));

    EXPECT_LE(resent(a), 2u);  // the last acknowledgement has no later one to stand in for it
    EXPECT_LE(b.count(Counter::drop_duplicate), 2u);
}

TEST_F(Loss, duplicates_are_dropped_and_counted) {
    const PeerId to_b = connect();
    simulator.faults.duplication = 1;

    Sent& sent = a.send(to_b, 1, 20'000);
    ASSERT_TRUE(run([&] { return sent.status == 0; }));
    simulator.run_for(10 * kMs);

    EXPECT_EQ(b.received.size(), 2u);
    EXPECT_GE(b.count(Counter::drop_duplicate), 14u);
}

TEST_F(Loss, corrupted_frames_are_dropped_by_the_checksum_and_sent_again) {
    const PeerId to_b = connect();
    simulator.faults.corruption = 0.1;

    for (uint64_t tag = 1; tag <= 40; ++tag) {
        a.send(to_b, tag, 20'000);
    }
    ASSERT_TRUE(
        run([&] { return a.sends_pending() == 0 && b.received.size() == 41; }, 60 * kSecond));

    EXPECT_GT(b.count(Counter::drop_udp_checksum), 10u);
    for (uint64_t tag = 1; tag <= 40; ++tag) {
        EXPECT_EQ(b.received[tag].buffer, a.sent[tag].payload);
    }
}

TEST_F(Loss, reordering_is_soon_tolerated) {
    const PeerId to_b = connect();
    simulator.faults.reordering = 0.3;
    simulator.faults.reorder_packets = 64;

    for (uint64_t tag = 1; tag <= 20; ++tag) {
        a.send(to_b, tag, 1 << 20);
    }
    ASSERT_TRUE(run([&] { return a.sends_pending() == 0; }, 60 * kSecond));

    EXPECT_LT(a.count(Counter::retransmits), a.count(Counter::tx_data_frames) / 20);
    EXPECT_EQ(b.received.size(), 21u);
}

TEST_F(Loss, across_the_wrap_of_the_sequence_number) {
    a.stop();
    a.config.first_psn = UINT32_MAX - 100;
    a.start();
    const PeerId to_b = a.peer(b);
    simulator.faults.loss = 0.05;
    simulator.faults.reordering = 0.1;

    for (uint64_t tag = 0; tag < 10; ++tag) {
        a.send(to_b, tag, 100'000);
    }
    ASSERT_TRUE(
        run([&] { return a.sends_pending() == 0 && b.received.size() == 10; }, 60 * kSecond));

    for (uint64_t tag = 0; tag < 10; ++tag) {
        EXPECT_EQ(b.received[tag].buffer, a.sent[tag].payload);
    }
}

}  // namespace
}  // namespace transport_test
