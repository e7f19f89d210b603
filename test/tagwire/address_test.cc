// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "tagwire/tagwire.h"

namespace tagwire::test {
namespace {

std::string round_trip(const char* text) {
    tw_address address{};
    if (tw_address_parse(text, &address) != 0) {
        return tw_last_error();
    }
    char result[64];
    EXPECT_EQ(tw_address_format(&address, result, sizeof(result)), 0);
    return result;
}

TEST(Address, IsReadAndWrittenTheSame) {
    for (const char* text :
         {"192.0.2.1:4791", "192.0.2.1:4791/3", "[2001:db8::1]:1", "[::]:65535/65534"}) {
        EXPECT_EQ(round_trip(text), text);
    }
}

TEST(Address, KeepsEachPart) {
    tw_address address{};
    ASSERT_EQ(tw_address_parse("192.0.2.9:4791/3", &address), 0);
    EXPECT_EQ(address.family, 4);
    EXPECT_EQ(address.udp_port, 4791);
    EXPECT_EQ(address.endpoint, 3);
    EXPECT_EQ(address.ip[3], 9);
}

class BadAddress : public testing::TestWithParam<const char*> {};

TEST_P(BadAddress, IsRefusedWithATextAndChangesNothing) {
    tw_address address{};
    address.udp_port = 7;
    EXPECT_EQ(tw_address_parse(GetParam(), &address), -EINVAL);
    EXPECT_NE(std::string(tw_last_error()).find(GetParam()), std::string::npos);
    EXPECT_EQ(address.udp_port, 7);
}

INSTANTIATE_TEST_SUITE_P(Texts, BadAddress,
                         testing::Values("", "192.0.2.1", "192.0.2.1:", "192.0.2.1:0",
                                         "192.0.2.1:65536", "192.0.2:1", "host:1", "192.0.2.1:1/",
                                         "192.0.2.1:1/65535", "192.0.2.1:1x", "2001:db8::1:1",
                                         "[2001:db8::1]", "[192.0.2.1]:1", "[]:1"));

TEST(Address, FormatNeedsRoomForTheWholeText) {
    tw_address address{};
    ASSERT_EQ(tw_address_parse("192.0.2.1:4791", &address), 0);
    char text[15];
    EXPECT_EQ(tw_address_format(&address, text, sizeof(text)), 0);
    EXPECT_EQ(tw_address_format(&address, text, sizeof(text) - 1), -ENOSPC);
}

TEST(Address, FormatRefusesAnUnknownFamily) {
    tw_address address{};
    address.udp_port = 1;
    char text[64];
    EXPECT_EQ(tw_address_format(&address, text, sizeof(text)), -EINVAL);
}

}  // namespace
}  // namespace tagwire::test
