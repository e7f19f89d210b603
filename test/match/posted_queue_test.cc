// SPDX-License-Identifier: BSD-3-Clause
#include "lib/match/posted_queue.h"

#include <gtest/gtest.h>

#include "test/match/queues.h"

namespace tagwire::match::test {
namespace {

// Each behaviour in a short queue and in a long one, which other receives fill up that match
// nothing here.
class Posted : public testing::TestWithParam<bool> {
  protected:
    Posted() {
        if (GetParam()) {
            fill(queue_);
        }
    }

    static void fill(PostedQueue& queue) {
        for (Slot slot = kFirstFiller; slot < kCapacity; ++slot) {
            queue.post(slot, UINT64_MAX - slot, 0, kOther);
        }
        ASSERT_EQ(queue.times_deep(), 1u);
    }

    uint32_t own_size() const {
        return queue_.size() - (GetParam() ? kCapacity - kFirstFiller : 0);
    }

    static constexpr Slot kFirstFiller = 64;
    static constexpr Slot kCapacity = kFirstFiller + 2 * ShortList::kPositions;
    static constexpr uint32_t kOther = 77;
    Owned<PostedQueue> queue_{QueueConfig{kCapacity, 0, 1}};
};

INSTANTIATE_TEST_SUITE_P(Length, Posted, testing::Bool(),
                         [](const auto& info) { return info.param ? "Long" : "Short"; });

TEST_P(Posted, EmptyQueueFindsNothing) {
    EXPECT_EQ(queue_.take(1, 0), kNone);
    EXPECT_EQ(queue_.find(1, 0), kNone);
}

TEST_P(Posted, OnlyTheBitsThatAreKeptCount) {
    queue_.post(3, 0xab00, 0x00ff, kAnySource);
    EXPECT_EQ(queue_.take(0xac00, 0), kNone);
    EXPECT_EQ(queue_.take(0xab7f, 0), 3u);
    EXPECT_EQ(own_size(), 0u);
}

TEST_P(Posted, IgnoringEveryBitTakesAnyTag) {
    queue_.post(0, 123, UINT64_MAX, kAnySource);
    EXPECT_EQ(queue_.take(UINT64_MAX, 9), 0u);
}

TEST_P(Posted, OldestOfOneClassWins) {
    queue_.post(5, 7, 0, kAnySource);
    queue_.post(2, 7, 0, kAnySource);
    EXPECT_EQ(queue_.take(7, 0), 5u);
    EXPECT_EQ(queue_.take(7, 0), 2u);
}

TEST_P(Posted, OldestOfAllClassesWins) {
    queue_.post(5, 0, UINT64_MAX, kAnySource);
    queue_.post(2, 7, 0, kAnySource);
    queue_.post(9, 7, 0, 4);
    queue_.post(3, 7, 0, key_group(6));
    EXPECT_EQ(queue_.take(7, 4, key_group(6)), 5u);
    EXPECT_EQ(queue_.take(7, 4, key_group(6)), 2u);
    EXPECT_EQ(queue_.take(7, 4, key_group(6)), 9u);
    EXPECT_EQ(queue_.take(7, 4, key_group(6)), 3u);
}

TEST_P(Posted, DirectedReceiveIgnoresOtherPeers) {
    queue_.post(0, 7, 0, 4);
    EXPECT_EQ(queue_.take(7, 5), kNone);
    EXPECT_EQ(queue_.take(7, 4), 0u);
}

TEST_P(Posted, ReceiveOfAKeyGroupTakesMessagesOfThatGroupOnly) {
    queue_.post(0, 7, 0, key_group(4));
    EXPECT_EQ(queue_.take(7, 4), kNone);
    EXPECT_EQ(queue_.take(7, 4, key_group(5)), kNone);
    EXPECT_EQ(queue_.take(7, 9, key_group(4)), 0u);
}

TEST_P(Posted, CancelTakesExactlyOneOutOfARun) {
    for (Slot slot = 0; slot < 4; ++slot) {
        queue_.post(slot, 7, 0, kAnySource);
    }
    queue_.remove(0);
    queue_.remove(2);
    EXPECT_EQ(queue_.take(7, 0), 1u);
    EXPECT_EQ(queue_.take(7, 0), 3u);
    EXPECT_EQ(queue_.take(7, 0), kNone);
}

TEST_P(Posted, HandleCancelsOnce) {
    const Handle handle = queue_.post(1, 7, 0, kAnySource);
    EXPECT_EQ(queue_.handle(1), handle);
    EXPECT_TRUE(queue_.is_posted(handle));
    EXPECT_TRUE(queue_.cancel(handle));
    EXPECT_FALSE(queue_.is_posted(handle));
    EXPECT_FALSE(queue_.cancel(handle));
    EXPECT_EQ(queue_.take(7, 0), kNone);
}

TEST_P(Posted, HandleOfAMatchedReceiveIsStaleWhenTheSlotIsUsedAgain) {
    const Handle first = queue_.post(1, 7, 0, kAnySource);
    ASSERT_EQ(queue_.take(7, 0), 1u);
    EXPECT_FALSE(queue_.cancel(first));
    const Handle second = queue_.post(1, 7, 0, kAnySource);
    EXPECT_NE(first, second);
    EXPECT_FALSE(queue_.cancel(first));
    EXPECT_TRUE(queue_.cancel(second));
}

TEST_P(Posted, HandleThatNeverWasIsRefused) {
    EXPECT_FALSE(queue_.cancel(0));
    EXPECT_FALSE(queue_.cancel(UINT64_MAX));
}

TEST_P(Posted, FindLeavesTheReceivePosted) {
    queue_.post(1, 7, 0, kAnySource);
    EXPECT_EQ(queue_.find(7, 0), 1u);
    EXPECT_EQ(queue_.find(7, 0), 1u);
    EXPECT_EQ(own_size(), 1u);
}

TEST_P(Posted, ReceiveThatStaysMatchesUntilItIsRemoved) {
    const Handle handle = queue_.post(1, 7, 0xf, kAnySource, PostedQueue::Life::kStays);
    queue_.post(2, 7, 0, kAnySource);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(queue_.take(7, 0), 1u);
    }
    EXPECT_TRUE(queue_.cancel(handle));
    EXPECT_EQ(queue_.take(7, 0), 2u);
    EXPECT_EQ(queue_.take(7, 0), kNone);
}

TEST_P(Posted, OlderReceiveIsMetBeforeOneThatStays) {
    queue_.post(2, 7, 0, kAnySource);
    queue_.post(1, 7, 0, kAnySource, PostedQueue::Life::kStays);
    EXPECT_EQ(queue_.take(7, 0), 2u);
    EXPECT_EQ(queue_.take(7, 0), 1u);
    EXPECT_EQ(queue_.take(7, 0), 1u);
}

TEST_P(Posted, SlotsAreListedInPostingOrder) {
    queue_.post(3, 1, 0, kAnySource);
    queue_.post(1, 2, 0xff, kAnySource);
    queue_.post(2, 3, 0, 8);
    queue_.remove(1);
    std::vector<Slot> slots = queue_.slots();
    slots.erase(slots.begin(), slots.end() - 2);
    EXPECT_EQ(slots, (std::vector<Slot>{3, 2}));
}

using PostedLength = Posted;
INSTANTIATE_TEST_SUITE_P(Growing, PostedLength, testing::Values(false));

TEST_P(PostedLength, OrderSurvivesGrowthAndTheGapsOfTheShortList) {
    for (Slot slot = 0; slot < ShortList::kPositions; ++slot) {
        queue_.post(slot, slot % 2 == 0 ? 7 : 8, slot % 3 == 0 ? 0xf0 : 0, kAnySource);
    }
    for (Slot slot = 1; slot < ShortList::kPositions; slot += 2) {
        ASSERT_EQ(queue_.take(8, 0), slot);
    }
    queue_.post(1, 7, 0, kAnySource);
    EXPECT_EQ(queue_.times_deep(), 0u);
    fill(queue_);
    for (Slot slot = 0; slot < ShortList::kPositions; slot += 2) {
        ASSERT_EQ(queue_.take(7, 0), slot);
    }
    EXPECT_EQ(queue_.take(7, 0), 1u);
}

TEST_P(PostedLength, HandlesSurviveGrowthAndTheGapsOfTheShortList) {
    std::vector<Handle> handles;
    for (Slot slot = 0; slot < ShortList::kPositions; ++slot) {
        handles.push_back(queue_.post(slot, slot, 0, kAnySource));
    }
    for (Slot slot = 0; slot < ShortList::kPositions - 8; ++slot) {
        ASSERT_TRUE(queue_.cancel(handles[slot]));
    }
    queue_.post(0, 1000, 0, kAnySource);
    EXPECT_TRUE(queue_.cancel(handles[ShortList::kPositions - 1]));
    fill(queue_);
    EXPECT_TRUE(queue_.cancel(handles[ShortList::kPositions - 2]));
    EXPECT_FALSE(queue_.cancel(handles[ShortList::kPositions - 2]));
    EXPECT_FALSE(queue_.cancel(handles[0]));
}

TEST_P(PostedLength, QueueIsShortAgainAfterItWasEmpty) {
    for (int round = 1; round <= 2; ++round) {
        for (Slot slot = 0; slot <= ShortList::kPositions; ++slot) {
            queue_.post(slot, slot, 0, kAnySource);
        }
        EXPECT_EQ(queue_.times_deep(), static_cast<uint64_t>(round));
        for (Slot slot = 0; slot <= ShortList::kPositions; ++slot) {
            ASSERT_EQ(queue_.take(slot, 0), slot);
        }
    }
}

// Masks that have no bit in common with others are looked at one by one.
TEST_P(PostedLength, MasksThatKeepLittleAreFoundInAShortQueue) {
    queue_.post(0, 0x1000, 0, kAnySource);
    queue_.post(1, 0x2000, 0, kAnySource);
    queue_.post(2, 0x0005, ~uint64_t{0xf}, kAnySource);
    queue_.post(3, 0x3000, 0, kAnySource);
    queue_.post(4, 0x3000, 0xff, kAnySource);
    EXPECT_EQ(queue_.take(0x3000, 0), 3u);
    EXPECT_EQ(queue_.take(0x9995, 0), 2u);
    EXPECT_EQ(queue_.take(0x30aa, 0), 4u);
    EXPECT_EQ(queue_.take(0x2000, 0), 1u);
}

// So many peers, and so irregularly numbered, that some share a bucket.
class PostedHash : public testing::Test {
  protected:
    static uint32_t peer(uint32_t i) { return static_cast<uint32_t>(mix(i)) % kMaxPeers; }

