// SPDX-License-Identifier: BSD-3-Clause
// What the flags of sends promise: rows T3, T4 and T11 to T15, from outside.
#include <deque>

#include "test/tagwire/sim_peer.h"

namespace tagwire::test {
namespace {

class SendFlags : public SimPair {
  protected:
    int send_message(SimPeer& from, const SimPeer& to, uint64_t tag, const std::string& payload,
                     uint64_t flags, void* context = nullptr, uint64_t data = 0) {
        const iovec iov{const_cast<char*>(payload.data()), payload.size()};
        const tw_msg_tagged message{&iov, 1, from.address_of(to), tag, 0, context, data};
        const int result = tw_tsendmsg(from.ep, &message, flags);
        from.wake();
        return result;
    }
    // A payload that stays until it was sent.
    int send_message(SimPeer& from, const SimPeer& to, uint64_t tag, const char* text,
                     uint64_t flags, void* context = nullptr, uint64_t data = 0) {
        return send_message(from, to, tag, kept.emplace_back(text), flags, context, data);
    }
    uint64_t frames() const { return a.stat("tx_data_frames"); }

    std::deque<std::string> kept;

    std::string buffer = std::string(400'000, '\0');
    const std::string large = pattern(5, 300'000);
    int context = 0;
};

TEST_F(SendFlags, inject_frees_the_buffer_at_once_and_completes_nothing) {
    std::string payload = pattern(1, TW_INJECT_SIZE);
    const std::string sent = payload;
    ASSERT_EQ(tw_tinject(a.ep, payload.data(), payload.size(), a.address_of(b), 1), 0);
    ASSERT_EQ(tw_tinject(a.ep, nullptr, 0, a.address_of(b), 2), 0);
    payload.assign(payload.size(), 'x');
    b.receive(buffer, 0, ~0ull);
    a.wake();

    ASSERT_TRUE(run([&] { return b.received.size() == 1; }));
    settle();

    EXPECT_EQ(buffer.substr(0, sent.size()), sent);
    EXPECT_TRUE(a.sent.empty());
    EXPECT_EQ(a.sends(), 2u) << "counters count what has no completion";
}

TEST_F(SendFlags, inject_has_a_limit) {
    const std::string payload(TW_INJECT_SIZE + 1, 'x');
    EXPECT_EQ(tw_tinject(a.ep, payload.data(), payload.size(), a.address_of(b), 1), -EINVAL);
    EXPECT_EQ(tw_tinjectdata(a.ep, payload.data(), payload.size(), 1, a.address_of(b), 1), -EINVAL);
    EXPECT_EQ(send_message(a, b, 1, payload, TW_INJECT), -EINVAL);
    EXPECT_EQ(a.stat("sends_outstanding"), 0u);
}

TEST_F(SendFlags, inject_that_fails_completes_with_its_error) {
    tw_address nobody = b.name();
    nobody.endpoint = 9;
    tw_addr index = 0;
    ASSERT_EQ(tw_av_insert(a.av, &nobody, &index), 0);
    a.posted(tw_tinject(a.ep, "x", 1, index, 1));
    ASSERT_TRUE(run([&] { return a.errors.size() == 1; }));
    EXPECT_EQ(a.errors[0].error, ECONNREFUSED);
    EXPECT_EQ(tw_cntr_readerr(a.send_counter), 1u);
}

TEST_F(SendFlags, inject_flag_copies_and_completes) {
    std::string payload = "hello";
    ASSERT_EQ(send_message(a, b, 1, payload, TW_INJECT, &context), 0);
    payload.assign(5, 'x');
    b.receive(buffer, 1);
    ASSERT_TRUE(run([&] { return a.sent.size() == 1 && b.received.size() == 1; }));
    EXPECT_EQ(buffer.substr(0, 5), "hello");
    EXPECT_EQ(a.sent[0].context, &context);
}

TEST_F(SendFlags, inject_complete_does_not_wait_for_the_network) {
    a.send(b, 1, "establish");
    settle();
    a.sent.clear();
    simulator.filter = [](sim::Node&, sim::Frame&) { return false; };
    ASSERT_EQ(send_message(a, b, 2, "at once", TW_INJECT | TW_INJECT_COMPLETE), 0);
    ASSERT_EQ(send_message(a, b, 3, "later", TW_INJECT | TW_TRANSMIT_COMPLETE), 0);
    settle();
    ASSERT_EQ(a.sent.size(), 1u);
    EXPECT_EQ(a.sent[0].tag, 2u);
    simulator.filter = nullptr;
    ASSERT_TRUE(run([&] { return a.sent.size() == 2; }));
    settle();
    EXPECT_EQ(a.sent.size(), 2u) << "one completed twice";
}

TEST_F(SendFlags, data_arrives_with_its_flag) {
    b.receive(buffer, 0, ~0ull);
    a.posted(tw_tsenddata(a.ep, "x", 1, 0x0123456789abcdef, a.address_of(b), 1, nullptr));
    a.posted(tw_tinjectdata(a.ep, "y", 1, 7, a.address_of(b), 2));
    ASSERT_EQ(send_message(a, b, 3, large, TW_REMOTE_CQ_DATA, nullptr, 8), 0);
    ASSERT_EQ(send_message(a, b, 4, "z", 0, nullptr, 9), 0);
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(run([&] { return b.received.size() == static_cast<size_t>(i) + 1; }));
        b.receive(buffer, 0, ~0ull);
    }
    ASSERT_TRUE(run([&] { return b.received.size() == 4; }));
    const uint64_t data[] = {0x0123456789abcdef, 7, 8};
    for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(b.received[i].data, data[i]);
        EXPECT_NE(b.received[i].flags & TW_REMOTE_CQ_DATA, 0u);
    }
    EXPECT_EQ(b.received[3].flags, TW_RECV | TW_TAGGED);
    EXPECT_EQ(b.received[3].data, 0u);
}

TEST_F(SendFlags, levels_complete_no_earlier_than_they_promise) {
    b.send(a, 99, "establish");  // so that the session is there
    settle();
    ASSERT_EQ(send_message(a, b, 0, large, TW_TRANSMIT_COMPLETE), 0);
    settle();
    EXPECT_TRUE(a.sent.empty()) << "its end waits for a receive";
    ASSERT_EQ(send_message(a, b, 1, "x", TW_INJECT | TW_INJECT_COMPLETE), 0);
    tw_cq_entry entry;
    ASSERT_EQ(tw_cq_read(a.cq, &entry, 1), 1) << "complete when the call returns";
    EXPECT_EQ(entry.tag, 1u);
    ASSERT_EQ(send_message(a, b, 2, "x", TW_TRANSMIT_COMPLETE), 0);
    ASSERT_EQ(send_message(a, b, 3, "x", TW_DELIVERY_COMPLETE), 0);
    ASSERT_EQ(send_message(a, b, 4, "x", TW_MATCH_COMPLETE), 0);
    ASSERT_EQ(send_message(a, b, 5, large, TW_DELIVERY_COMPLETE), 0);
    settle();
    // fi_cq(3): a message that the provider buffers is delivered.
    ASSERT_EQ(a.sent.size(), 2u);
    EXPECT_EQ(a.sent[0].tag, 2u);
    EXPECT_EQ(a.sent[1].tag, 3u);

    b.receive(buffer, 4);
    ASSERT_TRUE(run([&] { return a.sent.size() == 3; }));
    EXPECT_EQ(a.sent[2].tag, 4u);
    settle();
    ASSERT_EQ(a.sent.size(), 3u);
    b.receive(buffer, 5);
    ASSERT_TRUE(run([&] { return a.sent.size() == 4; }));
    EXPECT_EQ(a.sent[3].tag, 5u);
    EXPECT_EQ(b.received.back().tag, 5u);
}

TEST_F(SendFlags, a_level_from_the_endpoint_holds_for_calls_without_flags) {
    SimPeer c(simulator.add_node(), {.tx_flags = TW_MATCH_COMPLETE});
    c.send(b, 1, "x");
    ASSERT_EQ(send_message(c, b, 2, "x", TW_TRANSMIT_COMPLETE), 0);
    settle();
    ASSERT_EQ(c.sent.size(), 1u);
    EXPECT_EQ(c.sent[0].tag, 2u);
    b.receive(buffer, 1);
    ASSERT_TRUE(run([&] { return c.sent.size() == 2; }));
}

TEST_F(SendFlags, with_selective_completion_only_those_that_ask_complete) {
    SimPeer c(simulator.add_node(), {.cq_flags = TW_SELECTIVE_COMPLETION});
    c.send(b, 1, "x");
    ASSERT_EQ(send_message(c, b, 2, "x", 0), 0);
    ASSERT_EQ(send_message(c, b, 3, "x", TW_COMPLETION), 0);
    b.receive(buffer, 0, ~0ull);
    settle();
    ASSERT_EQ(c.sent.size(), 1u);
    EXPECT_EQ(c.sent[0].tag, 3u);
    EXPECT_EQ(c.sends(), 3u);
    EXPECT_EQ(c.stat("sends_outstanding"), 0u);
}

TEST_F(SendFlags, with_selective_completion_receives_are_silent_and_errors_are_not) {
    SimPeer c(simulator.add_node(), {.cq_flags = TW_SELECTIVE_COMPLETION});
    std::string small(2, '\0');
    c.receive(buffer, 1);
    c.receive(small, 2);
    const iovec iov{buffer.data(), buffer.size()};
    const tw_msg_tagged message{&iov, 1, TW_ADDR_UNSPEC, 3, 0, &context, 0};
    ASSERT_EQ(tw_trecvmsg(c.ep, &message, TW_COMPLETION), 0);
    a.send(c, 1, "one");
    a.send(c, 2, "three");
    a.send(c, 3, "four");
    settle();
    ASSERT_EQ(c.received.size(), 1u);
    EXPECT_EQ(c.received[0].tag, 3u);
    ASSERT_EQ(c.errors.size(), 1u);
    EXPECT_EQ(c.errors[0].error, TW_ETRUNC);
    EXPECT_EQ(tw_cntr_read(c.receive_counter), 2u);
    EXPECT_EQ(tw_cntr_readerr(c.receive_counter), 1u);
}

TEST_F(SendFlags, a_default_of_completion_holds_with_selective_completion) {
    SimPeer c(simulator.add_node(),
              {.tx_flags = TW_COMPLETION, .cq_flags = TW_SELECTIVE_COMPLETION});
    c.send(b, 1, "x");
    ASSERT_EQ(send_message(c, b, 2, "x", 0), 0);
    settle();
    ASSERT_EQ(c.sent.size(), 1u);
    EXPECT_EQ(c.sent[0].tag, 1u);
}

TEST_F(SendFlags, operations_with_more_leave_together) {
    a.send(b, 0, "establish");
    settle();
    const uint64_t before = frames();
    for (uint64_t tag = 1; tag <= 20; ++tag) {
        ASSERT_EQ(send_message(a, b, tag, "12345678", TW_MORE), 0);  // and no last one
    }
    settle();
    EXPECT_EQ(a.sent.size(), 21u);
    EXPECT_LE(frames() - before, 2u);
}

TEST_F(SendFlags, nothing_leaves_before_progress) {
    a.send(b, 0, "establish");
    settle();
    const uint64_t before = frames();
    const char payload[] = "12345678";
    ASSERT_EQ(tw_tsend(a.ep, payload, 8, a.address_of(b), 1, nullptr), 0);
    EXPECT_EQ(frames(), before);
    ASSERT_GE(tw_progress(a.worker), 0);
    EXPECT_EQ(frames(), before + 1);
}

TEST_F(SendFlags, a_fence_waits_for_earlier_ones_to_the_same_peer_only) {
    SimPeer c(simulator.add_node());
    ASSERT_EQ(send_message(a, b, 1, "x", TW_MATCH_COMPLETE), 0);
    ASSERT_EQ(send_message(a, b, 2, "x", TW_FENCE), 0);
    ASSERT_EQ(send_message(a, b, 3, "x", 0), 0);
    ASSERT_EQ(send_message(a, c, 4, "x", TW_FENCE), 0);
    settle();
    EXPECT_EQ(b.stat("unexpected_messages"), 1u);
    EXPECT_EQ(c.stat("unexpected_messages"), 1u);
    ASSERT_EQ(a.sent.size(), 1u);
    EXPECT_EQ(a.sent[0].tag, 4u);
    b.receive(buffer, 1);
    ASSERT_TRUE(run([&] { return a.sent.size() == 4; }));
    EXPECT_EQ(a.sent[1].tag, 1u);
    EXPECT_EQ(a.sent[2].tag, 2u);
    EXPECT_EQ(a.sent[3].tag, 3u);
    EXPECT_EQ(b.stat("unexpected_messages"), 2u);
}

TEST_F(SendFlags, that_are_unknown_or_contradict_are_refused) {
    for (const uint64_t flags : {TW_PEEK, TW_MULTI_RECV, TW_AUTH_KEY, 1ull << 63, TW_SEND,
                                 TW_DELIVERY_COMPLETE | TW_MATCH_COMPLETE}) {
        EXPECT_EQ(send_message(a, b, 1, "x", flags), -EINVAL) << std::hex << flags;
    }
    EXPECT_EQ(a.stat("sends_outstanding"), 0u);
}

TEST_F(SendFlags, a_counter_can_be_waited_for_and_set) {
    EXPECT_EQ(tw_cntr_set(a.send_counter, 5), 0);
    EXPECT_EQ(tw_cntr_add(a.send_counter, 2), 0);
    EXPECT_EQ(tw_cntr_wait(a.send_counter, 7, 0), 0);
    EXPECT_EQ(tw_cntr_wait(a.send_counter, 8, 0), -ETIMEDOUT);
    EXPECT_EQ(tw_cntr_seterr(a.send_counter, 3), 0);
    EXPECT_EQ(tw_cntr_adderr(a.send_counter, 1), 0);
    EXPECT_EQ(tw_cntr_readerr(a.send_counter), 4u);
    EXPECT_EQ(tw_cntr_close(a.send_counter), -EBUSY);
}

}  // namespace
}  // namespace tagwire::test
