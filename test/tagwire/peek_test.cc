// SPDX-License-Identifier: BSD-3-Clause
// Peek, claim and discard: rows T17 to T19, from outside.
#include "test/tagwire/sim_peer.h"

namespace tagwire::test {
namespace {

class Peek : public SimPair {
  protected:
    int receive_message(uint64_t tag, uint64_t flags, void* context,
                        tw_addr source = TW_ADDR_UNSPEC, uint64_t ignore = 0) {
        const iovec iov{buffer.data(), buffer.size()};
        const tw_msg_tagged message{&iov, 1, source, tag, ignore, context, 0};
        const int result = tw_trecvmsg(b.ep, &message, flags);
        b.wake();
        return result;
    }
    void arrive(uint64_t tag, const std::string& payload) {
        a.send(b, tag, payload);
        settle();
    }
    tw_cq_entry next() {
        EXPECT_TRUE(run([&] { return !b.received.empty(); }));
        const tw_cq_entry entry = b.received.front();
        b.received.erase(b.received.begin());
        return entry;
    }
    int next_error() {
        EXPECT_TRUE(run([&] { return !b.errors.empty(); }));
        const int error = b.errors.front().error;
        b.errors.erase(b.errors.begin());
        return error;
    }

    std::string buffer = std::string(400'000, '.');
    tw_context context{};
    tw_context other{};
};

TEST_F(Peek, tells_of_a_message_and_leaves_it) {
    a.posted(tw_tsenddata(a.ep, "hello", 5, 77, a.address_of(b), 9, nullptr));
    settle();
    for (int i = 0; i < 2; ++i) {
        ASSERT_EQ(receive_message(8, TW_PEEK, &context, TW_ADDR_UNSPEC, 1), 0);
        const tw_cq_entry entry = next();
        EXPECT_EQ(entry.context, &context);
        EXPECT_EQ(entry.flags, TW_RECV | TW_TAGGED | TW_REMOTE_CQ_DATA);
        EXPECT_EQ(entry.length, 5u);
        EXPECT_EQ(entry.tag, 9u);
        EXPECT_EQ(entry.data, 77u);
        EXPECT_EQ(entry.source, TW_ADDR_NOTAVAIL);
        EXPECT_EQ(buffer[0], '.');
    }
    const tw_addr from_a = b.address_of(a);
    ASSERT_EQ(receive_message(9, TW_PEEK, &context, from_a), 0);
    EXPECT_EQ(next().source, from_a);
    b.receive(buffer, 9);
    EXPECT_EQ(next().length, 5u);
}

TEST_F(Peek, that_finds_nothing_is_enomsg_and_does_not_stay) {
    ASSERT_EQ(receive_message(9, TW_PEEK, &context), 0);
    EXPECT_EQ(next_error(), ENOMSG);
    arrive(9, "x");
    EXPECT_EQ(b.stat("unexpected_messages"), 1u);
    EXPECT_TRUE(b.received.empty());
}

TEST_F(Peek, completes_with_selective_completion_too) {
    SimPeer c(simulator.add_node(), {.cq_flags = TW_SELECTIVE_COMPLETION});
    a.send(c, 1, "x");
    settle();
    const tw_msg_tagged message{nullptr, 0, TW_ADDR_UNSPEC, 1, 0, nullptr, 0};
    ASSERT_EQ(tw_trecvmsg(c.ep, &message, TW_PEEK), 0);
    c.wake();
    settle();
    EXPECT_EQ(c.received.size(), 1u);
}

TEST_F(Peek, with_claim_takes_the_message_from_everybody_else) {
    const std::string large = pattern(1, 300'000);
    for (const std::string& payload : {std::string("small"), large}) {
        arrive(1, payload);
        ASSERT_EQ(receive_message(1, TW_PEEK | TW_CLAIM, &context), 0);
        EXPECT_EQ(next().length, payload.size());
        ASSERT_EQ(receive_message(1, TW_PEEK, nullptr), 0);
        EXPECT_EQ(next_error(), ENOMSG);
        EXPECT_EQ(receive_message(1, TW_CLAIM, &other), -EINVAL);
        EXPECT_EQ(receive_message(1, TW_CLAIM, nullptr), -EINVAL);
        tw_context copy = context;
        EXPECT_EQ(receive_message(1, TW_CLAIM, &copy), -EINVAL) << "not the same context";

        ASSERT_EQ(receive_message(0, TW_CLAIM, &context), 0);

        const tw_cq_entry entry = next();
        EXPECT_EQ(entry.context, &context);
        EXPECT_EQ(entry.tag, 1u);
        EXPECT_EQ(entry.length, payload.size());
        EXPECT_EQ(buffer.substr(0, payload.size()), payload);
        EXPECT_EQ(receive_message(1, TW_CLAIM, &context), -EINVAL) << "it was claimed once";
        ASSERT_TRUE(run([&] { return a.stat("sends_outstanding") == 0; }));
    }
}

TEST_F(Peek, with_discard_drops_the_message) {
    const std::string large = pattern(1, 300'000);
    for (const std::string& payload : {std::string("small"), large}) {
        arrive(1, payload);
        arrive(1, "next");
        ASSERT_EQ(receive_message(1, TW_PEEK | TW_DISCARD, &context), 0);
        EXPECT_EQ(next().length, payload.size());
        b.receive(buffer, 1);
        EXPECT_EQ(next().length, 4u);
        ASSERT_TRUE(run([&] { return a.stat("sends_outstanding") == 0; })) << "the sender is free";
    }
    EXPECT_EQ(b.stat("messages_discarded"), 2u);
}

TEST_F(Peek, claimed_message_can_be_discarded) {
    arrive(1, pattern(1, 300'000));
    ASSERT_EQ(receive_message(1, TW_PEEK | TW_CLAIM, &context), 0);
    next();
    const tw_msg_tagged message{nullptr, 3, TW_ADDR_UNSPEC, 1, 0, &context, 0};
    ASSERT_EQ(tw_trecvmsg(b.ep, &message, TW_CLAIM | TW_DISCARD), 0) << "buffers are ignored";
    b.wake();
    EXPECT_EQ(next().length, 0u);
    ASSERT_TRUE(run([&] { return a.stat("sends_outstanding") == 0; }));
    EXPECT_EQ(b.stat("unexpected_messages"), 0u);
}

TEST_F(Peek, discarded_message_completes_match_complete) {
    const iovec iov{buffer.data(), 3};
    const tw_msg_tagged message{&iov, 1, a.address_of(b), 1, 0, nullptr, 0};
    a.posted(tw_tsendmsg(a.ep, &message, TW_MATCH_COMPLETE));
    settle();
    EXPECT_TRUE(a.sent.empty());
    ASSERT_EQ(receive_message(1, TW_PEEK | TW_DISCARD, nullptr), 0);
    ASSERT_TRUE(run([&] { return a.sent.size() == 1; }));
}

TEST_F(Peek, claimed_message_of_a_sender_that_died_ends_with_an_error) {
    arrive(1, pattern(1, 300'000));
    ASSERT_EQ(receive_message(1, TW_PEEK | TW_CLAIM, &context), 0);
    next();
    a.die();
    a.start();
    a.send(b, 2, "again");
    ASSERT_TRUE(run([&] { return b.stat("messages_lost") == 1; }));
    ASSERT_EQ(receive_message(1, TW_CLAIM, &context), 0);
    EXPECT_EQ(next_error(), ECONNRESET);
    EXPECT_EQ(receive_message(1, TW_CLAIM, &context), -EINVAL);
}

TEST_F(Peek, claimed_message_that_nobody_takes_goes_with_the_endpoint) {
    arrive(1, pattern(1, 300'000));
    ASSERT_EQ(receive_message(1, TW_PEEK | TW_CLAIM, &context), 0);
    next();
    ASSERT_TRUE(run([&] {
        b.wake();
        return tw_ep_close(b.ep) == 0;
    }));
    EXPECT_EQ(b.stat("unexpected_messages"), 0u);
    b.ep = nullptr;
}

TEST_F(Peek, claim_checks_a_context_of_any_content) {
    arrive(1, "x");
    for (const uintptr_t value : {uintptr_t{1}, uintptr_t{12345678}, ~uintptr_t{0}}) {
        context.internal[0] = reinterpret_cast<void*>(value);
        EXPECT_EQ(receive_message(1, TW_CLAIM, &context), -EINVAL);
    }
}

TEST_F(Peek, flags_that_contradict_are_refused) {
    for (const uint64_t flags : {TW_DISCARD, TW_PEEK | TW_MULTI_RECV, TW_CLAIM | TW_MULTI_RECV,
                                 TW_PEEK | TW_CLAIM | TW_DISCARD, TW_INJECT, 1ull << 63}) {
        EXPECT_EQ(receive_message(1, flags, &context), -EINVAL) << std::hex << flags;
    }
    EXPECT_EQ(b.stat("receives_outstanding"), 0u);
}

}  // namespace
}  // namespace tagwire::test
