// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/stride_geometry.h"

#include <gtest/gtest.h>

#include "drivers/net/mlx5raw/devargs.h"

namespace tagwire::mlx5raw {
namespace {

constexpr StridingLimits kLimits{6, 13, 3, 16};
constexpr uint32_t kFrame = 1522, kRoom = 2048;

std::string refusal(const RxArguments& arguments, uint32_t frame = kFrame,
                    uint32_t descriptors = 512, uint32_t room = kRoom,
                    const StridingLimits& limits = kLimits) {
    StrideGeometry geometry;
    const Status status = choose_strides(arguments, limits, frame, descriptors, room, geometry);
    return status.ok() ? "" : status.message;
}

TEST(StrideGeometry, WhatNobodyChose) {
    StrideGeometry geometry;
    ASSERT_TRUE(choose_strides({}, kLimits, kFrame, 512, kRoom, geometry).ok());
    EXPECT_EQ(geometry.wqes, 8u);
    EXPECT_EQ(geometry.strides(), 64u);
    EXPECT_EQ(geometry.bytes(), 2048u);
    EXPECT_EQ(geometry.most_copied, 128u);
}

TEST(StrideGeometry, AFewDescriptorsStillMakeTwoBuffers) {
    StrideGeometry geometry;
    ASSERT_TRUE(choose_strides({}, kLimits, kFrame, 64, kRoom, geometry).ok());
    EXPECT_EQ(geometry.wqes, 2u);
    EXPECT_EQ(geometry.strides(), 32u);
}

TEST(StrideGeometry, AStrideHoldsAFrameAndTheHeadroomOfTheNext) {
    StrideGeometry geometry;
    ASSERT_TRUE(choose_strides({}, kLimits, 2048 - 128, 512, 4096, geometry).ok());
    EXPECT_EQ(geometry.bytes(), 2048u);
    ASSERT_TRUE(choose_strides({}, kLimits, 2048 - 127, 512, 4096, geometry).ok());
    EXPECT_EQ(geometry.bytes(), 4096u);
    EXPECT_NE(refusal({.log_stride_bytes = 10}).find("need 11"), std::string::npos);
}

TEST(StrideGeometry, WhatTheDeviceCannotIsNamed) {
    EXPECT_NE(refusal({}, kFrame, 512, kRoom, {}).find("no striding receive queues"),
              std::string::npos);
    EXPECT_NE(refusal({.log_stride_bytes = 14}).find("takes 6 to 13"), std::string::npos);
    EXPECT_NE(refusal({.log_strides = 2}).find("takes 3 to 16"), std::string::npos);
    EXPECT_NE(refusal({.log_strides = 17}).find("takes 3 to 16"), std::string::npos);
    EXPECT_NE(refusal({}, 9022, 512, 9216).find("largest stride"), std::string::npos);
}

TEST(StrideGeometry, OneBufferOrSmallMbufsAreRefused) {
    EXPECT_NE(refusal({.log_strides = 9}).find("less than two buffers"), std::string::npos);
    EXPECT_EQ(refusal({.log_strides = 8}), "");
    EXPECT_NE(refusal({}, kFrame, 512, 1535).find("larger mbufs"), std::string::npos);
    EXPECT_EQ(refusal({}, kFrame, 512, 1536), "");
}

TEST(StrideGeometry, ArgumentsOfStridingQueuesNeedThem) {
    Devargs arguments;
    for (const char* text :
         {"mprq_log_stride_num=6", "mprq_log_stride_size=11", "mprq_max_memcpy_len=0"}) {
        EXPECT_FALSE(parse_devargs(text, arguments).ok()) << text;
    }
    Devargs all;
    ASSERT_TRUE(parse_devargs("mprq_max_memcpy_len=0,mprq_log_stride_num=5,mprq_en=1,"
                              "mprq_log_stride_size=12",
                              all)
                    .ok());
    EXPECT_TRUE(all.rx.striding);
    EXPECT_EQ(all.rx.log_strides, 5u);
    EXPECT_EQ(all.rx.log_stride_bytes, 12u);
    EXPECT_EQ(all.rx.most_copied, 0u);
}

}  // namespace
}  // namespace tagwire::mlx5raw
