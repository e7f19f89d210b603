// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/memory.h"

#include <rte_errno.h>
#include <rte_memory.h>
#include <rte_mempool.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "drivers/net/mlx5raw/log.h"

namespace tagwire::mlx5raw {

MemoryTable::MemoryTable(ibv_pd* pd) : pd_(pd) {
    if (rte_mempool_event_callback_register(on_pool_event, this) != 0) {
        MLX5RAW_LOG(
            WARNING,
            "cannot watch mempools: one that is freed stays registered until the port closes");
    }
    char name[RTE_MEM_EVENT_CALLBACK_NAME_LEN];
    snprintf(name, sizeof(name), "mlx5raw_%p", static_cast<void*>(this));
    if (rte_mem_event_callback_register(name, on_memory_event, this) == 0) {
        callback_name_ = name;
    } else if (rte_errno != ENOTSUP) {  // --no-huge, --legacy-mem: pages never go
        MLX5RAW_LOG(WARNING,
                    "cannot watch EAL's memory (%s): pages that it gives back stay registered "
                    "until the port closes",
                    rte_strerror(rte_errno));
    }
}

MemoryTable::~MemoryTable() {
    rte_mempool_event_callback_unregister(on_pool_event, this);
    if (!callback_name_.empty()) {
        rte_mem_event_callback_unregister(callback_name_.c_str(), this);
    }
}

void MemoryTable::on_pool_event(rte_mempool_event event, rte_mempool* pool, void* self) {
    if (event == RTE_MEMPOOL_EVENT_DESTROY) {
        static_cast<MemoryTable*>(self)->remove_pool(pool);
    }
}

void MemoryTable::on_memory_event(rte_mem_event event, const void* address, size_t length,
                                  void* self) {
    if (event == RTE_MEM_EVENT_FREE) {
        static_cast<MemoryTable*>(self)->forget(reinterpret_cast<uintptr_t>(address), length);
    }
}

Be32 MemoryTable::key_at(uintptr_t address) const {
    const std::lock_guard lock(mutex_);
    const MemoryRange* const range = lookup(address);
    return range != nullptr ? range->lkey : kNoLkey;
}

Status MemoryTable::add_pool(rte_mempool* pool) {
    const std::vector<Chunk> chunks = chunks_of(pool);
    const std::lock_guard lock(mutex_);
    for (const Chunk& chunk : chunks) {
        if (covers(chunk)) {
            continue;
        }
        if (Status status = add_range(chunk.base, chunk.end - chunk.base, pool); !status.ok()) {
            return status;
        }
    }
    return {};
}

Status MemoryTable::add_external(uintptr_t base, uintptr_t length) {
    const std::lock_guard lock(mutex_);
    return covers({base, base + length}) ? Status{} : add_range(base, length, nullptr);
}

MemoryRange MemoryTable::find(const rte_mbuf& segment) {
    const auto address = reinterpret_cast<uintptr_t>(segment.buf_addr);
    {
        const std::lock_guard lock(mutex_);
        if (const MemoryRange* range = lookup(address); range != nullptr) {
            return *range;
        }
    }
    // The buffer of an indirect mbuf belongs to another pool than the mbuf, an
    // external buffer to none: then what counts is where the memory lies.
    const bool of_pool = RTE_MBUF_DIRECT(&segment) || (rte_pktmbuf_priv_flags(segment.pool) &
                                                       RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF) != 0;
    const Status status = of_pool ? add_pool(segment.pool) : add_surroundings(address);
    if (!status.ok()) {
        rte_log(warned_.exchange(true) ? RTE_LOG_DEBUG : RTE_LOG_ERR, log_type,
                "net_mlx5raw: %s (further ones are only counted: tx_qN_dropped_no_memory_key)\n",
                status.message.c_str());
    }
    const std::lock_guard lock(mutex_);
    const MemoryRange* range = lookup(address);
    return range != nullptr ? *range : MemoryRange{};
}

const MemoryRange* MemoryTable::lookup(uintptr_t address) const {
    for (const Region& region : regions_) {
        if (region.range.contains(address) && region.whole()) {
            return &region.range;
        }
    }
    return nullptr;
}

bool MemoryTable::covers(const Chunk& chunk) const {
    const MemoryRange* range = lookup(chunk.base);
    return range != nullptr && range->contains(chunk.end - 1);
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
    regions_.push_back({range, std::move(handle), pool, {{base, base + length}}});
    return {};
}

namespace {

struct Surroundings {
    MemoryTable* table;
    uintptr_t address;
    Status status;
};

}  // namespace

int MemoryTable::register_around(const rte_memseg_list*, const rte_memseg* segment, size_t length,
                                 void* opaque) {
    auto* wanted = static_cast<Surroundings*>(opaque);
    const auto base = reinterpret_cast<uintptr_t>(segment->addr);
    if (wanted->address - base >= length) {
        return 0;
    }
    wanted->status = wanted->table->add_external(base, length);
    return 1;
}

// Registered during the walk: EAL keeps the memory map as it is until it ends.
Status MemoryTable::add_surroundings(uintptr_t address) {
    Surroundings wanted{this, address, {}};
    if (rte_memseg_contig_walk(register_around, &wanted) != 1) {
        return failure(EFAULT,
                       "a buffer at 0x%zx is no DPDK memory; make it known with "
                       "rte_extmem_register(), or copy it to a mempool",
                       static_cast<size_t>(address));
    }
    return wanted.status;
}

void MemoryTable::remove_pool(const rte_mempool* pool) {
    const std::lock_guard lock(mutex_);
    const auto removed =
        std::erase_if(regions_, [pool](const Region& r) { return r.pool == pool; });
    if (removed != 0) {
        generation_.fetch_add(1, std::memory_order_release);
    }
}

void MemoryTable::forget(uintptr_t base, uintptr_t length) {
    const std::lock_guard lock(mutex_);
    bool changed = false;
    for (Region& region : regions_) {
        std::vector<Chunk> left = subtract(region.live, {base, base + length});
        changed |= left != region.live;
        region.live = std::move(left);
    }
    if (!changed) {
        return;
    }
    std::erase_if(regions_, [](const Region& r) { return r.live.empty(); });
    generation_.fetch_add(1, std::memory_order_release);
}

Be32 MemoryTable::sole_key(rte_mempool* pool) const {
    const std::vector<Chunk> chunks = chunks_of(pool);
    const std::lock_guard lock(mutex_);
    Be32 key = kNoLkey;
    for (const Chunk& chunk : chunks) {
        const MemoryRange* range = covers(chunk) ? lookup(chunk.base) : nullptr;
        if (range == nullptr || (key.raw != kNoLkey.raw && key.raw != range->lkey.raw)) {
            return kNoLkey;
        }
        key = range->lkey;
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
