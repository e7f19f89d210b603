// SPDX-License-Identifier: BSD-3-Clause
// A million random operations on both queues, each answer compared with the oracle's.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "test/match/oracle.h"
#include "test/match/queues.h"

namespace tagwire::match::test {
namespace {

struct Shape {
    const char* name;
    uint32_t max_classes;
    uint32_t depth;  // a queue longer than this is drained for a while
    int mask_bits;   // tag bits that an ignore mask may cover
    uint32_t sources;
    uint32_t keys;  // key groups, 0 for none
    uint64_t operations;
    bool deep;        // both queues outgrow their short lists, and come back
    bool own_hashes;  // unexpected messages get so long runs that a class has its own hash
};

// Few distinct bits, far apart, so that masks and tags overlap all the time.
constexpr int kBits[] = {0, 5, 17, 31, 40, 63};

// What is in a queue, by slot, and what was: names that must not work any more.
class Handles {
  public:
    void enter(Handle handle) { current_[slot_of(handle)] = handle; }
    Handle at(Slot slot) const { return current_[slot]; }
    void leave(Slot slot) { stale_[next_++ % stale_.size()] = current_[slot]; }
    Handle stale(uint32_t pick) const { return stale_[pick % stale_.size()]; }

  private:
    std::array<Handle, 4096> current_{};
    std::array<Handle, 64> stale_{};
    uint32_t next_ = 0;
};

class Random : public testing::TestWithParam<Shape> {
  protected:
    Random() : random_(seed()), posted_(config()), unexpected_(config()), slots_(2 * kCapacity) {}

    static constexpr uint32_t kCapacity = 1024;

    // TAGWIRE_TEST_SEED replays a run.
    static uint64_t seed() {
        const char* given = std::getenv("TAGWIRE_TEST_SEED");
        return given != nullptr ? std::stoull(given) : 20240611;
    }

    static QueueConfig config() { return {2 * kCapacity, GetParam().max_classes, seed()}; }

    uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }

    uint64_t bits(int count) {
        uint64_t value = 0;
        for (int i = 0; i < count; ++i) {
            value |= (random_() & 1) << kBits[i];
        }
        return value;
    }

    uint64_t mask() {
        const uint32_t kind = below(10);
        return kind == 0 ? 0 : kind == 1 ? UINT64_MAX : bits(GetParam().mask_bits);
    }

    uint32_t wanted_source() {
        if (GetParam().keys != 0 && below(4) == 0) {
            return key_group(below(GetParam().keys));
        }
        return below(2) == 0 ? kAnySource : below(GetParam().sources);
    }

    Oracle::Receive random_receive() {
        return {kNone, bits(6), mask(), wanted_source(), below(64) == 0};
    }

    // Each source belongs to a key group, but for the last one.
    Oracle::Message random_message() {
        const uint32_t source = below(GetParam().sources);
        const bool keyed = GetParam().keys != 0 && source + 1 != GetParam().sources;
        return {kNone, bits(6), source, keyed ? key_group(source % GetParam().keys) : kNoKey};
    }

    // A receive is posted as a runtime does it: unexpected messages first.
    void receive() {
        Oracle::Receive receive = random_receive();
        const Slot expected = oracle_.find_message(receive);
        ASSERT_EQ(unexpected_.take(receive.tag, receive.ignore, receive.source), expected);
        if (expected != kNone) {
            message_is_gone(expected);
            return;
        }
        receive.slot = slots_.take();
        const auto life = receive.stays ? PostedQueue::Life::kStays : PostedQueue::Life::kOnce;
        posts_.enter(posted_.post(receive.slot, receive.tag, receive.ignore, receive.source, life));
        oracle_.post(receive);
    }

    void arrive() {
        Oracle::Message message = random_message();
        const Oracle::Receive* expected = oracle_.find_receive(message);
        ASSERT_EQ(posted_.take(message.tag, message.source, message.key),
                  expected == nullptr ? kNone : expected->slot);
        if (expected != nullptr) {
            if (!expected->stays) {
                receive_is_gone(expected->slot);
            }
            return;
        }
        message.slot = slots_.take();
        arrivals_.enter(unexpected_.append(message.slot, message.tag, message.source, message.key));
        oracle_.append(message);
    }

