// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/memory_chunks.h"

#include <gtest/gtest.h>

namespace tagwire::mlx5raw {
namespace {

using Chunks = std::vector<Chunk>;

TEST(MemoryChunks, NeighboursBecomeOne) {
    EXPECT_EQ(merge_chunks({{3000, 4000}, {1000, 2000}, {2000, 3000}}, 4096),
              (Chunks{{1000, 4000}}));
    EXPECT_EQ(merge_chunks({{0, 9000}, {1000, 2000}}, 4096), (Chunks{{0, 9000}}));
}

TEST(MemoryChunks, AGapOfAPageSeparates) {
    EXPECT_EQ(merge_chunks({{0, 1000}, {5095, 6000}}, 4096), (Chunks{{0, 6000}}));
    EXPECT_EQ(merge_chunks({{0, 1000}, {5096, 6000}}, 4096), (Chunks{{0, 1000}, {5096, 6000}}));
}

TEST(MemoryChunks, WhatAHoleLeaves) {
    const Chunks all = {{100, 200}, {300, 400}};
    EXPECT_EQ(subtract(all, {200, 300}), all);
    EXPECT_EQ(subtract(all, {0, 1000}), Chunks{});
    EXPECT_EQ(subtract(all, {150, 350}), (Chunks{{100, 150}, {350, 400}}));
    EXPECT_EQ(subtract(all, {120, 130}), (Chunks{{100, 120}, {130, 200}, {300, 400}}));
    EXPECT_EQ(subtract(all, {100, 200}), (Chunks{{300, 400}}));
}

}  // namespace
}  // namespace tagwire::mlx5raw
