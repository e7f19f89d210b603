// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/inline_mode.h"

#include <gtest/gtest.h>

#include <vector>

namespace tagwire::mlx5raw {
namespace {

// The first double word of the capabilities: bit 7 tag insertion, bits 18 and 19 the mode.
std::vector<uint8_t> caps(unsigned mode, bool vlan_insert) {
    return {static_cast<uint8_t>(0xe0 | (vlan_insert ? 1 : 0)), 0x0f,
            static_cast<uint8_t>(mode << 4 | 0xc0), 0xff};
}

TEST(InlineMode, OfThePart) {
    EXPECT_EQ(send_needs_of_part(0x1013), (SendNeeds{18, false}));  // ConnectX-4
    EXPECT_EQ(send_needs_of_part(0x1016), (SendNeeds{18, false}));  // ConnectX-4 Lx, VF
    EXPECT_EQ(send_needs_of_part(0x1017), (SendNeeds{0, true}));    // ConnectX-5
    EXPECT_EQ(send_needs_of_part(0x101d), (SendNeeds{0, true}));    // ConnectX-6 Dx
}

TEST(InlineMode, OfTheFirmware) {
    EXPECT_EQ(send_needs_of_firmware(caps(0, false), {}), (SendNeeds{18, false}));
    EXPECT_EQ(send_needs_of_firmware(caps(2, true), {}), (SendNeeds{0, true}));
    EXPECT_EQ(send_needs_of_firmware(caps(2, false), {}), (SendNeeds{0, false}));
}

TEST(InlineMode, OfTheVirtualPort) {
    const std::pair<uint8_t, uint32_t> kModes[] = {{0, 0}, {1, 18}, {2, 58}, {3, 78}};
    for (const auto& [mode, bytes] : kModes) {
        const std::vector<uint8_t> context = {static_cast<uint8_t>(0xf8 | mode), 0xff};
        EXPECT_EQ(send_needs_of_firmware(caps(1, true), context), (SendNeeds{bytes, true}));
        // It does not matter where the device has a mode of its own.
        EXPECT_EQ(send_needs_of_firmware(caps(2, true), context), (SendNeeds{0, true}));
    }
}

TEST(InlineMode, UnknownAnswersAreNone) {
    const std::vector<uint8_t> reserved = {4};
    EXPECT_FALSE(send_needs_of_firmware({}, {}).has_value());
    EXPECT_FALSE(send_needs_of_firmware(caps(3, true), {}).has_value());
    EXPECT_FALSE(send_needs_of_firmware(caps(1, true), {}).has_value());
    EXPECT_FALSE(send_needs_of_firmware(caps(1, true), reserved).has_value());
}

}  // namespace
}  // namespace tagwire::mlx5raw