    void peek() {
        const Oracle::Receive receive = random_receive();
        ASSERT_EQ(unexpected_.find(receive.tag, receive.ignore, receive.source),
                  oracle_.find_message(receive));
        const Oracle::Message message = random_message();
        const Oracle::Receive* expected = oracle_.find_receive(message);
        ASSERT_EQ(posted_.find(message.tag, message.source, message.key),
                  expected == nullptr ? kNone : expected->slot);
    }

    template <typename List>
    auto pick(const List& list) {
        auto it = list.begin();
        std::advance(it, below(static_cast<uint32_t>(list.size())));
        return *it;
    }

    void cancel_receive() {
        if (oracle_.receives().empty()) {
            return;
        }
        const Slot slot = pick(oracle_.receives()).slot;
        ASSERT_TRUE(posted_.is_posted(posts_.at(slot)));
        ASSERT_TRUE(posted_.cancel(posts_.at(slot)));
        receive_is_gone(slot);
        ASSERT_FALSE(posted_.cancel(posts_.at(slot)));
    }

    // Those that match for ever end this way only.
    void cancel_staying_receives() {
        for (auto it = oracle_.receives().begin(); it != oracle_.receives().end();) {
            const Oracle::Receive receive = *it++;
            if (receive.stays) {
                posted_.remove(receive.slot);
                receive_is_gone(receive.slot);
            }
        }
    }

    void discard_message() {
        if (oracle_.messages().empty()) {
            return;
        }
        const Slot slot = pick(oracle_.messages()).slot;
        ASSERT_TRUE(unexpected_.discard(arrivals_.at(slot)));
        message_is_gone(slot);
        ASSERT_FALSE(unexpected_.discard(arrivals_.at(slot)));
    }

    void claim() {
        if (oracle_.messages().empty()) {
            return;
        }
        const Slot slot = pick(oracle_.messages()).slot;
        ASSERT_EQ(unexpected_.claim(slot), arrivals_.at(slot));
        oracle_.claim(slot);
    }

    void redeem() {
        if (oracle_.claimed().empty()) {
            return;
        }
        const Slot slot = pick(oracle_.claimed());
        const Handle handle = arrivals_.at(slot);
        ASSERT_TRUE(unexpected_.is_claimed(handle));
        if (below(2) == 0) {
            ASSERT_EQ(unexpected_.redeem(handle), slot);
        } else {
            ASSERT_TRUE(unexpected_.discard(handle));
        }
        ASSERT_EQ(unexpected_.redeem(handle), kNone);
        oracle_.redeem(slot);
        arrivals_.leave(slot);
        slots_.give(slot);
    }

    void try_stale_handles() {
        const Handle receive = posts_.stale(below(64));
        ASSERT_FALSE(posted_.is_posted(receive));
        ASSERT_FALSE(posted_.cancel(receive));
        const Handle message = arrivals_.stale(below(64));
        ASSERT_FALSE(unexpected_.is_claimed(message));
        ASSERT_EQ(unexpected_.redeem(message), kNone);
        ASSERT_FALSE(unexpected_.discard(message));
        if (!oracle_.messages().empty()) {
            const Handle unclaimed = arrivals_.at(pick(oracle_.messages()).slot);
            ASSERT_EQ(unexpected_.redeem(unclaimed), kNone);
        }
    }

    void receive_is_gone(Slot slot) {
        oracle_.remove_receive(slot);
        posts_.leave(slot);
        slots_.give(slot);
    }

    void message_is_gone(Slot slot) {
        oracle_.remove_message(slot);
        arrivals_.leave(slot);
        slots_.give(slot);
    }

