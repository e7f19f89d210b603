// SPDX-License-Identifier: BSD-3-Clause
#include "app/perf/percentiles.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tagwire::perf {
namespace {

TEST(Percentiles, NearestRank) {
    std::vector<double> samples(1000);
    std::iota(samples.begin(), samples.end(), 1);
    EXPECT_EQ(percentile(samples, 50), 500);
    EXPECT_EQ(percentile(samples, 99), 990);
    EXPECT_EQ(percentile(samples, 99.9), 999);
    EXPECT_EQ(percentile(samples, 100), 1000);
    EXPECT_EQ(percentile(samples, 0), 1);
}

TEST(Percentiles, OneSampleIsEveryPercentile) {
    EXPECT_EQ(percentile({7}, 50), 7);
    EXPECT_EQ(percentile({7}, 99.9), 7);
}

}  // namespace
}  // namespace tagwire::perf
