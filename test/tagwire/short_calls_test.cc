// SPDX-License-Identifier: BSD-3-Clause
// Messages as most are: one buffer, no flag, no counter bound, requests that were used before.
// These take short ways of their own, a frame's messages at once.
#include <algorithm>
#include <array>

#include "test/tagwire/sim_peer.h"
#include "test/transport/frames.h"

namespace tagwire::test {
namespace {

class ShortCalls : public testing::Test {
  protected:
    static constexpr size_t kGroup = 16;
    static constexpr PeerOptions kPlain{.cq_entries = 64, .counters = false};

    void SetUp() override {
        exchange(a, b, 100);
        exchange(b, a, 100);
        forget();
    }
    bool run(const std::function<bool()>& done) { return simulator.run_until(done, 10 * kSecond); }
    void settle() { simulator.run_for(kSecond / 100); }
    void forget() {
        for (SimPeer* peer : {&a, &b, &c}) {
            peer->received.clear();
            peer->sent.clear();
        }
    }

    // A group of messages with tags from `first` on; the context of each is its buffer.
    void exchange(SimPeer& from, SimPeer& to, uint64_t first) {
        for (size_t i = 0; i < kGroup; ++i) {
            std::string& buffer = buffers.emplace_back(8, '.');
            to.receive(buffer, first + i, 0, to.address_of(from), &buffer);
            ASSERT_NO_FATAL_FAILURE(from.send(to, first + i, pattern(first + i, 8), &from));
        }
        const size_t received = to.received.size(), sent = from.sent.size();
        ASSERT_TRUE(run([&] {
            return to.received.size() == received + kGroup && from.sent.size() == sent + kGroup;
        })) << to.received.size()
            << " received, " << from.sent.size() << " sent";
    }