    // Long spells with mostly receives, then with mostly arrivals: both queues grow deep. Every
    // other time they are drained until they are empty.
    void step(uint64_t operation) {
        const uint32_t receives = operation / 4096 % 2 == 0 ? 55 : 25;
        const uint32_t depth = GetParam().depth;
        const uint32_t rest = drained_ % 2 == 0 ? depth / 4 : 1;
        if (posted_.size() > depth || unexpected_.size() > depth) {
            draining_ = true;
        } else if (draining_ && posted_.size() + unexpected_.size() < rest) {
            draining_ = false;
            ++drained_;
        }
        deepest_posted_ = std::max(deepest_posted_, posted_.size());
        deepest_unexpected_ = std::max(deepest_unexpected_, unexpected_.size());
        const uint32_t kind = below(100);
        if (draining_ && kind < 60) {
            cancel_receive();
            discard_message();
        } else if (kind < receives) {
            receive();
        } else if (kind < 80) {
            arrive();
        } else if (kind < 91) {
            peek();
        } else if (kind < 93) {
            cancel_receive();
        } else if (kind < 94) {
            cancel_staying_receives();
        } else if (kind < 96) {
            discard_message();
        } else if (kind < 98) {
            claim();
        } else if (kind < 99 || oracle_.claimed().size() > 100) {
            redeem();
        } else {
            try_stale_handles();
        }
    }

    void compare_sizes() {
        ASSERT_EQ(posted_.size(), oracle_.receives().size());
        ASSERT_EQ(unexpected_.size(), oracle_.messages().size());
        ASSERT_EQ(unexpected_.claimed(), oracle_.claimed().size());
        ASSERT_EQ(unexpected_.oldest(),
                  oracle_.messages().empty() ? kNone : oracle_.messages().front().slot);
        ASSERT_EQ(unexpected_.oldest_claimed(),
                  oracle_.claimed().empty() ? kNone : oracle_.claimed().front());
    }

    std::mt19937_64 random_;
    Owned<PostedQueue> posted_;
    Owned<UnexpectedQueue> unexpected_;
    Oracle oracle_;
    Slots slots_;
    Handles posts_;
    Handles arrivals_;
    bool draining_ = false;
    uint32_t drained_ = 0;
    uint32_t deepest_posted_ = 0;
    uint32_t deepest_unexpected_ = 0;
};

TEST_P(Random, EveryAnswerIsTheOracles) {
    uint32_t own_hashes = 0;
    for (uint64_t i = 0; i < GetParam().operations; ++i) {
        step(i);
        ASSERT_FALSE(HasFatalFailure()) << "operation " << i << ", TAGWIRE_TEST_SEED=" << seed();
        compare_sizes();
        ASSERT_FALSE(HasFatalFailure()) << "operation " << i << ", TAGWIRE_TEST_SEED=" << seed();
        own_hashes = std::max(own_hashes, unexpected_.own_hashes());
    }
    EXPECT_GE(deepest_posted_, GetParam().depth);
    EXPECT_GE(deepest_unexpected_, GetParam().depth);
    if (GetParam().deep) {
        EXPECT_GT(posted_.times_deep(), 3u);
        EXPECT_GT(unexpected_.times_deep(), 3u);
    } else {
        EXPECT_EQ(posted_.times_deep(), 0u);
        EXPECT_EQ(unexpected_.times_deep(), 0u);
    }
    EXPECT_EQ(own_hashes != 0, GetParam().own_hashes);

    std::vector<Slot> slots;
    for (const Oracle::Receive& receive : oracle_.receives()) {
        slots.push_back(receive.slot);
    }
    EXPECT_EQ(posted_.slots(), slots);
    for (const Slot slot : slots) {
        posted_.remove(slot);
    }
    EXPECT_EQ(posted_.size(), 0u);
    EXPECT_EQ(posted_.overflow_size(), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Random,
    testing::Values(Shape{"Exact", 0, 300, 0, 3, 0, 100'000, true, true},
                    Shape{"FewMasks", 0, 200, 2, 3, 0, 250'000, true, true},
                    Shape{"ManyMasks", 0, 300, 4, 4, 0, 200'000, true, true},
                    Shape{"MoreMasksThanClasses", 0, 200, 6, 3, 0, 150'000, true, true},
                    Shape{"ClassCapOfFour", 4, 200, 4, 3, 0, 150'000, true, true},
                    Shape{"OneClass", 1, 80, 3, 2, 0, 50'000, true, true},
                    Shape{"Keys", 0, 200, 3, 5, 2, 150'000, true, true},
                    Shape{"KeysBeyondTheClassCap", 2, 120, 4, 5, 3, 50'000, true, true},
                    Shape{"Short", 0, 20, 4, 3, 0, 150'000, false, false},
                    Shape{"ShortWithKeys", 0, 20, 2, 5, 2, 100'000, false, false}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tagwire::match::test
