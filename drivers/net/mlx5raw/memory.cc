// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/memory.h"

#include <rte_memory.h>
#include <rte_mempool.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "drivers/net/mlx5raw/log.h"

namespace tagwire::mlx5raw {
namespace {

struct Chunk {
    uintptr_t base;
    uintptr_t end;
};

void collect_chunk(rte_mempool*, void* opaque, rte_mempool_memhdr* header, unsigned) {
    const auto base = reinterpret_cast<uintptr_t>(header->addr);
    static_cast<std::vector<Chunk>*>(opaque)->push_back({base, base + header->len});
}

// Chunks that touch become one: a pool of small pages then needs one region, not
// thousands.
std::vector<Chunk> chunks_of(rte_mempool* pool) {
    std::vector<Chunk> chunks;
    rte_mempool_mem_iter(pool, collect_chunk, &chunks);
    // Data rooms may lie in external memory that is pinned to the pool.
    if ((rte_pktmbuf_priv_flags(pool) & RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF) != 0) {
        chunks.clear();
        rte_mempool_obj_iter(
            pool,
            [](rte_mempool* owner, void* opaque, void* object, unsigned) {
                const auto* mbuf = static_cast<rte_mbuf*>(object);
                const auto base = reinterpret_cast<uintptr_t>(mbuf->buf_addr);
                static_cast<std::vector<Chunk>*>(opaque)->push_back(
                    {base, base + rte_pktmbuf_data_room_size(owner)});
            },
            &chunks);
    }
    std::sort(chunks.begin(), chunks.end(),
              [](const Chunk& a, const Chunk& b) { return a.base < b.base; });
    std::vector<Chunk> merged;
    for (const Chunk& chunk : chunks) {
        if (!merged.empty() && chunk.base <= merged.back().end) {
            merged.back().end = std::max(merged.back().end, chunk.end);
        } else {
            merged.push_back(chunk);
        }
    }
    return merged;
}

struct Surroundings {
    uintptr_t address;
    uintptr_t base = 0;
    uintptr_t length = 0;
};

int match_segment(const rte_memseg_list*, const rte_memseg* segment, size_t length, void* opaque) {
    auto* wanted = static_cast<Surroundings*>(opaque);
    const auto base = reinterpret_cast<uintptr_t>(segment->addr);
    if (wanted->address - base >= length) {
        return 0;
    }
    wanted->base = base;
    wanted->length = length;
    return 1;
}

}  // namespace

MemoryTable::MemoryTable(ibv_pd* pd) : pd_(pd) {
    if (rte_mempool_event_callback_register(on_pool_event, this) != 0) {
        MLX5RAW_LOG(
            WARNING,
            "cannot watch mempools: one that is freed stays registered until the port closes");
    }
}

MemoryTable::~MemoryTable() {
    rte_mempool_event_callback_unregister(on_pool_event, this);
}

void MemoryTable::on_pool_event(rte_mempool_event event, rte_mempool* pool, void* self) {
    if (event == RTE_MEMPOOL_EVENT_DESTROY) {
        static_cast<MemoryTable*>(self)->remove_pool(pool);
    }
}

Status MemoryTable::add_pool(rte_mempool* pool) {
    const std::lock_guard lock(mutex_);
    return add_pool_locked(pool);
}

Status MemoryTable::add_pool_locked(rte_mempool* pool) {
    for (const Chunk& chunk : chunks_of(pool)) {
        if (lookup(chunk.base) != nullptr) {
            continue;
        }
        if (Status status = add_range(chunk.base, chunk.end - chunk.base, pool); !status.ok()) {
            return status;
        }
    }
    return {};
}

MemoryRange MemoryTable::find(const rte_mbuf& segment) {
    const auto address = reinterpret_cast<uintptr_t>(segment.buf_addr);
    const std::lock_guard lock(mutex_);
    if (const MemoryRange* range = lookup(address); range != nullptr) {
        return *range;
    }
    // The buffer of an indirect mbuf belongs to another pool than the mbuf, an
    // external buffer to none: then what counts is where the memory lies.
    Status status;
    if (RTE_MBUF_DIRECT(&segment)) {
        status = add_pool_locked(segment.pool);
    } else {
        status = add_surroundings(address);
    }
    if (!status.ok()) {
        MLX5RAW_LOG(ERR, "%s", status.message.c_str());
    }
    const MemoryRange* range = lookup(address);
    return range != nullptr ? *range : MemoryRange{};
}

const MemoryRange* MemoryTable::lookup(uintptr_t address) const {
    for (const Region& region : regions_) {
        if (region.range.contains(address)) {
            return &region.range;
        }
    }
    return nullptr;
}

Status MemoryTable::add_range(uintptr_t base, uintptr_t length, const rte_mempool* pool) {
    MemoryRegion handle(
        ibv_reg_mr(pd_, reinterpret_cast<void*>(base), length, IBV_ACCESS_LOCAL_WRITE));
    if (handle == nullptr) {
        return failure(errno,
                       "cannot register %zu bytes of %s: %s; the limit of locked memory (ulimit "
                       "-l) must allow it",
                       static_cast<size_t>(length),
                       pool != nullptr ? pool->name : "external memory", strerror(errno));
    }
    const MemoryRange range{base, length, Be32::of(handle->lkey)};
    MLX5RAW_LOG(DEBUG, "registered %zu bytes of %s, lkey 0x%x", static_cast<size_t>(length),
                pool != nullptr ? pool->name : "external memory", handle->lkey);
    regions_.push_back({range, std::move(handle), pool});
    return {};
}

Status MemoryTable::add_surroundings(uintptr_t address) {
    Surroundings wanted{address};
    if (rte_memseg_contig_walk(match_segment, &wanted) != 1) {
        return failure(EFAULT,
                       "a buffer at 0x%zx is no DPDK memory; make it known with "
                       "rte_extmem_register(), or copy it to a mempool",
                       static_cast<size_t>(address));
    }
    return add_range(wanted.base, wanted.length, nullptr);
}

void MemoryTable::remove_pool(const rte_mempool* pool) {
    const std::lock_guard lock(mutex_);
    const auto removed =
        std::erase_if(regions_, [pool](const Region& r) { return r.pool == pool; });
    if (removed != 0) {
        generation_.fetch_add(1, std::memory_order_release);
    }
}

Be32 MemoryTable::sole_key(const rte_mempool* pool) const {
    const std::lock_guard lock(mutex_);
    Be32 key = kNoLkey;
    for (const Region& region : regions_) {
        if (region.pool == pool) {
            if (key.raw != kNoLkey.raw) {
                return kNoLkey;
            }
            key = region.range.lkey;
        }
    }
    return key;
}

size_t MemoryTable::region_count() const {
    const std::lock_guard lock(mutex_);
    return regions_.size();
}

Be32 MemoryCache::lkey_of_other(const rte_mbuf& segment, uintptr_t address) {
    for (const MemoryRange& range : recent_) {
        if (range.contains(address)) {
            last_ = range;
            return last_.lkey;
        }
    }
    const MemoryRange found = table_->find(segment);
    if (found.contains(address)) {
        recent_[next_victim_++ % recent_.size()] = found;
        last_ = found;
    }
    return found.lkey;
}

void MemoryCache::flush() {
    generation_ = table_->generation();
    last_ = MemoryRange{};
    recent_.fill(MemoryRange{});
    next_victim_ = 0;
}

}  // namespace tagwire::mlx5raw
