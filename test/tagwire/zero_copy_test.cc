// SPDX-License-Identifier: BSD-3-Clause
// Large messages leave from the caller's memory, and nobody reads it once their
// send has ended.
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <cstring>
#include <deque>
#include <set>

#include "test/sim/nic.h"
#include "test/tagwire/sim_peer.h"
#include "test/transport/frames.h"

namespace tagwire::test {
namespace {

constexpr uint32_t kFrom = 4096;

// A NIC that sends at once, and looks at what it is given.
struct Observer {
    std::set<std::pair<uint32_t, uint32_t>> lent;  // connection tag and PSN of what was lent
    uint64_t resent_lent = 0;
    uint64_t frames_lent = 0;
    bool holds = false;  // sends nothing any more
    std::vector<rte_mbuf*> held;
};
Observer observer;

uint16_t observe(void* context, rte_mbuf** packets, uint16_t count) {
    for (uint16_t i = 0; i < count; ++i) {
        rte_mbuf* packet = packets[i];
        if (packet->nb_segs > 1) {
            const auto* frame = rte_pktmbuf_mtod(packet, const wire::FrameHeader*);
            ++observer.frames_lent;
            observer.resent_lent +=
                !observer.lent.insert({frame->base.connection_tag, frame->base.psn}).second;
        }
        if (observer.holds) {
            observer.held.push_back(packet);
        } else {
            static_cast<sim::Node*>(context)->tx_burst(&packet, 1);
        }
    }
    return count;
}

class ZeroCopy : public testing::Test {
  protected:
    ZeroCopy() { observer = {}; }
    ~ZeroCopy() override { free_held(); }
    static void free_held() {
        rte_pktmbuf_free_bulk(observer.held.data(), static_cast<unsigned>(observer.held.size()));
        observer.held.clear();
    }
    void TearDown() override {
        free_held();
        if (a.worker != nullptr) {
            EXPECT_EQ(a.stat("large_lent_now"), 0u) << "each loan comes back, and once";
        }
    }
    bool run(const std::function<bool()>& done, uint64_t limit = 20 * kSecond) {
        return simulator.run_until(done, limit);
    }

