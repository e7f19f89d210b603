// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/devargs.h"

#include <gtest/gtest.h>

namespace tagwire::mlx5raw {
namespace {

TEST(Devargs, NoneGivesTheDefaults) {
    Devargs arguments;
    ASSERT_TRUE(parse_devargs("", arguments).ok());
    EXPECT_EQ(arguments.ibdev, "");
    EXPECT_EQ(arguments.port, 1u);
    EXPECT_FALSE(arguments.tx.inline_min.has_value());
    EXPECT_EQ(arguments.reta_size, 128u);
}

TEST(Devargs, AllOfThem) {
    Devargs arguments;
    ASSERT_TRUE(
        parse_devargs("ibdev=mlx5_3,port=2,mac=02:00:00:00:00:09,txq_inline_min=18,reta_size=512",
                      arguments)
            .ok());
    EXPECT_EQ(arguments.ibdev, "mlx5_3");
    EXPECT_EQ(arguments.port, 2u);
    EXPECT_EQ(arguments.mac, "02:00:00:00:00:09");
    EXPECT_EQ(arguments.tx.inline_min.value(), 18u);
    EXPECT_EQ(arguments.reta_size, 512u);
}

class BadDevargs : public testing::TestWithParam<const char*> {};

TEST_P(BadDevargs, AreRefusedWithAReason) {
    Devargs arguments;
    const Status status = parse_devargs(GetParam(), arguments);
    EXPECT_EQ(status.code, -EINVAL);
    EXPECT_FALSE(status.message.empty());
}

INSTANTIATE_TEST_SUITE_P(All, BadDevargs,
                         testing::Values("nonsense=1", "port=0", "port=256", "port=x", "port=-1",
                                         "port=", "txq_inline_min=1", "reta_size=0",
                                         "reta_size=100", "reta_size=1024", "mac=01:00:5e:00:00:01",
                                         "mac=hello", "ibdev=", "port=1,port=2", "rx_vec_en=2",
                                         "rxq_cqe_comp_en=2", "mprq_en=yes", "mprq_en=2"));

}  // namespace
}  // namespace tagwire::mlx5raw
