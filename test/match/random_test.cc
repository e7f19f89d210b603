// SPDX-License-Identifier: BSD-3-Clause
// A million random operations on both queues, each answer compared with the oracle's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>

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
    uint64_t operations;
    bool own_hashes;  // unexpected messages get so long runs that a class has its own hash
};

// Few distinct bits, far apart, so that masks and tags overlap all the time.
constexpr int kBits[] = {0, 5, 17, 31, 40, 63};

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

    uint32_t wanted_source() { return below(2) == 0 ? kAnySource : below(GetParam().sources); }

    // A receive is posted as a runtime does it: unexpected messages first.
    void receive() {
        const uint64_t tag = bits(6);
        const uint64_t ignore = mask();
        const uint32_t source = wanted_source();
        const Slot expected = oracle_.find_message(tag, ignore, source);
        ASSERT_EQ(unexpected_.take(tag, ignore, source), expected);
        if (expected != kNone) {
            oracle_.remove_message(expected);
            slots_.give(expected);
            return;
        }
        const Slot slot = slots_.take();
        posted_.post(slot, tag, ignore, source);
        oracle_.post({slot, tag, ignore, source});
    }

    void arrive() {
        const uint64_t tag = bits(6);
        const uint32_t source = below(GetParam().sources);
        const Slot expected = oracle_.find_receive(tag, source);
        ASSERT_EQ(posted_.take(tag, source), expected);
        if (expected != kNone) {
            oracle_.remove_receive(expected);
            slots_.give(expected);
            return;
        }
        const Slot slot = slots_.take();
        unexpected_.append(slot, tag, source);
        oracle_.append({slot, tag, source});
    }

    void peek() {
        const uint64_t tag = bits(6);
        const uint64_t ignore = mask();
        const uint32_t source = wanted_source();
        ASSERT_EQ(unexpected_.find(tag, ignore, source), oracle_.find_message(tag, ignore, source));
        const uint32_t sender = below(GetParam().sources);
        ASSERT_EQ(posted_.find(tag, sender), oracle_.find_receive(tag, sender));
    }

    void cancel_receive() {
        if (oracle_.receives().empty()) {
            return;
        }
        auto it = oracle_.receives().begin();
        std::advance(it, below(static_cast<uint32_t>(oracle_.receives().size())));
        const Slot slot = it->slot;
        posted_.remove(slot);
        oracle_.remove_receive(slot);
        slots_.give(slot);
    }

    void discard_message() {
        if (oracle_.messages().empty()) {
            return;
        }
        auto it = oracle_.messages().begin();
        std::advance(it, below(static_cast<uint32_t>(oracle_.messages().size())));
        const Slot slot = it->slot;
        unexpected_.remove(slot);
        oracle_.remove_message(slot);
        slots_.give(slot);
    }

    // Long spells with mostly receives, then with mostly arrivals: both queues grow deep.
    void step(uint64_t operation) {
        const uint32_t receives = operation / 4096 % 2 == 0 ? 55 : 25;
        const uint32_t depth = GetParam().depth;
        if (posted_.size() > depth || unexpected_.size() > depth) {
            draining_ = true;
        } else if (posted_.size() + unexpected_.size() < depth / 4) {
            draining_ = false;
        }
        deepest_posted_ = std::max(deepest_posted_, posted_.size());
        deepest_unexpected_ = std::max(deepest_unexpected_, unexpected_.size());
        const uint32_t kind = below(100);
        if (draining_ && kind < 30) {
            cancel_receive();
            discard_message();
        } else if (kind < receives) {
            receive();
        } else if (kind < 80) {
            arrive();
        } else if (kind < 96) {
            peek();
        } else if (kind < 98) {
            cancel_receive();
        } else {
            discard_message();
        }
    }

    std::mt19937_64 random_;
    Owned<PostedQueue> posted_;
    Owned<UnexpectedQueue> unexpected_;
    Oracle oracle_;
    Slots slots_;
    bool draining_ = false;
    uint32_t deepest_posted_ = 0;
    uint32_t deepest_unexpected_ = 0;
};

TEST_P(Random, EveryAnswerIsTheOracles) {
    for (uint64_t i = 0; i < GetParam().operations; ++i) {
        step(i);
        ASSERT_FALSE(HasFatalFailure()) << "operation " << i << ", TAGWIRE_TEST_SEED=" << seed();
        ASSERT_EQ(posted_.size(), oracle_.receives().size());
        ASSERT_EQ(unexpected_.size(), oracle_.messages().size());
        ASSERT_EQ(unexpected_.oldest(),
                  oracle_.messages().empty() ? kNone : oracle_.messages().front().slot);
    }
    EXPECT_GE(deepest_posted_, GetParam().depth);
    EXPECT_GE(deepest_unexpected_, GetParam().depth);
    if (GetParam().own_hashes) {
        EXPECT_GT(unexpected_.own_hashes(), 0u);
    }
    while (!oracle_.receives().empty()) {
        const Slot slot = oracle_.receives().front().slot;
        ASSERT_EQ(posted_.oldest(), slot);
        posted_.remove(slot);
        oracle_.remove_receive(slot);
    }
    EXPECT_EQ(posted_.oldest(), kNone);
    EXPECT_EQ(posted_.overflow_size(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Random,
                         testing::Values(Shape{"Exact", 0, 300, 0, 3, 100'000, true},
                                         Shape{"FewMasks", 0, 200, 2, 3, 250'000, true},
                                         Shape{"ManyMasks", 0, 300, 4, 4, 250'000, true},
                                         Shape{"MoreMasksThanClasses", 0, 200, 6, 3, 150'000, true},
                                         Shape{"ClassCapOfFour", 4, 200, 4, 3, 150'000, true},
                                         Shape{"OneClass", 1, 60, 3, 2, 50'000, true},
                                         Shape{"Shallow", 0, 10, 4, 3, 100'000, false}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tagwire::match::test
