// SPDX-License-Identifier: BSD-3-Clause
// Address ranges, and which of them a mempool's buffers lie in.
#pragma once

#include <rte_mempool.h>

#include <cstdint>
#include <vector>

namespace tagwire::mlx5raw {

struct Chunk {
    uintptr_t base;
    uintptr_t end;

    bool operator==(const Chunk&) const = default;
};

// Sorted; neighbours with less than a page between them become one: a pool of small pages
// then needs one registration, not thousands. A gap of less than a page contains no page
// that the neighbours have no part of, so nothing foreign is registered.
std::vector<Chunk> merge_chunks(std::vector<Chunk> chunks, uintptr_t page);

// Where the buffers of the pool's mbufs are.
std::vector<Chunk> chunks_of(rte_mempool* pool);

// What is left of `chunks` without `hole`.
std::vector<Chunk> subtract(const std::vector<Chunk>& chunks, const Chunk& hole);

}  // namespace tagwire::mlx5raw