    static constexpr uint32_t kPeers = 512;
    Owned<PostedQueue> queue_{QueueConfig{2 * kPeers, 0, 1}};
};

TEST_F(PostedHash, DirectedReceivesOfOneTagAreKeptApart) {
    for (Slot slot = 0; slot < kPeers; ++slot) {
        queue_.post(slot, 7, 0, peer(slot));
    }
    for (Slot slot = kPeers; slot > 0; --slot) {
        ASSERT_EQ(queue_.take(7, peer(slot - 1)), slot - 1);
    }
}

// So few buckets that some classes put the same tag in the same one, for one of the seeds at least.
TEST_F(PostedHash, ReceivesOfOneTagInManyClassesAreKeptApart) {
    constexpr Slot kClasses = 30;
    constexpr Slot kCapacity = kClasses + ShortList::kPositions + 1;
    for (uint64_t seed = 0; seed < 8; ++seed) {
        Owned<PostedQueue> queue{QueueConfig{kCapacity, 0, seed}};
        for (Slot slot = kClasses; slot < kCapacity; ++slot) {
            queue.post(slot, UINT64_MAX - slot, 0, kAnySource);
        }
        ASSERT_EQ(queue.times_deep(), 1u);
        for (Slot slot = 0; slot < kClasses; ++slot) {
            queue.post(slot, 0, uint64_t{1} << slot, kAnySource);
        }
        for (Slot slot = kClasses; slot > 0; --slot) {
            ASSERT_EQ(queue.take(uint64_t{1} << (slot - 1), 0), slot - 1) << "seed " << seed;
        }
    }
}

// The list of receives without a class is the long queue's.
class Overflow : public testing::Test {
  protected:
    Overflow() {
        for (Slot slot = 16; slot < kCapacity; ++slot) {
            queue_.post(slot, UINT64_MAX - slot, 0, kAnySource);
        }
        EXPECT_EQ(queue_.times_deep(), 1u);
    }

