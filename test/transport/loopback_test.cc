// SPDX-License-Identifier: BSD-3-Clause
// Messages between endpoints of one worker, and from an endpoint to itself.
#include "test/transport/host.h"

namespace transport_test {
namespace {

class Loopback : public testing::TestWithParam<uint16_t> {  // the destination endpoint
  protected:
    Loopback() { EXPECT_EQ(a.transport->open_endpoint(1, kNoKey), 0); }
    bool run(const std::function<bool()>& done, uint64_t limit = kSecond) {
        return simulator.run_until(done, limit);
    }
    PeerId destination() { return a.peer(a, 0, GetParam()); }

    sim::Simulator simulator{9};
    Host a{simulator.add_node()};
};

TEST_P(Loopback, delivers_each_size_in_order_and_sends_no_frame) {
    const uint32_t sizes[] = {0, 8, 1000, 5000, 300'000};
    for (uint64_t tag = 0; tag < 5; ++tag) {
        a.send(destination(), tag, sizes[tag], tag == 1 ? uint8_t{kWantsMatchNote} : uint8_t{0});
    }

    ASSERT_TRUE(run([&] { return a.sends_pending() == 0 && a.received.size() == 5; }));

    for (uint64_t tag = 0; tag < 5; ++tag) {
        EXPECT_EQ(a.sent[tag].status, 0);
        EXPECT_EQ(a.received[tag].header.tag, tag);
        EXPECT_EQ(a.received[tag].buffer, a.sent[tag].payload);
        EXPECT_EQ(a.received[tag].peer, a.peer(a, GetParam(), 0));
    }
    EXPECT_EQ(a.count(Counter::tx_frames), 1u) << "but the gratuitous ARP request";
    a.expect_exact_counters();
}

TEST_P(Loopback, closes_in_order) {
    Sent& sent = a.send(destination(), 1, 8);
    ASSERT_TRUE(run([&] { return sent.status == 0; }));
    ASSERT_TRUE(run([&] {
        a.node().wake();
        return a.transport->quiesce();
    }));
    EXPECT_EQ(a.peer_events(EventType::kPeerUp), a.peer_events(EventType::kPeerDown));
}

INSTANTIATE_TEST_SUITE_P(ToOtherAndToItself, Loopback, testing::Values(uint16_t{1}, uint16_t{0}));

}  // namespace
}  // namespace transport_test
