// SPDX-License-Identifier: BSD-3-Clause
#include "lib/match/unexpected_queue.h"

#include <gtest/gtest.h>

#include "test/match/queues.h"

namespace tagwire::match::test {
namespace {

// Each behaviour in a short queue and in a long one, which messages of another peer fill up.
class Unexpected : public testing::TestWithParam<bool> {
  protected:
    Unexpected() {
        if (GetParam()) {
            fill();
        }
    }

    // With a tag of this high half.
    void fill() {
        for (Slot slot = kFirstFiller; slot < kCapacity; ++slot) {
            queue_.append(slot, kFillerTag | slot, kOther);
        }
        ASSERT_EQ(queue_.times_deep(), 1u);
    }

    uint32_t own_size() const {
        return queue_.size() - (GetParam() ? kCapacity - kFirstFiller : 0);
    }

    static constexpr Slot kFirstFiller = 64;
    static constexpr Slot kCapacity = kFirstFiller + 2 * ShortList::kPositions;
    static constexpr uint64_t kFillerTag = uint64_t{0xffff} << 48;
    static constexpr uint32_t kOther = 77;
    Owned<UnexpectedQueue> queue_{QueueConfig{kCapacity, 0, 1}};
};

INSTANTIATE_TEST_SUITE_P(Length, Unexpected, testing::Bool(),
                         [](const auto& info) { return info.param ? "Long" : "Short"; });

TEST_P(Unexpected, NothingIsFoundThatIsNotThere) {
    EXPECT_EQ(queue_.take(0, UINT64_MAX, 3), kNone);
    EXPECT_EQ(queue_.find(0, 0xff, kAnySource), kNone);
}

TEST_P(Unexpected, OldestMatchWins) {
    queue_.append(4, 6, 0);
    queue_.append(3, 7, 0);
    queue_.append(1, 7, 0);
    EXPECT_EQ(queue_.take(7, 0, kAnySource), 3u);
    EXPECT_EQ(queue_.take(7, 0, kAnySource), 1u);
    EXPECT_EQ(queue_.take(7, 0, kAnySource), kNone);
    EXPECT_EQ(own_size(), 1u);
}

TEST_P(Unexpected, DirectedSearchSeesOnePeersMessages) {
    queue_.append(1, 7, 2);
    queue_.append(0, 7, 5);
    EXPECT_EQ(queue_.take(7, 0, 5), 0u);
    EXPECT_EQ(queue_.take(7, 0, 5), kNone);
    EXPECT_EQ(queue_.take(7, 0, 2), 1u);
}

TEST_P(Unexpected, SearchOfAKeyGroupSeesMessagesOfThatGroupOnly) {
    queue_.append(0, 7, 5);
    queue_.append(1, 7, 4, key_group(5));
    queue_.append(2, 7, 5, key_group(4));
    EXPECT_EQ(queue_.find(7, 0, 4), 1u);
    EXPECT_EQ(queue_.take(7, 0, key_group(4)), 2u);
    EXPECT_EQ(queue_.take(7, 0, key_group(4)), kNone);
    EXPECT_EQ(queue_.take(7, 0, key_group(5)), 1u);
    EXPECT_EQ(queue_.take(7, 0, kAnySource), 0u);
}

TEST_P(Unexpected, NewClassSeesMessagesThatAreThereAlready) {
    queue_.append(0, 0x2ff, 0);
    EXPECT_EQ(queue_.take(0x300, 0, kAnySource), kNone);
    EXPECT_EQ(queue_.find(0x200, 0xff, kAnySource), 0u);
    EXPECT_EQ(queue_.take(0x200, 0xff, 0), 0u);
}

TEST_P(Unexpected, MessagesAfterAFailedSearchAreFound) {
    ASSERT_EQ(queue_.find(7, 0, kAnySource), kNone);
    queue_.append(0, 7, 0);
    EXPECT_EQ(queue_.find(7, 0, kAnySource), 0u);
}

TEST_P(Unexpected, SearchesGoOnAfterTheLastMessageTheySawIsRemoved) {
    queue_.append(1, 6, 0);
    queue_.append(2, 6, 0);
    ASSERT_EQ(queue_.find(7, 0, kAnySource), kNone);
    queue_.remove(2);
    queue_.remove(1);
    queue_.append(0, 7, 0);
    EXPECT_EQ(queue_.find(7, 0, kAnySource), 0u);
}

TEST_P(Unexpected, ClassesThatShareAHashSeeTheirOwnMessagesOnly) {
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

TEST_P(Unexpected, SearchThatKeepsLittleFindsTheOldest) {
    queue_.append(0, 0x1001, 3);
    queue_.append(1, 0x1002, 3);
    queue_.append(2, 0x2002, 3);
    EXPECT_EQ(queue_.find(2, ~uint64_t{0xf}, 3), 1u);
    EXPECT_EQ(queue_.take(0, UINT64_MAX, 3), 0u);
    EXPECT_EQ(queue_.take(0x2002, 0, 3), 2u);
}

TEST_P(Unexpected, ClaimedMessageMatchesNobody) {
    queue_.append(0, 7, 0);
    queue_.append(1, 7, 0);
    queue_.claim(0);
    EXPECT_EQ(queue_.find(7, 0, kAnySource), 1u);
    EXPECT_EQ(queue_.take(7, 0, 0), 1u);
    EXPECT_EQ(queue_.take(7, 0, kAnySource), kNone);
    EXPECT_EQ(own_size(), 0u);
    EXPECT_EQ(queue_.claimed(), 1u);
    EXPECT_EQ(queue_.oldest_claimed(), 0u);
}

TEST_P(Unexpected, ClaimedMessageIsRedeemedOnce) {
    const Handle arrived = queue_.append(0, 7, 0);
    const Handle claimed = queue_.claim(0);
    EXPECT_EQ(arrived, claimed);
    EXPECT_TRUE(queue_.is_claimed(claimed));
    EXPECT_EQ(queue_.redeem(claimed), 0u);
    EXPECT_FALSE(queue_.is_claimed(claimed));
    EXPECT_EQ(queue_.redeem(claimed), kNone);
    EXPECT_EQ(queue_.claimed(), 0u);
    EXPECT_EQ(queue_.oldest_claimed(), kNone);
}

TEST_P(Unexpected, HandleOfARedeemedMessageIsStaleWhenTheSlotIsClaimedAgain) {
    queue_.append(0, 7, 0);
    const Handle first = queue_.claim(0);
    ASSERT_EQ(queue_.redeem(first), 0u);
    queue_.append(0, 7, 0);
    const Handle second = queue_.claim(0);
    EXPECT_EQ(queue_.redeem(first), kNone);
    EXPECT_FALSE(queue_.discard(first));
    EXPECT_EQ(queue_.redeem(second), 0u);
}

TEST_P(Unexpected, MessageThatIsNotClaimedIsNotRedeemed) {
    const Handle handle = queue_.append(0, 7, 0);
    EXPECT_EQ(queue_.redeem(handle), kNone);
    EXPECT_EQ(queue_.find(7, 0, kAnySource), 0u);
}

TEST_P(Unexpected, DiscardEndsAMessageClaimedOrNot) {
    const Handle claimed = queue_.append(0, 7, 0);
    const Handle unclaimed = queue_.append(1, 7, 0);
    queue_.claim(0);
    EXPECT_TRUE(queue_.discard(claimed));
    EXPECT_FALSE(queue_.discard(claimed));
    EXPECT_TRUE(queue_.discard(unclaimed));
    EXPECT_FALSE(queue_.discard(unclaimed));
    EXPECT_EQ(queue_.take(7, 0, kAnySource), kNone);
    EXPECT_EQ(queue_.claimed(), 0u);
}

TEST_P(Unexpected, HandleOfAMatchedMessageIsRefused) {
    const Handle handle = queue_.append(0, 7, 0);
    ASSERT_EQ(queue_.take(7, 0, kAnySource), 0u);
    EXPECT_FALSE(queue_.discard(handle));
    queue_.append(0, 7, 0);
    EXPECT_FALSE(queue_.discard(handle));
    EXPECT_EQ(own_size(), 1u);
}

TEST_P(Unexpected, ClaimsEndInAnyOrder) {
    std::vector<Handle> handles;
    for (Slot slot = 0; slot < 4; ++slot) {
        queue_.append(slot, 7, 0);
        handles.push_back(queue_.claim(slot));
    }
    EXPECT_EQ(queue_.redeem(handles[1]), 1u);
    EXPECT_EQ(queue_.redeem(handles[0]), 0u);
    EXPECT_EQ(queue_.oldest_claimed(), 2u);
    EXPECT_EQ(queue_.redeem(handles[3]), 3u);
    EXPECT_EQ(queue_.oldest_claimed(), 2u);
}

using UnexpectedLength = Unexpected;
INSTANTIATE_TEST_SUITE_P(Growing, UnexpectedLength, testing::Values(false));

TEST_P(UnexpectedLength, OrderAndClaimsSurviveGrowthAndTheGapsOfTheShortList) {
    for (Slot slot = 0; slot < ShortList::kPositions; ++slot) {
        queue_.append(slot, slot % 2 == 0 ? 7 : 8, 0);
    }
    const Handle claimed = queue_.claim(0);
    for (Slot slot = 1; slot < ShortList::kPositions; slot += 2) {
        ASSERT_EQ(queue_.take(8, 0, kAnySource), slot);
    }
    queue_.append(1, 7, 0);
    EXPECT_EQ(queue_.times_deep(), 0u);
    fill();
    for (Slot slot = 2; slot < ShortList::kPositions; slot += 2) {
        ASSERT_EQ(queue_.take(7, 0, kAnySource), slot);
    }
    EXPECT_EQ(queue_.take(7, 0, kAnySource), 1u);
    EXPECT_EQ(queue_.redeem(claimed), 0u);
}

TEST_P(UnexpectedLength, QueueIsShortAgainAfterItWasEmpty) {
    for (int round = 1; round <= 2; ++round) {
        for (Slot slot = 0; slot <= ShortList::kPositions; ++slot) {
            queue_.append(slot, slot, 0);
        }
        EXPECT_EQ(queue_.times_deep(), static_cast<uint64_t>(round));
        EXPECT_EQ(queue_.oldest(), 0u);
        for (Slot slot = 0; slot <= ShortList::kPositions; ++slot) {
            ASSERT_EQ(queue_.take(slot, 0, kAnySource), slot);
        }
        EXPECT_EQ(queue_.oldest(), kNone);
    }
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
