// SPDX-License-Identifier: BSD-3-Clause
// Messages inside one worker, from outside.
#include "lib/tagwire/endpoint.h"
#include "test/tagwire/sim_peer.h"

namespace tagwire::test {
namespace {

class OwnWorker : public testing::Test {
  protected:
    bool run(const std::function<bool()>& done) { return simulator.run_until(done, 10 * kSecond); }
    sim::Simulator simulator{sim::seed() + 4};
    SimPeer a{simulator.add_node()};
    std::string buffer = std::string(400'000, '.');
};

TEST_F(OwnWorker, endpoint_sends_to_itself) {
    const tw_addr self = a.address_of(a);
    a.receive(buffer, 1, 0, self);
    for (const size_t size : {size_t{0}, size_t{8}, size_t{300'000}}) {
        a.received.clear();
        a.sent.clear();
        a.send(a, 1, pattern(1, size));
        ASSERT_TRUE(run([&] { return a.received.size() == 1 && a.sent.size() == 1; }));
        EXPECT_EQ(a.received[0].source, self);
        EXPECT_EQ(buffer.substr(0, size), pattern(1, size));
        a.receive(buffer, 1);
    }
}

TEST_F(OwnWorker, endpoints_exchange_messages) {
    tw_ep* other = nullptr;
    ASSERT_EQ(tw_ep_open(a.worker, nullptr, &other), 0);
    ASSERT_EQ(tw_ep_bind_av(other, a.av), 0);
    ASSERT_EQ(tw_ep_bind_cq(other, a.cq, TW_SEND | TW_RECV), 0);
    ASSERT_EQ(tw_ep_enable(other), 0);
    tw_address name;
    ASSERT_EQ(tw_ep_name(other, &name), 0);
    tw_addr to_other = 0;
    ASSERT_EQ(tw_av_insert(a.av, &name, &to_other), 0);
    a.posted(tw_tsend(a.ep, "there", 5, to_other, 1, nullptr));
    a.posted(tw_trecv(other, buffer.data(), 100, a.address_of(a), 1, 0, nullptr));
    ASSERT_TRUE(run([&] { return a.received.size() == 1; }));
    EXPECT_EQ(buffer.substr(0, 5), "there");
    EXPECT_EQ(a.received[0].source, a.address_of(a));
    ASSERT_TRUE(run([&] {
        a.wake();
        return tw_ep_close(other) == 0;
    }));
}

}  // namespace
}  // namespace tagwire::test
