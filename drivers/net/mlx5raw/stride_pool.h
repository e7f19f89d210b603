// SPDX-License-Identifier: BSD-3-Clause
// Buffers of a striding receive queue. Packets lie in them as external buffers of mbufs;
// a buffer goes back to its pool when the queue and the last of its packets let it go.
#pragma once

#include <rte_common.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "drivers/net/mlx5raw/memory.h"
#include "drivers/net/mlx5raw/stride_geometry.h"

namespace tagwire::mlx5raw {

// In front of the strides, and of as many rte_mbuf_ext_shared_info.
struct alignas(RTE_CACHE_LINE_SIZE) StrideBuffer {
    rte_mempool* pool;
    // From when the queue takes it: one per stride and one. The queue gives back at the end what
    // it did not hand out.
    std::atomic<uint32_t> references;
    Be32 lkey;
    rte_iova_t iova;   // of `windows`
    uint8_t* windows;  // stride i of the mbufs: headroom, then the packet

    rte_mbuf_ext_shared_info* shared() {
        return reinterpret_cast<rte_mbuf_ext_shared_info*>(this + 1);
    }
    void release(uint32_t count) {
        if (references.fetch_sub(count, std::memory_order_acq_rel) == count) {
            rte_mempool_put(pool, this);
        }
    }
};
static_assert(sizeof(StrideBuffer) == RTE_CACHE_LINE_SIZE);

class StridePool {
  public:
    StridePool() = default;
    ~StridePool() { destroy(); }
    StridePool(const StridePool&) = delete;
    StridePool& operator=(const StridePool&) = delete;

    // Memory for the ring, and as much three times more for packets that the application
    // keeps; registered in `table`.
    Status create(const std::string& owner, const StrideGeometry& geometry, int socket,
                  MemoryTable& table);
    // Packets that are still out keep the memory; it is freed later, when a pool of any queue
    // comes or goes.
    void destroy();

    // Null when all are in use.
    StrideBuffer* take() {
        void* object = nullptr;
        if (unlikely(rte_mempool_get(pool_, &object) != 0)) {
            return nullptr;
        }
        auto* const buffer = static_cast<StrideBuffer*>(object);
        buffer->references.store(references_, std::memory_order_relaxed);
        return buffer;
    }
    const rte_mempool* pool() const { return pool_; }

  private:
    rte_mempool* pool_ = nullptr;
    uint32_t references_ = 0;
};

}  // namespace tagwire::mlx5raw
