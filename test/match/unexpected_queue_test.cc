// SPDX-License-Identifier: BSD-3-Clause
#include "lib/match/unexpected_queue.h"

#include <gtest/gtest.h>

#include "test/match/queues.h"

namespace tagwire::match::test {
namespace {

// Longer than the list that is scanned, so that the hashes answer.
constexpr uint32_t kLong = UnexpectedQueue::kShortList + 4;

class Unexpected : public testing::Test {
  protected:
    void fill(uint64_t tag, uint32_t source) {
        for (uint32_t i = 0; i < kLong; ++i) {
            queue_.append(32 + i, tag, source);
        }
    }

    Owned<UnexpectedQueue> queue_{QueueConfig{64, 0, 1}};
};

TEST_F(Unexpected, EmptyQueueFindsNothing) {
    EXPECT_EQ(queue_.take(0, UINT64_MAX, kAnySource), kNone);
    EXPECT_EQ(queue_.oldest(), kNone);
}

TEST_F(Unexpected, OldestMatchWins) {
    fill(1, 0);
    queue_.append(3, 7, 0);
    queue_.append(1, 7, 0);
    EXPECT_EQ(queue_.take(7, 0, kAnySource), 3u);
    EXPECT_EQ(queue_.take(7, 0, kAnySource), 1u);
    EXPECT_EQ(queue_.take(7, 0, kAnySource), kNone);
    EXPECT_EQ(queue_.size(), kLong);
}

TEST_F(Unexpected, DirectedSearchSeesOnePeersMessages) {
    fill(7, 2);
    queue_.append(0, 7, 5);
    EXPECT_EQ(queue_.take(7, 0, 5), 0u);
    EXPECT_EQ(queue_.take(7, 0, 5), kNone);
    EXPECT_EQ(queue_.take(7, 0, 2), 32u);
}

TEST_F(Unexpected, NewClassSeesMessagesThatAreThereAlready) {
    fill(0x100, 0);
    queue_.append(0, 0x2ff, 0);
    EXPECT_EQ(queue_.take(0x300, 0, kAnySource), kNone);
    EXPECT_EQ(queue_.find(0x200, 0xff, kAnySource), 0u);
    EXPECT_EQ(queue_.take(0x200, 0xff, 0), 0u);
}

TEST_F(Unexpected, MessagesAfterAFailedSearchAreFound) {
    fill(1, 0);
    ASSERT_EQ(queue_.find(7, 0, kAnySource), kNone);
    queue_.append(0, 7, 0);
    EXPECT_EQ(queue_.find(7, 0, kAnySource), 0u);
}

TEST_F(Unexpected, CursorSurvivesTheRemovalOfItsMessage) {
    fill(1, 0);
    ASSERT_EQ(queue_.find(7, 0, kAnySource), kNone);
    queue_.remove(32 + kLong - 1);
    queue_.remove(32 + kLong - 2);
    queue_.append(0, 7, 0);
    EXPECT_EQ(queue_.find(7, 0, kAnySource), 0u);
    EXPECT_EQ(queue_.find(1, 0, kAnySource), 32u);
}

TEST_F(Unexpected, ClassesThatShareAHashSeeTheirOwnMessagesOnly) {
    fill(0x100, 0);
    queue_.append(0, 0x201, 3);
    queue_.append(1, 0x202, 3);
    EXPECT_EQ(queue_.find(0x202, 0, kAnySource), 1u);
    EXPECT_EQ(queue_.find(0x2ff, 0xff, kAnySource), 0u);
    EXPECT_EQ(queue_.find(0x202, 0, kAnySource), 1u);
    EXPECT_EQ(queue_.find(0x202, 0, 3), 1u);
    EXPECT_EQ(queue_.find(0x202, 0, 4), kNone);
    EXPECT_EQ(queue_.find(0x200, 0, kAnySource), kNone);
    EXPECT_EQ(queue_.own_hashes(), 0u);
}

// 1,000 messages in one run of the shared hash, and a class that wants the last one.
class LongRun : public testing::Test {
  protected:
    LongRun() {
        for (Slot slot = 0; slot < kMessages; ++slot) {
            queue_.append(slot, slot, 0);
        }
        EXPECT_EQ(queue_.find(0, UINT64_MAX, kAnySource), 0u);
        EXPECT_EQ(queue_.find(kMessages, UINT64_MAX, 1), kNone);
    }

    static constexpr Slot kMessages = 1000;
    Owned<UnexpectedQueue> queue_{QueueConfig{2 * kMessages, 1, 1}};
};

TEST_F(LongRun, CostlyClassGetsAHashOfItsOwn) {
    for (int i = 0; i < 8; ++i) {
        EXPECT_EQ(queue_.find(kMessages - 1, 0, kAnySource), kMessages - 1);
    }
    EXPECT_EQ(queue_.own_hashes(), 1u);
    const uint64_t steps = queue_.steps();
    for (Slot slot = kMessages; slot > 0; --slot) {
        EXPECT_EQ(queue_.take(slot - 1, 0, kAnySource), slot - 1);
    }
    EXPECT_EQ(queue_.steps(), steps);
    EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(LongRun, ClassBeyondTheCapIsServedByTheSharedHash) {
    for (int i = 0; i < 8; ++i) {
        ASSERT_EQ(queue_.find(kMessages - 1, 0, kAnySource), kMessages - 1);
    }
    ASSERT_EQ(queue_.own_hashes(), 1u);
    const uint64_t steps = queue_.steps();
    EXPECT_EQ(queue_.find(kMessages - 8, 7, kAnySource), kMessages - 8);
    EXPECT_GT(queue_.steps(), steps);
    EXPECT_EQ(queue_.own_hashes(), 1u);
}

TEST_F(LongRun, HashOfItsOwnIsGivenUpWhenItIsEmptyAndAnotherClassNeedsIt) {
    for (int i = 0; i < 8; ++i) {
        ASSERT_EQ(queue_.find(kMessages - 1, 0, kAnySource), kMessages - 1);
    }
    for (Slot slot = 0; slot < kMessages; ++slot) {
        queue_.remove(slot);
    }
    for (Slot slot = 0; slot < kMessages; ++slot) {
        queue_.append(slot, slot, 0);
    }
    EXPECT_EQ(queue_.find(0, UINT64_MAX, kAnySource), 0u);
    EXPECT_EQ(queue_.find(kMessages, UINT64_MAX, 1), kNone);
    for (int i = 0; i < 8; ++i) {
        EXPECT_EQ(queue_.find(kMessages - 8, 7, kAnySource), kMessages - 8);
    }
    const uint64_t steps = queue_.steps();
    EXPECT_EQ(queue_.find(kMessages - 8, 7, kAnySource), kMessages - 8);
    EXPECT_EQ(queue_.steps(), steps);
    EXPECT_EQ(queue_.own_hashes(), 1u);
}

}  // namespace
}  // namespace tagwire::match::test
