// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "drivers/softcx/wire/fault_wire.h"

namespace softcx {
namespace {

using Frame = std::vector<uint8_t>;

uint64_t fake_now = 0;
uint64_t fake_clock() noexcept {
    return fake_now;
}

class FaultWireTest : public ::testing::Test {
  protected:
    PortCounters counters;
    std::unique_ptr<Wire> wire;
    std::unique_ptr<Wire> far;

    void SetUp() override { fake_now = 1000; }

    void plug(const std::string& faults) {
        wire.reset();
        far.reset();
        counters = {};
        std::string error;
        FaultPlan plan;
        ASSERT_TRUE(parse_faults(faults, plan, error)) << error;
        wire =
            std::make_unique<FaultWire>(open_wire("pair", 0, &error), plan, counters, fake_clock);
        far = open_wire("pair", 1, &error);
    }

    bool send(const Frame& frame) {
        const Wire::Piece pieces[] = {
            {frame.data(), 10}, {frame.data() + 10, static_cast<uint32_t>(frame.size()) - 10}};
        return wire->send(pieces, static_cast<uint32_t>(frame.size()));
    }

    static Frame numbered(uint32_t number, size_t length = 60) {
        Frame frame(length, static_cast<uint8_t>(number * 3));
        frame[0] = static_cast<uint8_t>(number);
        frame[1] = static_cast<uint8_t>(number >> 8);
        return frame;
    }

    std::vector<Frame> arrived() {
        std::vector<Frame> frames;
        for (;;) {
            const std::span<const uint8_t> frame = far->receive();
            if (frame.empty())
                return frames;
            frames.emplace_back(frame.begin(), frame.end());
            far->release();
        }
    }

    std::vector<uint32_t> numbers() {
        std::vector<uint32_t> result;
        for (const Frame& frame : arrived())
            result.push_back(frame[0] | uint32_t{frame[1]} << 8);
        return result;
    }