    sim::Simulator simulator{sim::seed() + 9};
    SimPeer a{simulator.add_node(), kPlain};
    SimPeer b{simulator.add_node(), kPlain};
    SimPeer c{simulator.add_node(), kPlain};
    std::deque<std::string> buffers;
};

TEST_F(ShortCalls, give_their_places_in_a_small_queue_back) {
    for (uint64_t first = 1000; first < 1000 + 100 * kGroup; first += kGroup) {
        forget();
        ASSERT_NO_FATAL_FAILURE(exchange(a, b, first));
        for (size_t i = 0; i < kGroup; ++i) {
            const tw_cq_entry& entry = b.received[i];
            ASSERT_EQ(entry.tag, first + i);
            ASSERT_EQ(entry.length, 8u);
            ASSERT_EQ(entry.flags, TW_RECV | TW_TAGGED);
            ASSERT_EQ(entry.source, b.address_of(a));
            const auto& buffer = *static_cast<std::string*>(entry.context);
            ASSERT_EQ(entry.buffer, buffer.data());
            ASSERT_EQ(buffer, pattern(first + i, 8));
            ASSERT_EQ(a.sent[i].tag, first + i);
            ASSERT_EQ(a.sent[i].context, &a);
            ASSERT_EQ(a.sent[i].flags, TW_SEND | TW_TAGGED);
        }
    }
    EXPECT_EQ(a.stat("sends_outstanding"), 0u);
    EXPECT_EQ(b.stat("receives_outstanding"), 0u);
}

TEST_F(ShortCalls, directed_receives_take_messages_of_their_peer_only) {
    exchange(c, b, 1);  // c is known from now on
    forget();
    std::string from_c(8, '.'), from_any(8, '.');
    b.receive(from_c, 7, 0, b.address_of(c));
    a.send(b, 7, pattern(1, 8));
    settle();
    EXPECT_TRUE(b.received.empty());
    c.send(b, 7, pattern(2, 8));
    ASSERT_TRUE(run([&] { return b.received.size() == 1; }));
    EXPECT_EQ(b.received[0].source, b.address_of(c));
    EXPECT_EQ(from_c, pattern(2, 8));
    b.receive(from_any, 7);
    ASSERT_TRUE(run([&] { return b.received.size() == 2; }));
    EXPECT_EQ(from_any, pattern(1, 8));
}

TEST_F(ShortCalls, messages_that_differ_in_the_midst_of_a_group_do_not_disturb_the_others) {
    // In turn: fits, too long for its buffer, has no receive yet, carries data.
    for (uint64_t tag = 0; tag < kGroup; ++tag) {
        if (tag % 4 != 2) {
            std::string& buffer = buffers.emplace_back(8, '.');
            b.receive(buffer, tag, 0, TW_ADDR_UNSPEC, &buffer);
        }
        const std::string payload = pattern(tag, tag % 4 == 1 ? 12 : 8);
        if (tag % 4 == 3) {
            a.posted(tw_tinjectdata(a.ep, payload.data(), 8, tag, a.address_of(b), tag));
        } else {
            a.send(b, tag, payload);
        }
    }
    settle();
    EXPECT_EQ(a.sent.size(), 3 * kGroup / 4);
    ASSERT_EQ(b.errors.size(), kGroup / 4);
    for (size_t i = 0; i < kGroup / 4; ++i) {
        EXPECT_EQ(b.errors[i].error, TW_ETRUNC);
        EXPECT_EQ(b.errors[i].entry.tag, 4 * i + 1);
        EXPECT_EQ(b.errors[i].overflow, 4u);
    }
    ASSERT_EQ(b.received.size(), kGroup / 2);
    for (size_t i = 0; i < kGroup / 2; ++i) {
        const uint64_t tag = 4 * (i / 2) + (i % 2 == 0 ? 0 : 3);
        EXPECT_EQ(b.received[i].tag, tag);
        EXPECT_EQ(b.received[i].data, tag % 4 == 3 ? tag : 0);
        EXPECT_EQ(*static_cast<std::string*>(b.received[i].context), pattern(tag, 8));
    }
    b.received.clear();
    for (uint64_t tag = 2; tag < kGroup; tag += 4) {
        std::string& buffer = buffers.emplace_back(8, '.');
        b.receive(buffer, tag);
        settle();
        EXPECT_EQ(buffer, pattern(tag, 8));
    }
    EXPECT_EQ(b.received.size(), kGroup / 4);
    EXPECT_EQ(b.stat("unexpected_messages"), 0u);
}

TEST_F(ShortCalls, with_selective_completion_are_silent) {
    const PeerOptions kSelective{.cq_flags = TW_SELECTIVE_COMPLETION, .counters = false};
    SimPeer d(simulator.add_node(), kSelective);
    for (uint64_t tag = 1; tag <= 10; ++tag) {
        std::string& buffer = buffers.emplace_back(8, '.');
        d.receive(buffer, tag);
        a.send(d, tag, pattern(tag, 8));
        d.send(b, tag, pattern(tag, 8));
        settle();
        EXPECT_EQ(buffer, pattern(tag, 8));
        EXPECT_EQ(d.ended(), 0u) << "a silent operation completed";
        EXPECT_EQ(d.stat("receives_outstanding") + d.stat("sends_outstanding"), 0u);
    }
}

TEST_F(ShortCalls, end_once_each_when_the_peer_restarts) {
    b.die();
    for (uint64_t tag = 0; tag < kGroup; ++tag) {
        a.send(b, tag, pattern(tag, 8));
    }
    b.start();
    ASSERT_TRUE(run([&] { return a.errors.size() == kGroup; }));
    for (uint64_t tag = 0; tag < kGroup; ++tag) {
        EXPECT_EQ(a.errors[tag].error, ECONNRESET);
        EXPECT_EQ(a.errors[tag].entry.tag, tag);
    }
    EXPECT_TRUE(a.sent.empty());
    a.errors.clear();
    exchange(a, b, 100);
}

// More than a short list holds: contexts are indexed from then on.
TEST_F(ShortCalls, one_of_many_receives_is_cancelled) {
    constexpr size_t kReceives = 200;
    SimPeer d(simulator.add_node(), {.counters = false});
    std::string bytes(kReceives, '.');
    for (char& byte : bytes) {
        ASSERT_EQ(tw_trecv(d.ep, &byte, 1, TW_ADDR_UNSPEC, 7, 0, &byte), 0);
    }
    for (const size_t cancelled : {kReceives / 2, size_t{0}, kReceives - 1}) {
        ASSERT_EQ(tw_cancel(d.ep, &bytes[cancelled]), 0);
        EXPECT_EQ(tw_cancel(d.ep, &bytes[cancelled]), -ENOENT);
    }
    a.send(d, 7, "x");
    settle();
    ASSERT_EQ(d.errors.size(), 3u);
    EXPECT_EQ(d.errors[0].entry.context, &bytes[kReceives / 2]);
    EXPECT_EQ(d.errors[0].error, ECANCELED);
    ASSERT_EQ(d.received.size(), 1u);
    EXPECT_EQ(d.received[0].context, &bytes[1]) << "the oldest that is left";
    EXPECT_EQ(tw_cancel(d.ep, &bytes[1]), -ENOENT) << "it has matched";
}

// TW_INJECT in a call with flags, and tw_tinject: the buffer is the program's again at once.
TEST_F(ShortCalls, copies_leave_the_buffer_free) {
    const size_t sizes[] = {1, 7, 8, 9, 200, TW_INJECT_SIZE};
    uint64_t tag = 0;
    for (const size_t size : sizes) {
        std::string& buffer = buffers.emplace_back(size, '.');
        b.receive(buffer, ++tag, 0, TW_ADDR_UNSPEC, &buffer);
        std::string payload = pattern(tag, size);
        const iovec piece{payload.data(), size};
        const tw_msg_tagged message{.iov = &piece,
                                    .iov_count = 1,
                                    .addr = a.address_of(b),
                                    .tag = tag,
                                    .ignore = 0,
                                    .context = &buffer,
                                    .data = 0};
        a.posted(tw_tsendmsg(a.ep, &message, TW_INJECT | TW_COMPLETION));
        std::fill(payload.begin(), payload.end(), '#');

        std::string& silent = buffers.emplace_back(size, '.');
        b.receive(silent, ++tag, 0, TW_ADDR_UNSPEC, &silent);
        payload = pattern(tag, size);
        a.posted(tw_tinject(a.ep, payload.data(), size, a.address_of(b), tag));
        std::fill(payload.begin(), payload.end(), '#');
    }
    settle();
    ASSERT_EQ(b.received.size(), tag);
    for (const tw_cq_entry& entry : b.received) {
        const auto& buffer = *static_cast<std::string*>(entry.context);
        EXPECT_EQ(buffer, pattern(entry.tag, buffer.size()));
        EXPECT_EQ(entry.length, buffer.size());
    }
    ASSERT_EQ(a.sent.size(), std::size(sizes)) << "those of tw_tinject are silent";
    for (size_t i = 0; i < std::size(sizes); ++i) {
        EXPECT_EQ(a.sent[i].tag, 2 * i + 1);
        EXPECT_EQ(a.sent[i].context, b.received[2 * i].context);
        EXPECT_EQ(a.sent[i].flags, TW_SEND | TW_TAGGED);
    }
    EXPECT_EQ(a.stat("sends_outstanding"), 0u);

    std::string large(TW_INJECT_SIZE + 1, '.');
    EXPECT_EQ(tw_tinject(a.ep, large.data(), large.size(), a.address_of(b), 1), -EINVAL);
    EXPECT_EQ(a.stat("sends_outstanding"), 0u);
}

// When the receives are used up, the rest of a frame waits a turn for those that follow.
class RestOfAFrame : public ShortCalls {
  protected:
    static constexpr size_t kPosted = 4;

