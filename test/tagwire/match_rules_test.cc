// SPDX-License-Identifier: BSD-3-Clause
// T5, T6, T7, T9, T23: which receive takes which message.
#include "test/tagwire/sim_peer.h"

namespace tagwire::test {
namespace {

class Matching : public SimPair {
  protected:
    // Three bits far apart.
    static uint64_t spread(unsigned bits) {
        return (bits & 1) | (uint64_t{bits & 2} << 30) | (uint64_t{bits & 4} << 61);
    }
};

// T5, with the receive there first, and with the message there first.
class MatchRule : public Matching, public testing::WithParamInterface<bool> {};

TEST_P(MatchRule, HoldsForEveryMask) {
    const bool unexpected = GetParam();
    std::string buffer(8, '\0');
    std::string rest(8, '\0');
    const auto check = [&](uint64_t send_tag, uint64_t tag, uint64_t ignore) {
        b.received.clear();
        b.errors.clear();
        int context = 0;
        if (!unexpected) {
            b.receive(buffer, tag, ignore, TW_ADDR_UNSPEC, &context);
        }
        const size_t sent = a.sent.size();
        a.send(b, send_tag, "x");
        ASSERT_TRUE(run([&] { return a.sent.size() == sent + 1; }));
        if (unexpected) {
            b.receive(buffer, tag, ignore, TW_ADDR_UNSPEC, &context);
        }
        simulator.run_for(20'000);
        const bool matches = (send_tag & ~ignore) == (tag & ~ignore);
        ASSERT_EQ(b.received.size(), matches ? 1u : 0u)
            << std::hex << send_tag << ' ' << tag << ' ' << ignore;
        if (!matches) {
            ASSERT_EQ(tw_cancel(b.ep, &context), 0);
            b.receive(rest, 0, UINT64_MAX);
            ASSERT_TRUE(run([&] { return b.received.size() == 1; }));
            ASSERT_TRUE(run([&] { return b.errors.size() == 1; }));
        }
    };
    for (unsigned send_tag = 0; send_tag < 8; ++send_tag) {
        for (unsigned tag = 0; tag < 8; ++tag) {
            for (unsigned mask = 0; mask < 8; ++mask) {
                check(spread(send_tag), spread(tag), spread(mask));
                check(spread(send_tag), spread(tag), ~spread(mask));
            }
        }
    }
    check(UINT64_MAX, 0, UINT64_MAX);
    check(UINT64_MAX, UINT64_MAX, 0);
    check(UINT64_MAX, UINT64_MAX - 1, 0);
}

INSTANTIATE_TEST_SUITE_P(Order, MatchRule, testing::Values(false, true), [](const auto& info) {
    return info.param ? "MessageFirst" : "ReceiveFirst";
});

// T6
TEST_F(Matching, ReceivesAreSearchedInPostingOrder) {
    std::string buffers[4];
    int contexts[4];
    const uint64_t masks[4] = {0xf0, 0, UINT64_MAX, 0x0f};
    for (int i = 0; i < 4; ++i) {
        buffers[i].resize(1);
        b.receive(buffers[i], 7, masks[i], i == 3 ? b.address_of(a) : TW_ADDR_UNSPEC, &contexts[i]);
    }
    for (int i = 0; i < 4; ++i) {
        a.send(b, 7, std::string(1, static_cast<char>('a' + i)));
        ASSERT_TRUE(run([&] { return b.received.size() == static_cast<size_t>(i) + 1; }));
    }
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(b.received[i].context, &contexts[i]);
        EXPECT_EQ(buffers[i], std::string(1, static_cast<char>('a' + i)));
    }
}

// A large message is still on its way when the small one behind it is here.
TEST_F(Matching, MessagesOfOnePeerMatchInSendingOrderWhateverTheirSize) {
    const std::string large = pattern(1, 2'000'000);
    std::string first(large.size(), '\0');
    std::string second(large.size(), '\0');
    int contexts[2];
    b.receive(first, 7, 0, TW_ADDR_UNSPEC, &contexts[0]);
    b.receive(second, 7, 0, TW_ADDR_UNSPEC, &contexts[1]);
    a.send(b, 7, large);
    a.send(b, 7, "small");
    ASSERT_TRUE(run([&] { return b.received.size() == 2; }));
    for (const tw_cq_entry& entry : b.received) {
        EXPECT_EQ(entry.length, entry.context == &contexts[0] ? large.size() : 5u);
    }
    EXPECT_TRUE(first == large);
    EXPECT_EQ(second.substr(0, 5), "small");
}

TEST_F(Matching, UnexpectedMessagesMatchInSendingOrderWhateverTheirSize) {
    const std::string large = pattern(1, 2'000'000);
    a.send(b, 7, large);
    a.send(b, 7, "small");
    settle();
    std::string first(large.size(), '\0');
    std::string second(large.size(), '\0');
    b.receive(first, 7);
    b.receive(second, 7);
    ASSERT_TRUE(run([&] { return b.received.size() == 2; }));
    EXPECT_TRUE(first == large);
    EXPECT_EQ(second.substr(0, 5), "small");
}

TEST_F(Matching, ReceiveTakesTheOldestOfSeveralUnexpectedMessages) {
    for (uint64_t tag = 0; tag < 40; ++tag) {
        a.send(b, tag, std::string(1, static_cast<char>(tag)));
    }
    settle();
    std::string buffer(1, '\0');
    for (const uint64_t expected : {32u, 0u, 33u, 1u}) {
        b.receive(buffer, expected >= 32 ? 32 : 0, expected >= 32 ? 7 : 31);
        b.wake();
        ASSERT_TRUE(run([&] { return !b.received.empty(); }));
        EXPECT_EQ(b.received.back().tag, expected);
        EXPECT_EQ(buffer[0], static_cast<char>(expected));
        b.received.clear();
    }
}

// T7
TEST_F(Matching, DirectedReceiveNeverTakesAnotherPeersMessage) {
    SimPeer c(simulator.add_node());
    std::string from_c(8, '\0');
    std::string from_any(8, '\0');
    int contexts[2];
    const tw_addr address_of_a = b.address_of(a);
    b.receive(from_c, 7, UINT64_MAX, b.address_of(c), &contexts[0]);
    a.send(b, 7, "from a");
    ASSERT_TRUE(run([&] { return !a.sent.empty(); }));
    EXPECT_TRUE(b.received.empty());
    b.receive(from_any, 7, 0, TW_ADDR_UNSPEC, &contexts[1]);
    ASSERT_TRUE(run([&] { return b.received.size() == 1; }));
    EXPECT_EQ(b.received[0].context, &contexts[1]);
    EXPECT_EQ(b.received[0].source, address_of_a);
    c.send(b, 7, "from c");
    ASSERT_TRUE(run([&] { return b.received.size() == 2; }));
    EXPECT_EQ(b.received[1].context, &contexts[0]);
    EXPECT_EQ(b.received[1].source, b.address_of(c));
    EXPECT_EQ(from_c.substr(0, 6), "from c");
}

TEST_F(Matching, DirectedReceiveSkipsOlderMessagesOfOthers) {
    SimPeer c(simulator.add_node());
    a.send(b, 7, "from a");
    ASSERT_TRUE(run([&] { return !a.sent.empty(); }));
    c.send(b, 7, "from c");
    ASSERT_TRUE(run([&] { return !c.sent.empty(); }));
    std::string buffer(8, '\0');
    b.receive(buffer, 7, 0, b.address_of(c));
    ASSERT_TRUE(run([&] { return b.received.size() == 1; }));
    EXPECT_EQ(buffer.substr(0, 6), "from c");
    b.receive(buffer, 7, 0, b.address_of(a));
    ASSERT_TRUE(run([&] { return b.received.size() == 2; }));
    EXPECT_EQ(buffer.substr(0, 6), "from a");
}

TEST_F(Matching, EndpointsOfOneWorkerAreApart) {
    tw_ep* second = nullptr;
    ASSERT_EQ(tw_ep_open(b.worker, nullptr, &second), 0);
    ASSERT_EQ(tw_ep_bind_av(second, b.av), 0);
    ASSERT_EQ(tw_ep_bind_cq(second, b.cq, TW_SEND | TW_RECV), 0);
    ASSERT_EQ(tw_ep_enable(second), 0);
    std::string first_buffer(8, '\0');
    char second_buffer[8];
    int contexts[2];
    b.receive(first_buffer, 7, 0, TW_ADDR_UNSPEC, &contexts[0]);
    ASSERT_EQ(tw_trecv(second, second_buffer, 8, TW_ADDR_UNSPEC, 7, 0, &contexts[1]), 0);
    tw_address name{};
    ASSERT_EQ(tw_ep_name(second, &name), 0);
    tw_addr index = 0;
    ASSERT_EQ(tw_av_insert(a.av, &name, &index), 0);
    ASSERT_EQ(tw_tsend(a.ep, "two", 3, index, 7, nullptr), 0);
    a.wake();
    ASSERT_TRUE(run([&] { return b.received.size() == 1; }));
    EXPECT_EQ(b.received[0].context, &contexts[1]);
    ASSERT_TRUE(run([&] { return !a.sent.empty(); }));
    EXPECT_EQ(tw_ep_close(second), 0) << tw_last_error();
}

// T9, for messages of one packet, of several, and above the eager window.
class Truncation : public SimPair, public testing::WithParamInterface<size_t> {
  protected:
    // `whole`: with TW_OPT_WHOLE_MESSAGES, and nothing is placed.
    void check(bool unexpected, bool whole = false) {
        const size_t option = whole ? 1 : 0;
        ASSERT_EQ(tw_ep_setopt(b.ep, TW_OPT_WHOLE_MESSAGES, &option, sizeof(option)), 0);
        const std::string payload = pattern(1, GetParam());
        const size_t room = payload.size() / 2;
        std::string buffer(payload.size(), 'x');
        std::string next(16, '\0');
        int context = 0;
        a.send(b, 7, payload);
        a.send(b, 7, "next");
        if (unexpected) {
            settle();
        }
        ASSERT_EQ(tw_trecv(b.ep, buffer.data(), room, TW_ADDR_UNSPEC, 7, 0, &context), 0);
        b.receive(next, 7);
        ASSERT_TRUE(run([&] { return b.ended() == 2 && a.ended() == 2; }));
        ASSERT_EQ(b.errors.size(), 1u);
        const tw_cq_error& error = b.errors[0];
        EXPECT_EQ(error.error, TW_ETRUNC);
        EXPECT_EQ(error.message_length, payload.size());
        const size_t placed = whole ? 0 : room;
        EXPECT_EQ(error.overflow, payload.size() - placed);
        EXPECT_EQ(error.entry.length, placed);
        EXPECT_EQ(error.entry.context, &context);
        EXPECT_EQ(error.entry.tag, 7u);
        EXPECT_TRUE(buffer ==
                    payload.substr(0, placed) + std::string(payload.size() - placed, 'x'));
        EXPECT_EQ(next.substr(0, 4), "next");
        EXPECT_EQ(a.sent.size(), 2u);
    }
};

TEST_P(Truncation, OfAPostedReceive) {
    check(false);
}
TEST_P(Truncation, OfAnUnexpectedMessage) {
    check(true);
}
TEST_P(Truncation, LeavesAPostedReceiveUntouchedIfItShall) {
    check(false, true);
}
TEST_P(Truncation, OfAnUnexpectedMessageLeavesTheReceiveUntouchedIfItShall) {
    check(true, true);
}
TEST_P(Truncation, OfAClaimedMessageLeavesTheReceiveUntouchedIfItShall) {
    const size_t whole = 1;
    ASSERT_EQ(tw_ep_setopt(b.ep, TW_OPT_WHOLE_MESSAGES, &whole, sizeof(whole)), 0);
    a.send(b, 7, pattern(1, GetParam()));
    settle();
    tw_context context{};
    tw_msg_tagged message{};
    message.addr = TW_ADDR_UNSPEC;
    message.tag = 7;
    message.context = &context;
    ASSERT_EQ(tw_trecvmsg(b.ep, &message, TW_PEEK | TW_CLAIM), 0);
    std::string buffer(GetParam(), 'x');
    const iovec room{buffer.data(), GetParam() / 2};
    message.iov = &room;
    message.iov_count = 1;
    b.posted(tw_trecvmsg(b.ep, &message, TW_CLAIM));
    ASSERT_TRUE(run([&] { return b.errors.size() == 1 && a.ended() == 1; }));
    EXPECT_EQ(b.errors[0].error, TW_ETRUNC);
    EXPECT_EQ(b.errors[0].message_length, GetParam());
    EXPECT_EQ(b.errors[0].entry.length, 0u);
    EXPECT_TRUE(buffer == std::string(GetParam(), 'x'));
}

INSTANTIATE_TEST_SUITE_P(Sizes, Truncation, testing::Values(1, 2, 100, 5000, 60'000, 1'000'000));

// T22, in the part that exists: refused, and accepted after progress.
TEST_F(Matching, FullQueuesAreAgainAndThenTakeMore) {
    a.read_completions = false;
    uint32_t posted = 0;
    int result = 0;
    while ((result = tw_tsend(a.ep, "x", 1, a.address_of(b), 7, nullptr)) == 0) {
        ASSERT_LT(++posted, 10'000u);
    }
    EXPECT_EQ(result, -EAGAIN);
    std::string buffer(8, '\0');
    for (uint32_t i = 0; i < posted; ++i) {
        b.receive(buffer, 7);
    }
    EXPECT_EQ(tw_trecv(b.ep, buffer.data(), 8, TW_ADDR_UNSPEC, 7, 0, nullptr), -EAGAIN);
    a.read_completions = true;
    a.wake();
    ASSERT_TRUE(run([&] { return a.sent.size() == posted && b.received.size() == posted; }));
    EXPECT_EQ(tw_tsend(a.ep, "x", 1, a.address_of(b), 7, nullptr), 0);
    EXPECT_EQ(tw_trecv(b.ep, buffer.data(), 8, TW_ADDR_UNSPEC, 7, 0, nullptr), 0);
}

// T8, in the part that exists: nobody receives, so the sender is held back and nothing is lost.
TEST_F(Matching, UnexpectedMessagesHoldTheSenderBackAndAreAllThere) {
    constexpr size_t kMessages = 4000;
    for (size_t i = 0; i < kMessages; ++i) {
        a.send(b, i, "x");
    }
    simulator.run_for(kSecond);
    EXPECT_LT(a.sent.size(), kMessages);
    EXPECT_EQ(b.stat("unexpected_messages"), b.stat("unexpected_messages_peak"));
    std::string buffer(8, '\0');
    for (size_t i = 0; i < kMessages; ++i) {
        b.receive(buffer, 0, UINT64_MAX);
    }
    ASSERT_TRUE(run([&] { return b.received.size() == kMessages && a.sent.size() == kMessages; }));
    for (size_t i = 0; i < kMessages; ++i) {
        ASSERT_EQ(b.received[i].tag, i);
    }
}

// T23
TEST_F(Matching, OperationsBeforeEnableFailAndTouchNothing) {
    tw_ep* ep = nullptr;
    ASSERT_EQ(tw_ep_open(a.worker, nullptr, &ep), 0);
    ASSERT_EQ(tw_ep_bind_av(ep, a.av), 0);
    ASSERT_EQ(tw_ep_bind_cq(ep, a.cq, TW_SEND | TW_RECV), 0);
    const tw_addr to_b = a.address_of(b);
    char byte = 0;
    EXPECT_EQ(tw_tsend(ep, &byte, 1, to_b, 7, nullptr), -TW_EOPBADSTATE);
    EXPECT_EQ(tw_trecv(ep, &byte, 1, TW_ADDR_UNSPEC, 7, 0, nullptr), -TW_EOPBADSTATE);
    settle();
    EXPECT_EQ(a.ended(), 0u);
    EXPECT_EQ(b.stat("rx_messages"), 0u);
    ASSERT_EQ(tw_ep_enable(ep), 0);
    EXPECT_EQ(tw_trecv(ep, &byte, 1, TW_ADDR_UNSPEC, 7, 0, nullptr), 0);
    EXPECT_EQ(tw_ep_close(ep), 0);
}

TEST_F(Matching, ShutdownDeliversWhatWasSentAndTellsThePeer) {
    std::string buffer(8, '\0');
    b.receive(buffer, 7);
    a.send(b, 7, "last");
    ASSERT_TRUE(run([&] {
        a.wake();
        return tw_worker_shutdown(a.worker) == 0;
    }));
    EXPECT_EQ(a.sent.size(), 1u);
    EXPECT_EQ(b.received.size(), 1u);
    EXPECT_EQ(b.stat("peers_down"), 1u);
}

}  // namespace
}  // namespace tagwire::test