    std::vector<uint32_t> run(const std::string& faults, uint32_t frames) {
        plug(faults);
        for (uint32_t i = 0; i < frames; ++i)
            send(numbered(i));
        for (int polls = 0; polls < 100; ++polls)
            wire->receive();
        return numbers();
    }
};

TEST_F(FaultWireTest, WithoutFaultsEveryFramePassesUnchanged) {
    plug("seed=3");
    for (uint32_t i = 0; i < 50; ++i)
        ASSERT_TRUE(send(numbered(i, 60 + i * 20)));
    const std::vector<Frame> frames = arrived();
    ASSERT_EQ(frames.size(), 50u);
    for (uint32_t i = 0; i < 50; ++i)
        EXPECT_EQ(frames[i], numbered(i, 60 + i * 20));
}

TEST_F(FaultWireTest, LossIsCountedAndAboutAsOftenAsAskedFor) {
    const size_t passed = run("loss=0.1,seed=7", 5000).size();
    EXPECT_EQ(passed + counters.fault_lost, 5000u);
    EXPECT_NEAR(static_cast<double>(counters.fault_lost), 500, 100);
}

TEST_F(FaultWireTest, TheSameSeedGivesTheSameFaults) {
    const std::string faults = "loss=0.1,dup=0.1,reorder=8,corrupt=0.1,seed=";
    const auto first = run(faults + "7", 1000);
    EXPECT_EQ(run(faults + "7", 1000), first);
    EXPECT_NE(run(faults + "8", 1000), first);
}

TEST_F(FaultWireTest, LossesStayTheSameWhenDuplicationIsAdded) {
    const auto lossy = run("loss=0.1,seed=7", 1000);
    auto both = run("loss=0.1,dup=0.2,seed=7", 1000);
    EXPECT_GT(both.size(), lossy.size());
    both.erase(std::unique(both.begin(), both.end()), both.end());
    EXPECT_EQ(both, lossy);
}

TEST_F(FaultWireTest, DuplicatesFollowTheirOriginal) {
    const auto passed = run("dup=1", 3);
    EXPECT_EQ(passed, (std::vector<uint32_t>{0, 0, 1, 1, 2, 2}));
    EXPECT_EQ(counters.fault_duplicated, 3u);
}

TEST_F(FaultWireTest, CorruptionFlipsOneBit) {
    plug("corrupt=1,seed=2");
    for (uint32_t i = 0; i < 100; ++i)
        send(numbered(i));
    const std::vector<Frame> frames = arrived();
    ASSERT_EQ(frames.size(), 100u);
    for (uint32_t i = 0; i < 100; ++i) {
        int flipped = 0;
        for (size_t byte = 0; byte < 60; ++byte)
            flipped += __builtin_popcount(frames[i][byte] ^ numbered(i)[byte]);
        ASSERT_EQ(flipped, 1) << i;
    }
    EXPECT_EQ(counters.fault_corrupted, 100u);
}

TEST_F(FaultWireTest, ReorderingKeepsEveryFrame) {
    auto passed = run("reorder=16", 100);
    std::vector<uint32_t> all(100);
    std::iota(all.begin(), all.end(), 0u);
    EXPECT_NE(passed, all);
    EXPECT_GT(counters.fault_reordered, 50u);
    std::sort(passed.begin(), passed.end());
    EXPECT_EQ(passed, all);
}

TEST_F(FaultWireTest, AHeldFrameLeavesWhenTheSenderPauses) {
    plug("reorder=16");
    send(numbered(5));
    wire->receive();
    EXPECT_TRUE(arrived().empty());
    wire->receive();
    EXPECT_EQ(numbers(), std::vector<uint32_t>{5});
}

TEST_F(FaultWireTest, DelayHoldsAFrameUntilItsTime) {
    plug("delay=50us");
    send(numbered(1));
    fake_now += 49'999;
    wire->receive();
    EXPECT_TRUE(arrived().empty());
    fake_now += 1;
    wire->receive();
    EXPECT_EQ(numbers(), std::vector<uint32_t>{1});
    EXPECT_EQ(counters.fault_delayed, 1u);
}

TEST_F(FaultWireTest, RateSpacesFrames) {
    plug("rate=1M");  // 1,000 bytes take 8 ms
    for (uint32_t i = 0; i < 3; ++i)
        send(numbered(i, 1000));
    for (uint32_t i = 0; i < 3; ++i) {
        fake_now += 7'999'999;
        wire->receive();
        ASSERT_TRUE(arrived().empty());
        fake_now += 1;
        wire->receive();
        ASSERT_EQ(numbers(), std::vector<uint32_t>{i});
    }
}

TEST_F(FaultWireTest, TheQueueInFrontOfTheLineDropsItsTail) {
    plug("rate=1M,queue=4");
    for (uint32_t i = 0; i < 10; ++i)
        EXPECT_EQ(send(numbered(i)), i < 4);
    EXPECT_EQ(counters.fault_tail_dropped, 6u);
    fake_now += 1'000'000'000;
    wire->receive();
    EXPECT_EQ(numbers(), (std::vector<uint32_t>{0, 1, 2, 3}));
}

TEST_F(FaultWireTest, WhatIsReceivedDoesNotSuffer) {
    plug("loss=1,corrupt=1");
    const Frame frame = numbered(9);
    const Wire::Piece piece{frame.data(), 60};
    far->send({&piece, 1}, 60);
    const std::span<const uint8_t> got = wire->receive();
    EXPECT_EQ(Frame(got.begin(), got.end()), frame);
}

TEST(FaultPlan, ReadsEveryFault) {
    FaultPlan plan;
    std::string error;
    ASSERT_TRUE(
        parse_faults("loss=0.01,dup=0.005,reorder=16,corrupt=0.001,delay=2ms,rate=10G,"
                     "queue=7,seed=9",
                     plan, error));
    EXPECT_DOUBLE_EQ(plan.loss, 0.01);
    EXPECT_DOUBLE_EQ(plan.duplication, 0.005);
    EXPECT_DOUBLE_EQ(plan.corruption, 0.001);
    EXPECT_EQ(plan.reorder, 16u);
    EXPECT_EQ(plan.delay, 2'000'000u);
    EXPECT_EQ(plan.rate, 10'000'000'000u);
    EXPECT_EQ(plan.queue, 7u);
    EXPECT_EQ(plan.seed, 9u);
}

TEST(FaultPlan, NamesWhatItCannotRead) {
    for (const char* text : {"loss=2", "loss=x", "dup", "delay=5", "delay=11s", "rate=0", "queue=0",
                             "reorder=5000", "seed=-1", "lost=0.1", "loss=0.1;dup=1"}) {
        FaultPlan plan;
        std::string error;
        EXPECT_FALSE(parse_faults(text, plan, error)) << text;
        EXPECT_NE(error.find(": "), std::string::npos) << error;
    }
}

}  // namespace
}  // namespace softcx
