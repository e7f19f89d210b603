// SPDX-License-Identifier: BSD-3-Clause
#include "app/testpmd/tag_content.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "app/testpmd/tag_control.h"

namespace tagwire::testpmd {
namespace {

const MessageName kName{0x1234567890abcdef, 77, 1000};

std::vector<std::byte> content(const MessageName& name, size_t size) {
    std::vector<std::byte> data(size);
    fill_content(name, data.data(), size);
    return data;
}

TEST(TagContent, IsRightAsItWasFilled) {
    for (size_t size = 0; size < 100; ++size) {
        EXPECT_TRUE(content_is_right(kName, content(kName, size).data(), size)) << size;
    }
}

TEST(TagContent, EveryBitCounts) {
    for (const size_t size : {1u, 7u, 8u, 9u, 64u, 67u}) {
        std::vector<std::byte> data = content(kName, size);
        for (size_t bit = 0; bit < 8 * size; ++bit) {
            data[bit / 8] ^= std::byte{1} << bit % 8;
            EXPECT_FALSE(content_is_right(kName, data.data(), size)) << size << " " << bit;
            data[bit / 8] ^= std::byte{1} << bit % 8;
        }
    }
}

TEST(TagContent, IsAnothersForAnotherName) {
    const std::vector<std::byte> data = content(kName, 8);
    for (const MessageName& other : {MessageName{kName.run + 1, kName.tag, kName.sequence},
                                     MessageName{kName.run, kName.tag + 1, kName.sequence},
                                     MessageName{kName.run, kName.tag, kName.sequence + 1}}) {
        EXPECT_FALSE(content_is_right(other, data.data(), data.size()));
    }
}

TEST(TagContent, WordsOfAMessageDiffer) {
    const std::vector<std::byte> data = content(kName, 8192);
    const auto* words = reinterpret_cast<const uint64_t*>(data.data());
    EXPECT_EQ(std::set<uint64_t>(words, words + 1024).size(), 1024u);
}

TEST(TagDigest, ToldByNameAndSize) {
    std::set<uint64_t> digests;
    for (uint64_t tag = 0; tag < 10; ++tag) {
        for (uint64_t sequence = 0; sequence < 10; ++sequence) {
            for (size_t size = 0; size < 10; ++size) {
                digests.insert(message_digest({1, tag, sequence}, size));
            }
        }
    }
    EXPECT_EQ(digests.size(), 1000u);
}

TEST(TagControl, ComesBackAsItWas) {
    Control control;
    control.kind = ControlKind::kReport;
    control.mode = TagMode::kSink;
    control.run = 0x0102030405060708;
    control.sender.family = 4;
    control.sender.udp_port = 18516;
    control.sender.endpoint = 3;
    control.sender.ip[0] = 10;
    control.largest = 1;
    control.messages = 2;
    control.bytes = 3;
    control.digest = 4;
    control.mismatches = 5;
    std::byte data[kControlSize];
    encode_control(control, data);
    Control decoded;
    ASSERT_TRUE(decode_control(data, sizeof(data), &decoded));
    EXPECT_EQ(decoded.kind, control.kind);
    EXPECT_EQ(decoded.mode, control.mode);
    EXPECT_EQ(decoded.run, control.run);
    EXPECT_EQ(decoded.sender.udp_port, control.sender.udp_port);
    EXPECT_EQ(decoded.sender.endpoint, control.sender.endpoint);
    EXPECT_EQ(decoded.sender.ip[0], 10);
    EXPECT_EQ(decoded.largest, 1u);
    EXPECT_EQ(decoded.messages, 2u);
    EXPECT_EQ(decoded.bytes, 3u);
    EXPECT_EQ(decoded.digest, 4u);
    EXPECT_EQ(decoded.mismatches, 5u);
}

TEST(TagControl, OfAnotherKindIsRefused) {
    std::byte data[kControlSize];
    Control control;
    control.kind = ControlKind::kHello;
    encode_control(control, data);
    EXPECT_FALSE(decode_control(data, sizeof(data) - 1, &control));
    for (const size_t at : {0u, 4u, 5u, 6u}) {  // magic, version, kind, mode
        data[at] ^= std::byte{0x80};
        EXPECT_FALSE(decode_control(data, sizeof(data), &control)) << at;
        data[at] ^= std::byte{0x80};
    }
    EXPECT_TRUE(decode_control(data, sizeof(data), &control));
}

}  // namespace
}  // namespace tagwire::testpmd
