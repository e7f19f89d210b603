// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include <cstdint>
#include <cstring>

#include "tagwire/tagwire.h"

namespace tagwire::test {
namespace {

TEST(Alloc, gives_memory_of_eal_that_is_aligned) {
    for (const size_t align : {size_t{0}, size_t{1}, size_t{64}, size_t{4096}, size_t{1} << 20}) {
        void* memory = tw_alloc(5000, align, TW_SOCKET_ANY);
        ASSERT_NE(memory, nullptr) << tw_last_error();
        EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % (align == 0 ? 64 : align), 0u);
        std::memset(memory, 0x5a, 5000);
        EXPECT_NE(rte_mem_virt2memseg_list(memory), nullptr);
        tw_free(memory);
    }
    tw_free(nullptr);
}

TEST(Alloc, takes_a_socket) {
    void* memory = tw_alloc(64, 0, rte_socket_id_by_idx(0));
    EXPECT_NE(memory, nullptr) << tw_last_error();
    tw_free(memory);
}

TEST(Alloc, says_what_is_wrong) {
    EXPECT_EQ(tw_alloc(0, 0, TW_SOCKET_ANY), nullptr);
    EXPECT_EQ(tw_alloc(64, 3, TW_SOCKET_ANY), nullptr);
    EXPECT_NE(std::strstr(tw_last_error(), "power of two"), nullptr);
    EXPECT_EQ(tw_alloc(64, 0, 77), nullptr);
    EXPECT_NE(std::strstr(tw_last_error(), "socket 77"), nullptr);
    EXPECT_EQ(tw_alloc(size_t{1} << 40, 0, TW_SOCKET_ANY), nullptr);
    EXPECT_NE(std::strstr(tw_last_error(), "-m"), nullptr);
}

TEST(Alloc, gives_what_was_freed_again) {
    for (int i = 0; i < 200; ++i) {  // 64 MiB are there in all
        void* memory = tw_alloc(8 << 20, 0, TW_SOCKET_ANY);
        ASSERT_NE(memory, nullptr) << tw_last_error();
        tw_free(memory);
    }
}

}  // namespace
}  // namespace tagwire::test