    sim::Simulator simulator{sim::seed() + 41};
    PeerOptions options{.peer_timeout_ms = 1000, .zero_copy_bytes = kFrom, .tx_burst = observe};
    SimPeer a{simulator.add_node(), options};
    SimPeer b{simulator.add_node(), {.peer_timeout_ms = 1000}};
};

TEST_F(ZeroCopy, messages_of_all_sizes_arrive_over_a_bad_network) {
    simulator.faults = {.loss = 0.03, .duplication = 0.02, .reordering = 0.05};
    const size_t sizes[] = {8,     kFrom - 1, kFrom,   kFrom + 1, 5000,     16'384,
                            65535, 65536,     100'001, 300'000,   2'000'000};
    std::vector<std::string> buffers;
    for (const size_t size : sizes) {
        buffers.emplace_back(size, '\0');
    }
    for (size_t i = 0; i < std::size(sizes); ++i) {
        b.receive(buffers[i], i);
        a.send(b, i, pattern(i, sizes[i]));
    }
    ASSERT_TRUE(
        run([&] { return b.ended() == std::size(sizes) && a.ended() == std::size(sizes); }));
    for (size_t i = 0; i < std::size(sizes); ++i) {
        EXPECT_TRUE(buffers[i] == pattern(i, sizes[i])) << sizes[i];
    }
    EXPECT_EQ(a.stat("large_lent"), std::size(sizes) - 2);
    EXPECT_EQ(a.stat("large_copied"), 0u);
    EXPECT_GT(observer.frames_lent, 1500u);
    EXPECT_EQ(b.stat("drop_udp_checksum"), 0u) << "of two pieces";
}

// The rule that makes a completion mean that the memory is free.
TEST_F(ZeroCopy, what_is_sent_again_is_a_copy) {
    simulator.faults = {.loss = 0.2};
    std::string buffer(1'000'000, '\0');
    b.receive(buffer, 1);
    a.send(b, 1, pattern(1, buffer.size()));
    ASSERT_TRUE(run([&] { return b.ended() == 1 && a.ended() == 1; }));
    EXPECT_GT(a.stat("retransmits"), 50u);
    EXPECT_EQ(observer.resent_lent, 0u);
    EXPECT_TRUE(buffer == pattern(1, buffer.size()));
}

TEST_F(ZeroCopy, gathered_messages_and_those_to_itself_are_copied) {
    std::string payload = pattern(1, 100'000);
    std::string buffer(payload.size(), '\0');
    const iovec halves[2] = {{payload.data(), 50'000}, {payload.data() + 50'000, 50'000}};
    b.receive(buffer, 1);
    a.posted(tw_tsendv(a.ep, halves, 2, a.address_of(b), 1, nullptr));
    ASSERT_TRUE(run([&] { return b.ended() == 1 && a.ended() == 1; }));
    EXPECT_TRUE(buffer == payload);
    std::string own(payload.size(), '\0');
    a.receive(own, 2);
    a.posted(tw_tsend(a.ep, payload.data(), payload.size(), a.address_of(a), 2, nullptr));
    ASSERT_TRUE(run([&] { return a.ended() == 3; }));
    EXPECT_TRUE(own == payload);
    EXPECT_EQ(observer.frames_lent, 0u);
}

TEST_F(ZeroCopy, a_buffer_may_change_as_soon_as_its_send_has_ended) {
    simulator.faults = {.loss = 0.05, .reordering = 0.1};
    std::vector<std::string> received;
    std::string payload;
    for (uint64_t round = 0; round < 40; ++round) {
        std::string& buffer = received.emplace_back(50'000, '\0');
        b.receive(buffer, round);
        payload = pattern(round, buffer.size());
        a.posted(tw_tsend(a.ep, payload.data(), payload.size(), a.address_of(b), round, nullptr));
        ASSERT_TRUE(run([&] { return a.sent.size() == round + 1; }));
        std::memset(payload.data(), 0xee, payload.size());
    }
    ASSERT_TRUE(run([&] { return b.received.size() == 40; }));
    for (uint64_t round = 0; round < 40; ++round) {
        EXPECT_TRUE(received[round] == pattern(round, 50'000)) << round;
    }
}

// What ends a send before its time, while half of its frames are on the way.
class Interrupted : public ZeroCopy {
  protected:
    static constexpr size_t kMessages = 4;
    static constexpr size_t kLength = 400'000;

    void SetUp() override {
        simulator.faults = {.loss = 0.02, .duplication = 0.02, .reordering = 0.05};
        for (size_t i = 0; i < kMessages; ++i) {
            buffers.emplace_back(kLength, '\0');
        }
    }
    void begin() {
        for (size_t i = 0; i < kMessages; ++i) {
            b.receive(buffers[i], i);
            a.send(b, i, pattern(i, kLength));
        }
        ASSERT_TRUE(run([&] { return observer.frames_lent > 100; }));
        ASSERT_GT(a.stat("large_lent_now"), 0u);
        ASSERT_LT(a.ended(), kMessages);
    }
    void expect_ends(int error) {
        ASSERT_TRUE(run([&] { return a.ended() == kMessages; }));
        ASSERT_FALSE(a.errors.empty());
        for (const tw_cq_error& entry : a.errors) {
            EXPECT_EQ(entry.error, error);
        }
        simulator.run_for(3 * kSecond);
        EXPECT_EQ(a.ended(), kMessages) << "each once";
        EXPECT_EQ(a.stat("large_lent_now"), 0u);
        EXPECT_EQ(a.stat("loans_overdue"), 0u);
    }
    void expect_a_message_arrives() {
        std::string buffer(kLength, '\0');
        const size_t before = b.received.size();
        b.receive(buffer, 99);
        a.send(b, 99, pattern(99, kLength));
        ASSERT_TRUE(run([&] { return b.received.size() == before + 1; }));
        EXPECT_TRUE(buffer == pattern(99, kLength));
        ASSERT_TRUE(run([&] { return a.stat("sends_outstanding") == 0; }));
    }
    std::deque<std::string> buffers;
};

TEST_F(Interrupted, by_the_death_of_the_peer) {
    begin();
    b.die();
    expect_ends(ETIMEDOUT);
}

TEST_F(Interrupted, by_its_restart) {
    begin();
    b.die();
    b.start();
    expect_ends(ECONNRESET);
    expect_a_message_arrives();
}

TEST_F(Interrupted, by_giving_the_peer_up) {
    begin();
    a.posted(tw_ep_reset_peer(a.ep, a.address_of(b)));
    expect_ends(ECANCELED);
    expect_a_message_arrives();
}

TEST_F(Interrupted, by_the_peer_giving_up) {
    begin();
    b.posted(tw_ep_reset_peer(b.ep, b.address_of(a)));
    expect_ends(ECONNRESET);
    expect_a_message_arrives();
}

TEST_F(Interrupted, by_a_receiver_that_wants_less) {
    std::string small(1000, '\0');
    b.receive(small, 1);
    a.send(b, 1, pattern(1, kLength));
    a.send(b, 2, pattern(2, kLength));
    ASSERT_TRUE(run(
        [&] { return b.ended() == 1 && a.ended() == 1 && b.stat("unexpected_messages") == 1; }));
    EXPECT_TRUE(small == pattern(1, kLength).substr(0, small.size()));
    int context = 0;
    const tw_msg_tagged message{nullptr, 0, TW_ADDR_UNSPEC, 2, 0, &context, 0};
    b.posted(tw_trecvmsg(b.ep, &message, TW_PEEK | TW_DISCARD));
    ASSERT_TRUE(run([&] { return a.ended() == 2; }));
    EXPECT_GT(observer.frames_lent, 0u);
    EXPECT_EQ(a.stat("large_lent_now"), 0u);
    expect_a_message_arrives();
}

TEST_F(Interrupted, by_closing_which_waits) {
    begin();
    ASSERT_EQ(tw_ep_close(a.ep), -EBUSY) << "the payload is on its way";
    ASSERT_TRUE(run([&] { return a.ended() == kMessages && b.ended() == kMessages; }));
    EXPECT_TRUE(a.errors.empty());
    EXPECT_EQ(a.stat("large_lent_now"), 0u);
    ASSERT_EQ(tw_ep_close(a.ep), 0) << tw_last_error();
    a.ep = nullptr;
    for (size_t i = 0; i < kMessages; ++i) {
        EXPECT_TRUE(buffers[i] == pattern(i, kLength)) << i;
    }
}

// The NIC stops sending with frames in its queue, and the send fails.
class StuckNic : public ZeroCopy {
  protected:
    void fail_a_send() {
        a.send(b, 1, "up");
        ASSERT_TRUE(run([&] { return a.sent.size() == 1; }));
        observer.holds = true;
        a.send(b, 2, pattern(2, 100'000));
        simulator.run_for(kSecond + kSecond / 2);
        EXPECT_EQ(a.stat("peers_down"), 1u) << "the peer is silent";
        EXPECT_TRUE(a.errors.empty()) << "and frames still point to the buffer";
        ASSERT_GT(observer.frames_lent, 0u);
    }
};

TEST_F(StuckNic, a_failed_send_ends_when_the_frames_are_back) {
    fail_a_send();
    free_held();
    ASSERT_TRUE(run([&] { return a.errors.size() == 1; }, kSecond / 100));
    EXPECT_EQ(a.errors[0].error, ETIMEDOUT);
    EXPECT_EQ(a.errors[0].entry.tag, 2u);
    EXPECT_EQ(a.stat("loans_overdue"), 0u);
}

TEST_F(StuckNic, but_not_later_than_the_timeout_once_more) {
    fail_a_send();
    ASSERT_TRUE(run([&] { return a.errors.size() == 1; }, kSecond));
    EXPECT_EQ(a.errors[0].error, ETIMEDOUT);
    EXPECT_EQ(a.stat("loans_overdue"), 1u);
    simulator.run_for(kSecond);
    EXPECT_EQ(a.errors.size(), 1u) << "once";
}

TEST_F(StuckNic, nor_does_the_endpoint_close_before) {
    fail_a_send();
    EXPECT_EQ(tw_ep_close(a.ep), -EBUSY);
    free_held();
    ASSERT_TRUE(run([&] { return a.errors.size() == 1; }, kSecond / 100));
    ASSERT_EQ(tw_ep_close(a.ep), 0) << tw_last_error();
    a.ep = nullptr;
}

TEST_F(StuckNic, frames_may_come_back_after_the_worker_is_closed) {
    fail_a_send();
    ASSERT_TRUE(run([&] { return a.errors.size() == 1; }, kSecond));
    a.die();
    free_held();  // as a port does that is stopped
}

TEST(ZeroCopyPort, a_queue_that_cannot_is_refused_with_a_remedy) {
    ASSERT_EQ(rte_eal_hotplug_add("vdev", "net_null0", ""), 0);
    uint16_t port = 0;
    ASSERT_EQ(rte_eth_dev_get_port_by_name("net_null0", &port), 0);
    rte_mempool* pool =
        rte_pktmbuf_pool_create("null", 255, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    const rte_eth_conf conf{};
    ASSERT_EQ(rte_eth_dev_configure(port, 1, 1, &conf), 0);
    ASSERT_EQ(rte_eth_rx_queue_setup(port, 0, 64, SOCKET_ID_ANY, nullptr, pool), 0);
    ASSERT_EQ(rte_eth_tx_queue_setup(port, 0, 64, SOCKET_ID_ANY, nullptr), 0);
    tw_worker_attr attr;
    tw_worker_attr_init(&attr);
    attr.port_id = port;
    attr.zero_copy_bytes = 1;
    attr.max_operations = 64;
    attr.max_peers = 16;
    ASSERT_EQ(tw_address_parse("10.0.0.1:4791", &attr.address), 0);
    tw_worker* worker = nullptr;
    EXPECT_EQ(tw_worker_open(&attr, &worker), -ENOTSUP);
    EXPECT_NE(std::strstr(tw_last_error(), "zero_copy_bytes 0"), nullptr) << tw_last_error();
    attr.zero_copy_bytes = 0;  // it is not done unasked
    attr.mtu = 9000;           // the port would drop what peers send then
    EXPECT_EQ(tw_worker_open(&attr, &worker), -EINVAL);
    EXPECT_NE(std::strstr(tw_last_error(), "rte_eth_dev_set_mtu"), nullptr) << tw_last_error();
    attr.mtu = 0;
    ASSERT_EQ(tw_worker_open(&attr, &worker), 0) << tw_last_error();
    EXPECT_EQ(tw_worker_close(worker), 0);
    rte_eth_dev_close(port);
    rte_mempool_free(pool);
}

}  // namespace
}  // namespace tagwire::test
