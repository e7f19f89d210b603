// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/memory_chunks.h"

#include <rte_mbuf.h>
#include <unistd.h>

#include <algorithm>

namespace tagwire::mlx5raw {
namespace {

void collect_chunk(rte_mempool*, void* opaque, rte_mempool_memhdr* header, unsigned) {
    const auto base = reinterpret_cast<uintptr_t>(header->addr);
    static_cast<std::vector<Chunk>*>(opaque)->push_back({base, base + header->len});
}

void collect_room(rte_mempool* pool, void* opaque, void* object, unsigned) {
    const auto base = reinterpret_cast<uintptr_t>(static_cast<rte_mbuf*>(object)->buf_addr);
    static_cast<std::vector<Chunk>*>(opaque)->push_back(
        {base, base + rte_pktmbuf_data_room_size(pool)});
}

}  // namespace

std::vector<Chunk> merge_chunks(std::vector<Chunk> chunks, uintptr_t page) {
    std::sort(chunks.begin(), chunks.end(),
              [](const Chunk& a, const Chunk& b) { return a.base < b.base; });
    std::vector<Chunk> merged;
    for (const Chunk& chunk : chunks) {
        if (!merged.empty() &&
            (chunk.base <= merged.back().end || chunk.base - merged.back().end < page)) {
            merged.back().end = std::max(merged.back().end, chunk.end);
        } else {
            merged.push_back(chunk);
        }
    }
    return merged;
}

std::vector<Chunk> chunks_of(rte_mempool* pool) {
    std::vector<Chunk> chunks;
    // Data rooms in external memory, pinned to the mbufs: they may lie anywhere.
    if ((rte_pktmbuf_priv_flags(pool) & RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF) != 0) {
        rte_mempool_obj_iter(pool, collect_room, &chunks);
    } else {
        rte_mempool_mem_iter(pool, collect_chunk, &chunks);
    }
    return merge_chunks(std::move(chunks), static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)));
}

std::vector<Chunk> subtract(const std::vector<Chunk>& chunks, const Chunk& hole) {
    std::vector<Chunk> left;
    for (const Chunk& chunk : chunks) {
        if (hole.end <= chunk.base || chunk.end <= hole.base) {
            left.push_back(chunk);
            continue;
        }
        if (chunk.base < hole.base) {
            left.push_back({chunk.base, hole.base});
        }
        if (hole.end < chunk.end) {
            left.push_back({hole.end, chunk.end});
        }
    }
    return left;
}

}  // namespace tagwire::mlx5raw