    static constexpr Slot kCapacity = 16 + ShortList::kPositions + 1;
    Owned<PostedQueue> queue_{QueueConfig{kCapacity, 1, 1}};
};

TEST_F(Overflow, ReceivesBeyondTheClassCapAreCountedAndKeepTheirOrder) {
    queue_.post(0, 1, 0, kAnySource);
    queue_.post(1, 1, 0xf0, kAnySource);
    queue_.post(2, 1, 0, kAnySource);
    EXPECT_EQ(queue_.overflow_size(), 1u);
    EXPECT_EQ(queue_.overflow_total(), 1u);
    EXPECT_EQ(queue_.take(1, 0), 0u);
    EXPECT_EQ(queue_.take(1, 0), 1u);
    EXPECT_EQ(queue_.take(1, 0), 2u);
    EXPECT_EQ(queue_.overflow_size(), 0u);
    EXPECT_EQ(queue_.overflow_total(), 1u);
}

TEST_F(Overflow, ReceiveThatStaysCanBeThere) {
    queue_.post(1, 1, 0xf0, kAnySource, PostedQueue::Life::kStays);
    ASSERT_EQ(queue_.overflow_size(), 1u);
    EXPECT_EQ(queue_.take(0x21, 0), 1u);
    EXPECT_EQ(queue_.take(0x31, 0), 1u);
    queue_.remove(1);
    EXPECT_EQ(queue_.take(0x31, 0), kNone);
}

TEST_F(Overflow, KeyGroupsHaveClassesOfTheirOwn) {
    queue_.post(0, 1, 0, key_group(3));
    EXPECT_EQ(queue_.overflow_size(), 0u);
    queue_.post(1, 1, 0xf, key_group(3));
    EXPECT_EQ(queue_.overflow_size(), 1u);
    EXPECT_EQ(queue_.take(1, 0, key_group(3)), 0u);
    EXPECT_EQ(queue_.take(1, 0, key_group(3)), 1u);
}

TEST_F(Overflow, ClassNumbersAreReusedWhenTheirReceivesAreGone) {
    Owned<PostedQueue> queue{QueueConfig{kCapacity, 2, 1}};
    for (Slot slot = 16; slot < kCapacity; ++slot) {
        queue.post(slot, UINT64_MAX - slot, 0, kAnySource);
    }
    for (uint64_t mask = 1; mask < 100; ++mask) {
        queue.post(0, 0, mask, kAnySource);
        ASSERT_EQ(queue.take(0, 0), 0u);
    }
    EXPECT_EQ(queue.overflow_total(), 0u);
}

}  // namespace
}  // namespace tagwire::match::test
