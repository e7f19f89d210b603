// SPDX-License-Identifier: BSD-3-Clause
#include "lib/match/posted_queue.h"

#include <gtest/gtest.h>

#include "test/match/queues.h"

namespace tagwire::match::test {
namespace {

class Posted : public testing::Test {
  protected:
    Owned<PostedQueue> queue_{QueueConfig{64, 0, 1}};
};

TEST_F(Posted, EmptyQueueFindsNothing) {
    EXPECT_EQ(queue_.take(1, 0), kNone);
}

TEST_F(Posted, OnlyTheBitsThatAreKeptCount) {
    queue_.post(3, 0xab00, 0x00ff, kAnySource);
    EXPECT_EQ(queue_.take(0xac00, 0), kNone);
    EXPECT_EQ(queue_.take(0xab7f, 0), 3u);
    EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(Posted, IgnoringEveryBitTakesAnyTag) {
    queue_.post(0, 123, UINT64_MAX, kAnySource);
    EXPECT_EQ(queue_.take(UINT64_MAX, 9), 0u);
}

TEST_F(Posted, OldestOfOneClassWins) {
    queue_.post(5, 7, 0, kAnySource);
    queue_.post(2, 7, 0, kAnySource);
    EXPECT_EQ(queue_.take(7, 0), 5u);
    EXPECT_EQ(queue_.take(7, 0), 2u);
}

TEST_F(Posted, OldestOfAllClassesWins) {
    queue_.post(5, 0, UINT64_MAX, kAnySource);
    queue_.post(2, 7, 0, kAnySource);
    queue_.post(9, 7, 0, 4);
    EXPECT_EQ(queue_.take(7, 4), 5u);
    EXPECT_EQ(queue_.take(7, 4), 2u);
    EXPECT_EQ(queue_.take(7, 4), 9u);
}

TEST_F(Posted, DirectedReceiveIgnoresOtherPeers) {
    queue_.post(0, 7, 0, 4);
    EXPECT_EQ(queue_.take(7, 5), kNone);
    EXPECT_EQ(queue_.take(7, 4), 0u);
}

TEST_F(Posted, CancelTakesExactlyOneOutOfARun) {
    for (Slot slot = 0; slot < 4; ++slot) {
        queue_.post(slot, 7, 0, kAnySource);
    }
    queue_.remove(0);
    queue_.remove(2);
    EXPECT_EQ(queue_.take(7, 0), 1u);
    EXPECT_EQ(queue_.take(7, 0), 3u);
    EXPECT_EQ(queue_.take(7, 0), kNone);
}

TEST_F(Posted, FindLeavesTheReceivePosted) {
    queue_.post(1, 7, 0, kAnySource);
    EXPECT_EQ(queue_.find(7, 0), 1u);
    EXPECT_EQ(queue_.find(7, 0), 1u);
    EXPECT_EQ(queue_.size(), 1u);
}

TEST_F(Posted, ReceivesBeyondTheClassCapAreCountedAndKeepTheirOrder) {
    Owned<PostedQueue> queue{QueueConfig{8, 1, 1}};
    queue.post(0, 1, 0, kAnySource);
    queue.post(1, 1, 0xf0, kAnySource);
    queue.post(2, 1, 0, kAnySource);
    EXPECT_EQ(queue.overflow_size(), 1u);
    EXPECT_EQ(queue.overflow_total(), 1u);
    EXPECT_EQ(queue.take(1, 0), 0u);
    EXPECT_EQ(queue.take(1, 0), 1u);
    EXPECT_EQ(queue.take(1, 0), 2u);
}

TEST_F(Posted, ClassNumbersAreReusedWhenTheirReceivesAreGone) {
    Owned<PostedQueue> queue{QueueConfig{8, 2, 1}};
    for (uint64_t mask = 1; mask < 100; ++mask) {
        queue.post(0, 0, mask, kAnySource);
        ASSERT_EQ(queue.take(0, 0), 0u);
    }
    EXPECT_EQ(queue.overflow_total(), 0u);
}

}  // namespace
}  // namespace tagwire::match::test
