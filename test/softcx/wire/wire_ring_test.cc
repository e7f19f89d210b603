// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "drivers/softcx/wire/frame_ring.h"

namespace softcx {
namespace {

class FrameRing : public ::testing::Test {
  protected:
    static constexpr uint64_t kSize = 256 * 1024;

    FrameRingHeader header{};
    std::vector<uint8_t> data = std::vector<uint8_t>(kSize);
    FrameProducer producer{&header, data.data(), kSize};
    FrameConsumer consumer{&header, data.data(), kSize};

    bool put(uint32_t length, uint8_t fill) {
        uint8_t* to = producer.reserve(length);
        if (to == nullptr)
            return false;
        std::memset(to, fill, length);
        producer.publish(length);
        return true;
    }

    // The fill byte of the oldest frame when all of it is intact, or -1.
    int take(uint32_t length) {
        const std::span<const uint8_t> frame = consumer.front();
        if (frame.size() != length)
            return -1;
        for (const uint8_t byte : frame) {
            if (byte != frame[0])
                return -1;
        }
        const int fill = frame[0];
        consumer.release();
        return fill;
    }
};

TEST_F(FrameRing, KeepsOrderAndContentOverManyWraps) {
    uint32_t sent = 0;
    uint32_t received = 0;
    const auto length_of = [](uint32_t number) { return 1 + number * 7919 % kMaxFrame; };
    while (received < 5000) {
        while (sent < received + 20 && put(length_of(sent), static_cast<uint8_t>(sent)))
            ++sent;
        ASSERT_LT(received, sent);
        ASSERT_EQ(take(length_of(received)), static_cast<uint8_t>(received));
        ++received;
    }
}

TEST_F(FrameRing, RefusesWhenFullAndTakesMoreAfterRelease) {
    uint32_t sent = 0;
    while (put(1500, static_cast<uint8_t>(sent)))
        ++sent;
    EXPECT_GE(sent, kSize / record_bytes(1500) - 1);
    EXPECT_EQ(take(1500), 0);
    EXPECT_TRUE(put(1500, 1));
    EXPECT_FALSE(put(1500, 1));
}

TEST_F(FrameRing, StaysInItsFirstPartWhileTheConsumerKeepsUp) {
    const uint8_t* highest = data.data();
    for (int i = 0; i < 10000; ++i) {
        uint8_t* to = producer.reserve(1000);
        ASSERT_NE(to, nullptr);
        highest = std::max<const uint8_t*>(highest, to);
        std::memset(to, i & 0xff, 1000);
        producer.publish(1000);
        ASSERT_EQ(take(1000), i & 0xff);
    }
    EXPECT_LT(highest - data.data(), 64 * 1024);
}

TEST_F(FrameRing, HasItsFullSizeAfterItStartedOver) {
    for (int i = 0; i < 100; ++i) {
        put(1000, 1);
        take(1000);
    }
    uint32_t sent = 0;
    while (put(1500, static_cast<uint8_t>(sent)))
        ++sent;
    EXPECT_GE(sent, kSize / record_bytes(1500) - 1);
    for (uint32_t i = 0; i < sent; ++i)
        ASSERT_EQ(take(1500), static_cast<uint8_t>(i));
}

TEST_F(FrameRing, AnUnpublishedFrameIsInvisibleToTheConsumerAndToASuccessor) {
    std::memset(producer.reserve(100), 1, 100);
    EXPECT_TRUE(consumer.front().empty());
    FrameProducer successor(&header, data.data(), kSize);
    std::memset(successor.reserve(200), 2, 200);
    successor.publish(200);
    EXPECT_EQ(take(200), 2);
    EXPECT_TRUE(consumer.front().empty());
}

TEST_F(FrameRing, ASuccessorOfTheConsumerGoesOnAtTheOldestFrame) {
    put(100, 1);
    put(100, 2);
    take(100);
    consumer.front();
    consumer = FrameConsumer(&header, data.data(), kSize);
    EXPECT_EQ(take(100), 2);
}

TEST_F(FrameRing, ANonsenseLengthDropsWhatIsThereAndTheRingGoesOn) {
    put(100, 1);
    reinterpret_cast<FrameRecord*>(data.data())->length = 0x7fffffff;
    EXPECT_TRUE(consumer.front().empty());
    put(100, 2);
    EXPECT_EQ(take(100), 2);
}

}  // namespace
}  // namespace softcx
