// SPDX-License-Identifier: BSD-3-Clause
// Memory registration. A port registers each chunk of a mempool once, with one
// memory region; a queue keeps the last few ranges that it used beside its ring.
//
// Memory goes in four ways, and each takes its registration along: a mempool is freed, EAL
// gives pages back, the user unmaps external memory (rte_dev_dma_unmap), the port closes.
#pragma once

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>
#include <rte_memory.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "drivers/net/mlx5raw/memory_chunks.h"
#include "drivers/net/mlx5raw/prm.h"
#include "drivers/net/mlx5raw/status.h"
#include "drivers/net/mlx5raw/verbs.h"

namespace tagwire::mlx5raw {

// No range has this key, so it says "not registered".
inline constexpr Be32 kNoLkey = Be32::of(0xffffffff);

struct MemoryRange {
    uintptr_t base = 0;
    uintptr_t length = 0;
    Be32 lkey = kNoLkey;

    bool contains(uintptr_t address) const { return address - base < length; }
};

// All regions of one port. Any thread may call; a data path comes here only when
// its cache missed.
class MemoryTable {
  public:
    explicit MemoryTable(ibv_pd* pd);
    ~MemoryTable();
    MemoryTable(const MemoryTable&) = delete;
    MemoryTable& operator=(const MemoryTable&) = delete;

    // Registers what is not registered yet of the pool's memory.
    Status add_pool(rte_mempool* pool);

    // Registers external memory before it is used (rte_dev_dma_map).
    Status add_external(uintptr_t base, uintptr_t length);

    // The memory is about to go, or is no longer the device's to use.
    void forget(uintptr_t base, uintptr_t length);

    // The range with the segment's data; registers the memory around it when it is
    // new. lkey is kNoLkey when that is not possible.
    MemoryRange find(const rte_mbuf& segment);

    // The key of all of the pool's memory, kNoLkey when it has several.
    Be32 sole_key(rte_mempool* pool) const;

    // The key of the region with this address, kNoLkey when there is none.
    Be32 key_at(uintptr_t address) const;

    // Changes whenever a region goes away: cached ranges are then void.
    uint32_t generation() const { return generation_.load(std::memory_order_acquire); }

    size_t region_count() const;

  private:
    struct Region {
        MemoryRange range;
        MemoryRegion handle;
        const rte_mempool* pool;  // nullptr: memory that is no mempool's
        // What is still there of it. A region that lost a part is found no more, because
        // other pages may come in that place, but lives on for packets under way.
        std::vector<Chunk> live;
        bool whole() const {
            return live.size() == 1 && live[0].end - live[0].base == range.length;
        }
    };

    static void on_pool_event(rte_mempool_event event, rte_mempool* pool, void* self);
    static void on_memory_event(rte_mem_event event, const void* address, size_t length,
                                void* self);
    static int register_around(const rte_memseg_list*, const rte_memseg* segment, size_t length,
                               void* opaque);
    const MemoryRange* lookup(uintptr_t address) const;
    bool covers(const Chunk& chunk) const;
    Status add_range(uintptr_t base, uintptr_t length, const rte_mempool* pool);
    Status add_surroundings(uintptr_t address);
    void remove_pool(const rte_mempool* pool);

    ibv_pd* pd_;
    std::string callback_name_;  // empty: EAL does not tell
    // Taken inside of EAL's lock of the memory map, never around it.
    mutable std::mutex mutex_;
    std::vector<Region> regions_;
    std::atomic<uint32_t> generation_{0};
    std::atomic<bool> warned_{false};
};

// A queue's own view: the range of the last packet first.
class MemoryCache {
  public:
    void attach(MemoryTable* table) {
        table_ = table;
        flush();
    }

    // Once per burst: forgets everything when a region went away.
    void refresh() {
        if (unlikely(generation_ != table_->generation())) {
            flush();
        }
    }

    Be32 lkey(const rte_mbuf& segment, uintptr_t address) {
        if (likely(last_.contains(address))) {
            return last_.lkey;
        }
        return lkey_of_other(segment, address);
    }

    // Where the last packet was; empty after a flush.
    const MemoryRange& last() const { return last_; }

  private:
    Be32 lkey_of_other(const rte_mbuf& segment, uintptr_t address);
    void flush();

    MemoryRange last_;
    MemoryTable* table_ = nullptr;
    uint32_t generation_ = 0;
    uint32_t next_victim_ = 0;
    std::array<MemoryRange, 8> recent_;
};

}  // namespace tagwire::mlx5raw
