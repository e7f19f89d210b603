// SPDX-License-Identifier: BSD-3-Clause
#include "app/perf/sizes.h"

#include <gtest/gtest.h>

#include "app/perf/failure.h"

namespace tagwire::perf {
namespace {

TEST(Sizes, SuffixesAreBinaryMultiples) {
    EXPECT_EQ(parse_size("17"), 17u);
    EXPECT_EQ(parse_size("4K"), 4096u);
    EXPECT_EQ(parse_size("3m"), 3u << 20);
    EXPECT_EQ(parse_size("1G"), 1u << 30);
}

TEST(Sizes, RefusesWhatIsNoSize) {
    for (const char* text :
         {"", "K", "-1", "4X", "4KB", " 4", "99999999999999999999", "99999999999G"}) {
        EXPECT_THROW(parse_size(text), Failure) << text;
    }
}

TEST(Sizes, ListsKeepTheirOrder) {
    EXPECT_EQ(parse_sizes("64,8,0", 100), (std::vector<uint64_t>{64, 8, 0}));
}

TEST(Sizes, RangesDoubleAndIncludeBothEnds) {
    EXPECT_EQ(parse_sizes("0:5", 100), (std::vector<uint64_t>{0, 1, 2, 4, 5}));
    EXPECT_EQ(parse_sizes("1:8", 100), (std::vector<uint64_t>{1, 2, 4, 8}));
}

TEST(Sizes, RefusesRangesThatRunBackwardsAndSizesOverTheLimit) {
    EXPECT_THROW(parse_sizes("8:4", 100), Failure);
    EXPECT_THROW(parse_sizes("101", 100), Failure);
}

TEST(Sizes, AreReadable) {
    EXPECT_EQ(format_size(64), "64 B");
    EXPECT_EQ(format_size(1536), "1.5 KiB");
    EXPECT_EQ(format_size(uint64_t{256} << 20), "256 MiB");
    EXPECT_EQ(format_duration_ns(7310), "7.31 us");
}

}  // namespace
}  // namespace tagwire::perf