    void SetUp() override {
        ShortCalls::SetUp();
        matched_before = b.stat("matched_unexpected");
    }
    void post(size_t count) {
        for (; count > 0; --count) {
            std::string& buffer = buffers.emplace_back(8, '.');
            b.receive(buffer, 7, 0, TW_ADDR_UNSPEC, &buffer);
        }
    }
    // In one frame.
    void send_group() {
        for (size_t i = 0; i < kGroup; ++i) {
            a.send(b, 7, pattern(i, 8));
        }
    }
    uint64_t matched_unexpected() { return b.stat("matched_unexpected") - matched_before; }
    void expect_all_in_order() {
        ASSERT_EQ(b.received.size(), kGroup);
        for (size_t i = 0; i < kGroup; ++i) {
            EXPECT_EQ(*static_cast<std::string*>(b.received[i].context), pattern(i, 8)) << i;
        }
        EXPECT_EQ(b.stat("unexpected_messages"), 0u);
        EXPECT_EQ(a.sent.size(), kGroup);
    }

    uint64_t matched_before = 0;
};

TEST_F(RestOfAFrame, meets_the_receives_that_follow) {
    b.each_turn = [&, posted = kPosted]() mutable {
        if (b.received.size() == posted && posted < kGroup) {
            post(kPosted);
            posted += kPosted;
        }
    };
    post(kPosted);
    send_group();
    settle();
    expect_all_in_order();
    EXPECT_EQ(matched_unexpected(), 0u);
}

TEST_F(RestOfAFrame, becomes_unexpected_when_none_follows) {
    post(kPosted);
    send_group();
    settle();
    EXPECT_EQ(b.received.size(), kPosted);
    EXPECT_EQ(b.stat("unexpected_messages"), kGroup - kPosted);
    post(kGroup - kPosted);
    settle();
    expect_all_in_order();
    EXPECT_EQ(matched_unexpected(), kGroup - kPosted);
}

// What is posted meanwhile leaves, and what another peer sent comes behind.
TEST_F(RestOfAFrame, holds_up_no_answer) {
    size_t answered = 0;
    b.each_turn = [&] {
        for (; answered < b.received.size(); ++answered) {
            b.send(a, 100 + answered, pattern(answered, 8));
            if (answered + 1 < kGroup) {
                post(1);
            }
        }
    };
    for (size_t i = 0; i < kGroup; ++i) {
        a.receive(buffers.emplace_back(8, '.'), 100 + i);
    }
    post(1);
    send_group();
    ASSERT_TRUE(run([&] { return a.received.size() == kGroup; }));
    expect_all_in_order();
    EXPECT_EQ(matched_unexpected(), 0u);
}

TEST_F(RestOfAFrame, is_given_back_when_the_worker_closes) {
    post(kPosted);
    send_group();
    ASSERT_TRUE(run([&] { return b.received.size() == kPosted; }));
    EXPECT_EQ(b.stat("unexpected_messages"), 0u) << "the rest is in its frame";
    b.die();  // the simulator looks for frames that are left
}

TEST_F(RestOfAFrame, is_seen_by_whoever_sleeps) {
    post(kPosted);
    send_group();
    ASSERT_TRUE(run([&] { return b.received.size() == kPosted; }));
    EXPECT_LE(tw_worker_deadline(b.worker), simulator.now());
}

// A program that finds a message, looks once more, and answers then (an MPI library does so).
TEST_F(ShortCalls, an_answer_after_one_more_look_carries_the_acknowledgement) {
    constexpr size_t kRounds = 20;
    size_t bare = 0;
    simulator.filter = [&](sim::Node&, sim::Frame& frame) {
        bare += transport_test::type_of(frame) == wire::PacketType::kAck;
        return true;
    };
    size_t rounds = 0;
    const auto answer = [&](SimPeer& from, SimPeer& to) {
        from.each_turn = [&, turns = 0]() mutable {
            if (from.received.empty()) {
                return;
            }
            if (++turns == 2) {
                turns = 0;
                from.received.clear();
                if (++rounds < kRounds) {
                    from.receive(buffers.emplace_back(8, '.'), 7);
                    from.send(to, 7, pattern(rounds, 8));
                }
            }
        };
    };
    answer(a, b);
    answer(b, a);
    a.receive(buffers.emplace_back(8, '.'), 7);
    b.receive(buffers.emplace_back(8, '.'), 7);
    a.send(b, 7, pattern(0, 8));
    ASSERT_TRUE(run([&] { return rounds == kRounds; }));
    EXPECT_EQ(bare, 0u);
    settle();
    EXPECT_EQ(a.sent.size() + b.sent.size(), kRounds);
    EXPECT_EQ(bare, 1u) << "the last message has no answer";
}

}  // namespace
}  // namespace tagwire::test
