// SPDX-License-Identifier: BSD-3-Clause
// A block of EAL's memory (hugepages, unless EAL was started without) on the socket of
// the calling lcore.
#pragma once

#include <rte_lcore.h>
#include <rte_malloc.h>

#include <cstddef>
#include <memory>

namespace tagwire {

struct FreeHugeMemory {
    void operator()(std::byte* memory) const { rte_free(memory); }
};
using HugeMemory = std::unique_ptr<std::byte, FreeHugeMemory>;

// Null when there is not enough.
inline HugeMemory huge_memory(const char* what, size_t bytes, unsigned alignment) {
    return HugeMemory(static_cast<std::byte*>(
        rte_malloc_socket(what, bytes, alignment, static_cast<int>(rte_socket_id()))));
}

inline HugeMemory zeroed_huge_memory(const char* what, size_t bytes, unsigned alignment) {
    return HugeMemory(static_cast<std::byte*>(
        rte_zmalloc_socket(what, bytes, alignment, static_cast<int>(rte_socket_id()))));
}

}  // namespace tagwire
