// SPDX-License-Identifier: BSD-3-Clause
// Messages without faults: boundaries, order, sizes, sharing of frames.
#include <algorithm>

#include "test/transport/host.h"

namespace transport_test {
namespace {

class Messages : public testing::Test {
  protected:
    bool run(const std::function<bool()>& done, uint64_t limit = kSecond) {
        return simulator.run_until(done, limit);
    }

    sim::Simulator simulator{1};
    Host a{simulator.add_node()};
    Host b{simulator.add_node()};
};

TEST_F(Messages, arrive_with_tag_and_content) {
    const PeerId to_b = a.peer(b);
    Sent& sent = a.send(to_b, 0x1234, 8);

    ASSERT_TRUE(run([&] { return sent.status != kPending; }));

    EXPECT_EQ(sent.status, 0);
    ASSERT_EQ(b.received.size(), 1u);
    EXPECT_EQ(b.received[0].header.tag, 0x1234u);
    EXPECT_EQ(b.received[0].buffer, sent.payload);
}

TEST_F(Messages, of_every_size_keep_boundaries_and_order) {
    const PeerId to_b = a.peer(b);
    std::vector<uint32_t> sizes = {0,    1,    7,    8,    9,    63,    64,    65,    1000,
                                   1427, 1428, 1429, 1500, 2900, 65535, 65536, 65537, 300000};
    for (uint32_t i = 0; i < sizes.size(); ++i) {
        a.send(to_b, i, sizes[i]);
    }

    ASSERT_TRUE(run([&] { return a.sends_pending() == 0; }));

    ASSERT_EQ(b.received.size(), sizes.size());
    for (uint32_t i = 0; i < sizes.size(); ++i) {
        EXPECT_EQ(b.received[i].header.tag, i);
        EXPECT_EQ(b.received[i].status, 0);
        EXPECT_EQ(b.received[i].buffer, a.sent[i].payload) << sizes[i] << " bytes";
    }
}

TEST_F(Messages, posted_together_share_frames) {
    const PeerId to_b = a.peer(b);
    a.send(to_b, 0, 8);
    ASSERT_TRUE(run([&] { return a.sends_pending() == 0; }));
    const uint64_t frames = a.count(Counter::tx_data_frames);

    for (uint64_t tag = 1; tag <= 160; ++tag) {
        a.send(to_b, tag, 8);
    }
    ASSERT_TRUE(run([&] { return a.sends_pending() == 0; }));

    EXPECT_LE(a.count(Counter::tx_data_frames) - frames, 3u);
    EXPECT_EQ(b.received.size(), 161u);
}

TEST_F(Messages, carry_remote_data_and_may_be_untagged) {
    const PeerId to_b = a.peer(b);
    for (const uint32_t length : {4u, 5000u}) {
        Sent& entry = a.sent.emplace_back();
        entry.payload = Host::pattern(1, length);
        entry.operation.header.length = length;
        entry.operation.header.data = 0xfedcba9876543210;
        entry.operation.header.kind = MessageKind::kUntagged;
        entry.operation.header.flags = kHasData;
        entry.operation.iov[0] = {entry.payload.data(), length};
        entry.operation.iov_count = 1;
        entry.operation.user = &entry;
        ASSERT_EQ(a.transport->send(to_b, entry.operation), 0);
    }
    a.node().wake();

    ASSERT_TRUE(run([&] { return a.sends_pending() == 0; }));

    for (const Received& received : b.received) {
        EXPECT_EQ(received.header.kind, MessageKind::kUntagged);
        EXPECT_EQ(received.header.flags, uint8_t{kHasData});
        EXPECT_EQ(received.header.data, 0xfedcba9876543210u);
    }
}

TEST_F(Messages, a_large_one_does_not_hold_up_a_small_one_behind_it) {
    b.accept_at_once = false;
    const PeerId to_b = a.peer(b);
    Sent& large = a.send(to_b, 1, 1 << 20);
    Sent& small = a.send(to_b, 2, 8);

    ASSERT_TRUE(run([&] { return small.status != kPending; }));

    EXPECT_EQ(large.status, kPending);
    ASSERT_EQ(b.received.size(), 2u);
    EXPECT_EQ(b.received[0].header.length, uint64_t{1} << 20);
    b.accept(b.received[1]);
    b.accept(b.received[0]);
    ASSERT_TRUE(run([&] { return large.status != kPending; }));
    EXPECT_EQ(b.received[0].buffer, large.payload);
}

TEST_F(Messages, beyond_the_eager_window_wait_for_accept) {
    b.accept_at_once = false;
    Sent& large = a.send(a.peer(b), 1, 1 << 20);

    EXPECT_FALSE(run([&] { return large.status != kPending; }, 50 * kMs));

    EXPECT_LE(a.count(Counter::tx_data_frames), 64u * 1024 / 1400 + 2);
    EXPECT_EQ(a.count(Counter::retransmits), 0u);
    b.accept(b.received.at(0));
    ASSERT_TRUE(run([&] { return b.received[0].ended != 0 && large.ended != 0; }));
    EXPECT_EQ(b.received[0].buffer, large.payload);
}

TEST_F(Messages, that_are_discarded_are_done_for_the_sender_without_their_payload) {
    b.accept_at_once = false;
    Sent& large = a.send(a.peer(b), 1, 1 << 20);
    ASSERT_TRUE(run([&] { return !b.received.empty(); }));

    b.discard(b.received[0]);

    ASSERT_TRUE(run([&] { return large.status != kPending; }));
    EXPECT_EQ(large.status, 0);
    EXPECT_LE(a.count(Counter::tx_data_frames), 64u * 1024 / 1400 + 3);
}

TEST_F(Messages, longer_than_the_buffer_fill_it_and_the_next_is_unharmed) {
    b.accept_at_once = false;
    const PeerId to_b = a.peer(b);
    Sent& large = a.send(to_b, 1, 200'000);
    Sent& next = a.send(to_b, 2, 100'000);
    ASSERT_TRUE(run([&] { return b.received.size() == 2; }));

    b.accept(b.received[0], 70'001);
    b.accept(b.received[1]);

    ASSERT_TRUE(
        run([&] { return large.ended != 0 && next.ended != 0 && b.received[1].ended != 0; }));
    EXPECT_EQ(b.received[0].status, 0);
    EXPECT_TRUE(std::equal(b.received[0].buffer.begin(), b.received[0].buffer.end(),
                           large.payload.begin()));
    EXPECT_EQ(b.received[1].buffer, next.payload);
}

TEST_F(Messages, flow_both_ways_with_few_pure_acknowledgements) {
    const PeerId to_b = a.peer(b);
    const PeerId to_a = b.peer(a);
    a.send(to_b, 0, 8);
    ASSERT_TRUE(run([&] { return b.received.size() == 1; }));
    for (uint32_t round = 0; round < 100; ++round) {
        b.send(to_a, round, 8);
        ASSERT_TRUE(run([&] { return a.received.size() == round + 1; }));
        a.send(to_b, round, 8);
        ASSERT_TRUE(run([&] { return b.received.size() == round + 2; }));
    }

    EXPECT_LE(a.count(Counter::tx_acks) + b.count(Counter::tx_acks), 10u);
    EXPECT_EQ(a.count(Counter::retransmits) + b.count(Counter::retransmits), 0u);
    EXPECT_EQ(a.count(Counter::tail_probes) + b.count(Counter::tail_probes), 0u);
}

TEST_F(Messages, go_on_with_an_event_span_of_one) {
    a.event_space = 1;
    b.event_space = 1;
    const PeerId to_b = a.peer(b);
    for (uint64_t tag = 0; tag < 500; ++tag) {
        a.send(to_b, tag, 8 + tag % 100);
    }

    ASSERT_TRUE(run([&] { return a.sends_pending() == 0 && b.received.size() == 500; }));

    for (uint64_t tag = 0; tag < 500; ++tag) {
        EXPECT_EQ(b.received[tag].header.tag, tag);
        EXPECT_EQ(b.received[tag].buffer, a.sent[tag].payload);
    }
}

}  // namespace
}  // namespace transport_test
