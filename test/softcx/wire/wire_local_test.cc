// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "drivers/softcx/wire/wire.h"

namespace softcx {
namespace {

std::unique_ptr<Wire> must_open(const std::string& specification, uint32_t index) {
    std::string error;
    std::unique_ptr<Wire> wire = open_wire(specification, index, &error);
    EXPECT_NE(wire, nullptr) << error;
    return wire;
}

bool send(Wire& wire, const std::vector<uint8_t>& frame) {
    const Wire::Piece piece{frame.data(), static_cast<uint32_t>(frame.size())};
    return wire.send({&piece, 1}, piece.length);
}

std::vector<uint8_t> receive(Wire& wire) {
    const std::span<const uint8_t> frame = wire.receive();
    std::vector<uint8_t> copy(frame.begin(), frame.end());
    if (!copy.empty())
        wire.release();
    return copy;
}

TEST(PairWire, CarriesFramesBothWays) {
    const auto left = must_open("pair", 0);
    const auto right = must_open("pair", 1);
    EXPECT_TRUE(send(*left, std::vector<uint8_t>(60, 1)));
    EXPECT_TRUE(send(*right, std::vector<uint8_t>(9000, 2)));
    EXPECT_EQ(receive(*right), std::vector<uint8_t>(60, 1));
    EXPECT_EQ(receive(*left), std::vector<uint8_t>(9000, 2));
    EXPECT_TRUE(receive(*left).empty());
}

TEST(PairWire, JoinsTwoNeighboursOnly) {
    const auto a = must_open("pair", 2);
    const auto b = must_open("pair", 3);
    const auto c = must_open("pair", 4);
    const auto d = must_open("pair", 5);
    send(*a, std::vector<uint8_t>(60, 1));
    EXPECT_TRUE(receive(*c).empty());
    EXPECT_TRUE(receive(*d).empty());
    EXPECT_FALSE(receive(*b).empty());
}

TEST(PairWire, IsUpOnlyWithBothEndsPlugged) {
    const auto left = must_open("pair", 0);
    EXPECT_FALSE(left->link_up());
    auto right = must_open("pair", 1);
    EXPECT_TRUE(left->link_up());
    right.reset();
    EXPECT_FALSE(left->link_up());
}

TEST(PairWire, AnEndIsPluggedOnce) {
    const auto left = must_open("pair", 0);
    std::string error;
    EXPECT_EQ(open_wire("pair", 0, &error), nullptr);
    EXPECT_NE(error.find("in use"), std::string::npos) << error;
}

TEST(PairWire, JoinsThePiecesOfAFrame) {
    const auto left = must_open("pair", 0);
    const auto right = must_open("pair", 1);
    const std::vector<uint8_t> a(3, 1), b(70, 2);
    const Wire::Piece pieces[] = {{a.data(), 3}, {b.data(), 70}};
    ASSERT_TRUE(left->send(pieces, 73));
    std::vector<uint8_t> expected = a;
    expected.insert(expected.end(), b.begin(), b.end());
    EXPECT_EQ(receive(*right), expected);
}

TEST(PairWire, DropsAtTheTailWhenNobodyReads) {
    const auto left = must_open("pair", 0);
    const auto right = must_open("pair", 1);
    uint32_t sent = 0;
    while (send(*left, std::vector<uint8_t>(1514, static_cast<uint8_t>(sent))))
        ++sent;
    for (uint32_t i = 0; i < sent; ++i)
        ASSERT_EQ(receive(*right), std::vector<uint8_t>(1514, static_cast<uint8_t>(i)));
    EXPECT_TRUE(receive(*right).empty());
    EXPECT_TRUE(send(*left, std::vector<uint8_t>(1514)));
}

TEST(LoopbackWire, ReturnsWhatWasSent) {
    const auto wire = must_open("loopback", 0);
    EXPECT_TRUE(wire->link_up());
    send(*wire, std::vector<uint8_t>(64, 3));
    EXPECT_EQ(receive(*wire), std::vector<uint8_t>(64, 3));
}

TEST(OpenWire, NamesABadSpecification) {
    std::string error;
    EXPECT_EQ(open_wire("tin-can", 0, &error), nullptr);
    EXPECT_NE(error.find("no such wire"), std::string::npos) << error;
    EXPECT_EQ(open_wire("switch:../etc", 0, &error), nullptr);
    EXPECT_NE(error.find("bad switch name"), std::string::npos) << error;
}

}  // namespace
}  // namespace softcx
