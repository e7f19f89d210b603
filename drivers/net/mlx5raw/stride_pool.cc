// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/stride_pool.h"

#include <rte_errno.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include "drivers/net/mlx5raw/log.h"

namespace tagwire::mlx5raw {
namespace {

struct Layout {
    StrideGeometry geometry;

    size_t windows_offset() const {
        return RTE_ALIGN_CEIL(
            sizeof(StrideBuffer) + sizeof(rte_mbuf_ext_shared_info) * geometry.strides(),
            size_t{RTE_CACHE_LINE_SIZE});
    }
    // The first packet has a headroom too.
    size_t size() const {
        return windows_offset() + RTE_PKTMBUF_HEADROOM +
               (size_t{geometry.strides()} << geometry.log_bytes);
    }
};

void release_packet(void*, void* buffer) {
    static_cast<StrideBuffer*>(buffer)->release(1);
}

void construct_buffer(rte_mempool* pool, void* opaque, void* object, unsigned) {
    const Layout& layout = *static_cast<const Layout*>(opaque);
    auto* const buffer = new (object) StrideBuffer();
    buffer->pool = pool;
    buffer->windows = static_cast<uint8_t*>(object) + layout.windows_offset();
    buffer->iova = rte_mempool_virt2iova(object) + layout.windows_offset();
    for (uint32_t i = 0; i < layout.geometry.strides(); ++i) {
        auto* const shared = new (&buffer->shared()[i]) rte_mbuf_ext_shared_info();
        shared->free_cb = release_packet;
        shared->fcb_opaque = buffer;
    }
}

// The memory table asks pools whether they are of mbufs with external memory.
void clear_private_part(rte_mempool* pool, void*) {
    memset(rte_mempool_get_priv(pool), 0, sizeof(rte_pktmbuf_pool_private));
}

void set_key(rte_mempool*, void* table, void* object, unsigned) {
    auto* const buffer = static_cast<StrideBuffer*>(object);
    buffer->lkey =
        static_cast<MemoryTable*>(table)->key_at(reinterpret_cast<uintptr_t>(buffer->windows));
}

// Pools that their queue left while packets of theirs were out.
class Retired {
  public:
    void add(rte_mempool* pool) {
        const std::lock_guard lock(mutex_);
        pools_.push_back(pool);
        free_full();
    }
    void reap() {
        const std::lock_guard lock(mutex_);
        free_full();
    }

  private:
    void free_full() {
        std::erase_if(pools_, [](rte_mempool* pool) {
            const bool full = rte_mempool_full(pool) != 0;
            if (full) {
                rte_mempool_free(pool);
            }
            return full;
        });
    }

    std::mutex mutex_;
    std::vector<rte_mempool*> pools_;
};

Retired& retired() {
    static Retired instance;
    return instance;
}

}  // namespace

Status StridePool::create(const std::string& owner, const StrideGeometry& geometry, int socket,
                          MemoryTable& table) {
    retired().reap();
    static std::atomic<unsigned> number = 0;  // a retired pool keeps its name
    const std::string name = "mprq_" + std::to_string(number.fetch_add(1));
    Layout layout{geometry};
    const uint32_t count = geometry.wqes * 4;
    pool_ = rte_mempool_create(name.c_str(), count, static_cast<unsigned>(layout.size()), 0,
                               sizeof(rte_pktmbuf_pool_private), clear_private_part, nullptr,
                               construct_buffer, &layout, socket, 0);
    if (pool_ == nullptr) {
        return failure(rte_errno,
                       "%s: no memory for %u buffers of %zu bytes (%s); give EAL more (-m), or "
                       "use fewer descriptors",
                       owner.c_str(), count, layout.size(), rte_strerror(rte_errno));
    }
    references_ = geometry.strides() + 1;
    if (Status status = table.add_pool(pool_); !status.ok()) {
        destroy();
        return status;
    }
    rte_mempool_obj_iter(pool_, set_key, &table);
    return {};
}

void StridePool::destroy() {
    if (pool_ == nullptr) {
        return;
    }
    if (rte_mempool_full(pool_) == 0) {
        MLX5RAW_LOG(DEBUG, "buffers of pool %s are still in packets; it is freed later",
                    pool_->name);
    }
    retired().add(pool_);
    pool_ = nullptr;
}

}  // namespace tagwire::mlx5raw
