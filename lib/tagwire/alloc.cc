// SPDX-License-Identifier: BSD-3-Clause
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_memory.h>

#include <algorithm>
#include <bit>
#include <climits>

#include "lib/tagwire/error.h"
#include "tagwire/memory.h"

namespace {

// rte_malloc takes it as an unsigned.
constexpr size_t kMaxAlign = size_t{1} << 30;
// rte_malloc rounds a size up, and one near the end of the numbers around to nothing.
constexpr size_t kMaxSize = size_t{1} << 46;

bool is_socket(int socket) {
    for (unsigned i = 0; i < rte_socket_count(); ++i) {
        if (rte_socket_id_by_idx(i) == socket) {
            return true;
        }
    }
    return socket == TW_SOCKET_ANY;
}

}  // namespace

static_assert(TW_SOCKET_ANY == SOCKET_ID_ANY);

void* tw_alloc(size_t size, size_t align, int socket) {
    using tagwire::fail;
    if (size == 0) {
        fail(EINVAL, "tw_alloc: size cannot be 0");
        return nullptr;
    }
    if (align > kMaxAlign || (align != 0 && !std::has_single_bit(align))) {
        fail(EINVAL, "tw_alloc: an alignment of %zu; it is 0 or a power of two up to 2^30", align);
        return nullptr;
    }
    if (!is_socket(socket)) {
        fail(EINVAL, "tw_alloc: there is no socket %d; TW_SOCKET_ANY takes any", socket);
        return nullptr;
    }
    void* memory = size > kMaxSize
                       ? nullptr
                       : rte_malloc_socket("tw_alloc", size, static_cast<unsigned>(align), socket);
    if (memory == nullptr) {
        fail(ENOMEM,
             "tw_alloc: EAL has no %zu bytes together on socket %d (start it with more, -m)", size,
             socket);
    }
    return memory;
}

void tw_free(void* memory) {
    rte_free(memory);
}
