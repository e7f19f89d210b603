// SPDX-License-Identifier: BSD-3-Clause
// The largest message: nearly 4 GiB. Its memory is one MiB mapped over and over, on both
// sides, so the test needs next to none.
#include <cstdlib>
#include <cstring>

#include "test/sim/repeated.h"
#include "test/transport/host.h"

namespace transport_test {
namespace {

using sim::Repeated;

constexpr size_t kPattern = Repeated::kPeriod;

TEST(Huge, longest_message_arrives) {
    if (std::getenv("TAGWIRE_TEST_SLOW") == nullptr) {
        GTEST_SKIP() << "slow: ./run test --slow, or TAGWIRE_TEST_SLOW=1";
    }
    sim::Simulator simulator(9);
    simulator.faults.bits_per_second = 100'000'000'000;
    simulator.faults.loss = 0.0001;
    Repeated from(kMaxMessageSize);
    Repeated to(kMaxMessageSize);
    const std::vector<uint8_t> pattern = Host::pattern(1, kPattern);
    std::memcpy(from.base(), pattern.data(), kPattern);
    Host a(simulator.add_node());
    Host b(simulator.add_node());
    b.accept_at_once = false;
    Sent& sent = a.sent.emplace_back();
    sent.operation.header = {1, 0, kMaxMessageSize};
    sent.operation.iov[0] = {from.base(), kMaxMessageSize};
    sent.operation.iov_count = 1;
    sent.operation.user = &sent;
    ASSERT_EQ(a.transport->send(a.peer(b), sent.operation), 0);
    a.node().wake();
    ASSERT_TRUE(simulator.run_until([&] { return !b.received.empty(); }, kSecond));
    Received& received = b.received[0];
    received.operation.iov[0] = {to.base(), kMaxMessageSize};
    received.operation.iov_count = 1;
    received.operation.capacity = kMaxMessageSize;
    received.operation.user = &received;
    ASSERT_EQ(b.transport->accept(*received.message, received.operation), 0);
    b.node().wake();

    ASSERT_TRUE(simulator.run_until([&] { return sent.ended != 0 && received.ended != 0; },
                                    1000 * kSecond));

    EXPECT_EQ(sent.status, 0);
    EXPECT_EQ(received.status, 0);
    EXPECT_EQ(std::memcmp(to.base(), pattern.data(), kPattern), 0);
}

}  // namespace
}  // namespace transport_test
