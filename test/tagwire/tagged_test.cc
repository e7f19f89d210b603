// SPDX-License-Identifier: BSD-3-Clause
// Operations, matching and completions on a transport whose events the test makes.
#include "test/tagwire/core_fixture.h"

namespace tagwire::test {
namespace {

class Tagged : public Core {
  protected:
    void SetUp() override {
        Core::SetUp();
        enable();
    }

    uint64_t stat(const std::string& name) {
        std::vector<tw_stat> stats(static_cast<size_t>(tw_worker_stats(worker_, nullptr, 0)));
        tw_worker_stats(worker_, stats.data(), static_cast<int>(stats.size()));
        for (const tw_stat& stat : stats) {
            if (name == stat.name) {
                return stat.value;
            }
        }
        ADD_FAILURE() << "no counter " << name;
        return 0;
    }

    char buffer_[16] = {};
};

TEST_F(Tagged, SendHandsItsPartsToTheTransportAndCompletes) {
    char parts[] = "abcdef";
    const iovec iov[] = {{parts, 2}, {nullptr, 0}, {parts + 2, 4}};
    ASSERT_EQ(tw_tsendv(ep_, iov, 3, peer_, 7, &context_), 0);
    const transport::SendOperation& send = *transport().sends.at(0);
    EXPECT_EQ(send.header.length, 6u);
    EXPECT_EQ(send.header.tag, 7u);
    EXPECT_EQ(send.iov_count, 2u);
    EXPECT_TRUE(no_completion());
    transport().finish_send(0, 0);
    EXPECT_EQ(tw_progress(worker_), 1);
    const tw_cq_entry entry = completion();
    EXPECT_EQ(entry.context, &context_);
    EXPECT_EQ(entry.flags, TW_SEND | TW_TAGGED);
}

TEST_F(Tagged, FailedSendCompletesWithItsReason) {
    ASSERT_EQ(tw_tsend(ep_, buffer_, 1, peer_, 7, &context_), 0);
    transport().finish_send(0, -ECONNRESET);
    tw_progress(worker_);
    const tw_cq_error error = error_completion();
    EXPECT_EQ(error.error, ECONNRESET);
    EXPECT_EQ(error.entry.context, &context_);
    EXPECT_NE(std::string(error.text).find("restarted"), std::string::npos);
}

TEST_F(Tagged, ZeroBytesNeedNoBuffer) {
    EXPECT_EQ(tw_tsend(ep_, nullptr, 0, peer_, 1, nullptr), 0);
    EXPECT_EQ(tw_tsendv(ep_, nullptr, 0, peer_, 1, nullptr), 0);
    EXPECT_EQ(tw_trecv(ep_, nullptr, 0, peer_, 1, 0, nullptr), 0);
    EXPECT_EQ(tw_trecvv(ep_, nullptr, 0, peer_, 1, 0, nullptr), 0);
    for (size_t i = 0; i < transport().sends.size(); ++i) {
        EXPECT_EQ(transport().sends[i]->header.length, 0u);
        transport().finish_send(i, 0);
    }
    tw_progress(worker_);
}

TEST_F(Tagged, PostedReceiveTakesItsMessage) {
    ASSERT_EQ(tw_trecv(ep_, buffer_, sizeof(buffer_), TW_ADDR_UNSPEC, 0x70, 0x0f, &context_), 0);
    arrive(0x75, "hello");
    const tw_cq_entry entry = completion();
    EXPECT_EQ(entry.context, &context_);
    EXPECT_EQ(entry.flags, TW_RECV | TW_TAGGED);
    EXPECT_EQ(entry.length, 5u);
    EXPECT_EQ(entry.buffer, buffer_);
    EXPECT_EQ(entry.tag, 0x75u);
    EXPECT_EQ(entry.source, peer_);
    EXPECT_STREQ(buffer_, "hello");
    EXPECT_EQ(stat("matched_posted"), 1u);
}

TEST_F(Tagged, UnexpectedMessageWaitsForItsReceive) {
    arrive(7, "early");
    EXPECT_TRUE(no_completion());
    EXPECT_EQ(stat("unexpected_messages"), 1u);
    ASSERT_EQ(tw_trecv(ep_, buffer_, sizeof(buffer_), TW_ADDR_UNSPEC, 7, 0, &context_), 0);
    EXPECT_EQ(completion().length, 5u);
    EXPECT_STREQ(buffer_, "early");
    EXPECT_EQ(stat("unexpected_messages"), 0u);
    EXPECT_EQ(stat("unexpected_messages_peak"), 1u);
}

TEST_F(Tagged, MessagesUnderWayCompleteWhenTheyEnd) {
    auto& first = arrive(7, "slow", false);
    ASSERT_EQ(tw_trecv(ep_, buffer_, 8, TW_ADDR_UNSPEC, 7, 0, &context_), 0);
    auto& second = arrive(8, "slower", false);
    ASSERT_EQ(tw_trecv(ep_, buffer_ + 8, 8, TW_ADDR_UNSPEC, 8, 0, &context_), 0);
    EXPECT_TRUE(no_completion());
    transport().finish(second, 0);
    tw_progress(worker_);
    EXPECT_EQ(completion().tag, 8u);
    EXPECT_TRUE(no_completion());
    transport().finish(first, 0);
    tw_progress(worker_);
    EXPECT_EQ(completion().tag, 7u);
    EXPECT_STREQ(buffer_, "slow");
}

TEST_F(Tagged, DirectedReceiveTakesItsPeersMessageOnly) {
    ASSERT_EQ(tw_trecv(ep_, buffer_, sizeof(buffer_), peer_, 7, 0, &context_), 0);
    arrive(7, "foreign", true, "10.0.0.9:4791");
    EXPECT_TRUE(no_completion());
    arrive(7, "ours");
    EXPECT_EQ(completion().source, peer_);
    EXPECT_STREQ(buffer_, "ours");
}

TEST_F(Tagged, SourceIsNotAvailableUntilTheAddressIsInserted) {
    char other[16];
    arrive(1, "a", true, "10.0.0.9:4791");
    arrive(2, "b", true, "10.0.0.9:4791");
    ASSERT_EQ(tw_trecv(ep_, other, sizeof(other), TW_ADDR_UNSPEC, 1, 0, nullptr), 0);
    EXPECT_EQ(completion().source, TW_ADDR_NOTAVAIL);
    const tw_address stranger = address("10.0.0.9:4791");
    tw_addr index = 0;
    ASSERT_EQ(tw_av_insert(av_, &stranger, &index), 0);
    ASSERT_EQ(tw_trecv(ep_, other, sizeof(other), TW_ADDR_UNSPEC, 2, 0, nullptr), 0);
    EXPECT_EQ(completion().source, index);
}

TEST_F(Tagged, DirectedReceivePostedBeforeTheInsertionOfAStrangersMessageMatches) {
    arrive(1, "a", true, "10.0.0.9:4791");
    const tw_address stranger = address("10.0.0.9:4791");
    tw_addr index = 0;
    ASSERT_EQ(tw_av_insert(av_, &stranger, &index), 0);
    ASSERT_EQ(tw_trecv(ep_, buffer_, sizeof(buffer_), index, 1, 0, nullptr), 0);
    EXPECT_EQ(completion().source, index);
}

TEST_F(Tagged, TruncatedMessageSaysItsLengthAndTheNextIsUnharmed) {
    ASSERT_EQ(tw_trecv(ep_, buffer_, 4, TW_ADDR_UNSPEC, 7, 0, &context_), 0);
    ASSERT_EQ(tw_trecv(ep_, buffer_ + 8, 8, TW_ADDR_UNSPEC, 7, 0, nullptr), 0);
    arrive(7, "too long");
    arrive(7, "next");
    const tw_cq_error error = error_completion();
    EXPECT_EQ(error.error, TW_ETRUNC);
    EXPECT_EQ(error.entry.length, 4u);
    EXPECT_EQ(error.overflow, 4u);
    EXPECT_EQ(error.message_length, 8u);
    EXPECT_EQ(error.entry.context, &context_);
    EXPECT_EQ(std::string(buffer_, 5), std::string("too \0", 5));
    EXPECT_EQ(completion().length, 4u);
    EXPECT_STREQ(buffer_ + 8, "next");
}

TEST_F(Tagged, LostUnexpectedMessageIsForgotten) {
    auto& message = arrive(7, "half", false);
    transport().lose(message);
    tw_progress(worker_);
    EXPECT_EQ(stat("messages_lost"), 1u);
    EXPECT_EQ(stat("unexpected_messages"), 0u);
    ASSERT_EQ(tw_trecv(ep_, buffer_, sizeof(buffer_), TW_ADDR_UNSPEC, 7, 0, &context_), 0);
    EXPECT_TRUE(no_completion());
}

TEST_F(Tagged, ReceiveThatMeetsALostMessageEndsOnceWithTheError) {
    auto& message = arrive(7, "half", false);
    transport().lose(message);  // the event is not read yet
    ASSERT_EQ(tw_trecv(ep_, buffer_, sizeof(buffer_), TW_ADDR_UNSPEC, 7, 0, &context_), 0);
    tw_progress(worker_);
    EXPECT_EQ(error_completion().error, ECONNRESET);
    EXPECT_TRUE(no_completion());
    EXPECT_EQ(stat("messages_lost"), 0u);
}

TEST_F(Tagged, ReceiveUnderWayFailsWithItsPeer) {
    ASSERT_EQ(tw_trecv(ep_, buffer_, sizeof(buffer_), TW_ADDR_UNSPEC, 7, 0, &context_), 0);
    auto& message = arrive(7, "half", false);
    transport().finish(message, -ETIMEDOUT);
    tw_progress(worker_);
    const tw_cq_error error = error_completion();
    EXPECT_EQ(error.error, ETIMEDOUT);
    EXPECT_EQ(error.entry.length, 0u);
}

TEST_F(Tagged, ConnectionMessageWithoutSenseIsRefusedAndCounted) {
    auto& message = transport().arrive(to_transport(address(kRemote)), 7, "x");
    message.header.kind = transport::MessageKind::kConnection;
    tw_progress(worker_);
    EXPECT_EQ(transport().discarded.size(), 1u);
    EXPECT_EQ(stat("connection_messages_malformed"), 1u);
}

TEST_F(Tagged, FullSendQueueIsAgainWithoutEffect) {
    transport().send_result = -EAGAIN;
    EXPECT_EQ(tw_tsend(ep_, buffer_, 1, peer_, 1, nullptr), -EAGAIN);
    EXPECT_EQ(stat("sends_outstanding"), 0u);
    transport().send_result = 0;
    ASSERT_EQ(tw_tsend(ep_, buffer_, 1, peer_, 1, nullptr), 0);
    transport().finish_send(0, 0);
    tw_progress(worker_);
    completion();
    EXPECT_TRUE(no_completion());
}

TEST_F(Tagged, OperationsBeyondThePoolAreAgainUntilOneEnds) {
    for (int i = 0; i < 16; ++i) {
        ASSERT_EQ(tw_trecv(ep_, nullptr, 0, TW_ADDR_UNSPEC, 1, 0, nullptr), 0);
    }
    EXPECT_EQ(tw_trecv(ep_, nullptr, 0, TW_ADDR_UNSPEC, 1, 0, nullptr), -EAGAIN);
    arrive(1, "");
    EXPECT_EQ(tw_trecv(ep_, nullptr, 0, TW_ADDR_UNSPEC, 1, 0, nullptr), 0);
}

TEST_F(Tagged, CancelledReceiveMatchesNothingAndEndsOnce) {
    ASSERT_EQ(tw_trecv(ep_, buffer_, sizeof(buffer_), TW_ADDR_UNSPEC, 7, 0, &context_), 0);
    EXPECT_EQ(tw_cancel(ep_, &context_), 0);
    EXPECT_EQ(tw_cancel(ep_, &context_), -ENOENT);
    arrive(7, "late");
    const tw_cq_error error = error_completion();
    EXPECT_EQ(error.error, ECANCELED);
    EXPECT_EQ(error.entry.context, &context_);
    EXPECT_TRUE(no_completion());
}

TEST_F(Tagged, CancelTakesTheOldestWithTheContext) {
    char later[16], other[16];
    ASSERT_EQ(tw_trecv(ep_, other, sizeof(other), TW_ADDR_UNSPEC, 6, 0, other), 0);
    ASSERT_EQ(tw_trecv(ep_, buffer_, sizeof(buffer_), TW_ADDR_UNSPEC, 7, 0, &context_), 0);
    ASSERT_EQ(tw_trecv(ep_, later, sizeof(later), TW_ADDR_UNSPEC, 7, 0, &context_), 0);
    ASSERT_EQ(tw_cancel(ep_, &context_), 0);
    EXPECT_EQ(error_completion().entry.buffer, buffer_);
    arrive(7, "x");
    EXPECT_EQ(completion().buffer, later);
    arrive(6, "x");
    EXPECT_EQ(completion().context, other);
}

TEST_F(Tagged, MatchedReceiveCannotBeCancelled) {
    ASSERT_EQ(tw_trecv(ep_, buffer_, sizeof(buffer_), TW_ADDR_UNSPEC, 7, 0, &context_), 0);
    auto& message = arrive(7, "x", false);
    EXPECT_EQ(tw_cancel(ep_, &context_), -ENOENT);
    transport().finish(message, 0);
    tw_progress(worker_);
    EXPECT_EQ(completion().length, 1u);
}

class SmallQueue : public Core {
  protected:
    void SetUp() override {
        Core::SetUp();
        ASSERT_EQ(tw_cq_close(cq_), 0);
        const tw_cq_attr attr{sizeof(tw_cq_attr), 2};
        ASSERT_EQ(tw_cq_open(worker_, &attr, &cq_), 0);
        enable();
    }
};

TEST_F(SmallQueue, PostingIsRefusedWhileTheQueueCouldOverrun) {
    ASSERT_EQ(tw_trecv(ep_, nullptr, 0, TW_ADDR_UNSPEC, 1, 0, nullptr), 0);
    ASSERT_EQ(tw_tsend(ep_, nullptr, 0, peer_, 1, nullptr), 0);
    EXPECT_EQ(tw_trecv(ep_, nullptr, 0, TW_ADDR_UNSPEC, 1, 0, nullptr), -EAGAIN);
    EXPECT_EQ(tw_tsend(ep_, nullptr, 0, peer_, 1, nullptr), -EAGAIN);
    transport().finish_send(0, 0);
    arrive(1, "");
    EXPECT_EQ(tw_tsend(ep_, nullptr, 0, peer_, 1, nullptr), -EAGAIN);
    tw_cq_entry entries[4];
    EXPECT_EQ(tw_cq_read(cq_, entries, 4), 2);
    EXPECT_EQ(tw_trecv(ep_, nullptr, 0, TW_ADDR_UNSPEC, 1, 0, nullptr), 0);
}

TEST_F(SmallQueue, ErrorStandsInItsPlace) {
    ASSERT_EQ(tw_trecv(ep_, nullptr, 0, TW_ADDR_UNSPEC, 1, 0, nullptr), 0);
    ASSERT_EQ(tw_trecv(ep_, nullptr, 0, TW_ADDR_UNSPEC, 2, 0, nullptr), 0);
    arrive(1, "");
    arrive(2, "x");
    tw_cq_entry entries[4];
    tw_cq_error error{};
    EXPECT_EQ(tw_cq_readerr(cq_, &error), -EAGAIN);
    EXPECT_EQ(tw_cq_read(cq_, entries, 4), 1);
    EXPECT_EQ(tw_cq_read(cq_, entries, 4), -TW_EAVAIL);
    EXPECT_EQ(tw_cq_readerr(cq_, &error), 1);
    EXPECT_EQ(tw_cq_read(cq_, entries, 4), -EAGAIN);
    EXPECT_EQ(tw_cq_read(cq_, nullptr, 0), 0);
}

}  // namespace
}  // namespace tagwire::test
