// SPDX-License-Identifier: BSD-3-Clause
// Which memory of the program the device knows: ranges in address order, the
// least recently used ones forgotten first, those in use never, and those whose
// memory went away not used again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "lib/tagwire/memory_watch.h"

namespace tagwire {

// How a device comes to know memory.
class DeviceMemory {
  public:
    virtual ~DeviceMemory() = default;
    virtual bool map(uintptr_t base, uint64_t length) noexcept = 0;
    virtual void unmap(uintptr_t base, uint64_t length) noexcept = 0;
};

struct Registration {
    WatchedRange range;
    uint32_t uses = 0;
    Registration* newer = nullptr;
    Registration* older = nullptr;

    uint64_t length() const { return range.end - range.base; }
};

struct RegistrationCounters {
    uint64_t hits = 0;
    uint64_t made = 0;
    uint64_t evicted = 0;
    uint64_t invalidated = 0;  // their memory went away
    uint64_t refused = 0;      // by the kernel or the device, or all are in use
};

// Of one worker, used by its thread.
class RegistrationCache {
  public:
    RegistrationCache(DeviceMemory& device, MemoryWatch& watch, size_t max_ranges,
                      uint64_t max_bytes)
        : device_(device), watch_(watch), max_ranges_(max_ranges), max_bytes_(max_bytes) {}
    ~RegistrationCache();

    // A registration with all of the memory, in use until release(); nullptr:
    // there is none.
    Registration* acquire(const void* start, uint64_t length) noexcept;
    void release(Registration& registration) noexcept { --registration.uses; }

    const RegistrationCounters& counters() const { return counters_; }
    size_t size() const { return ranges_.size(); }
    uint64_t bytes() const { return bytes_; }

  private:
    using Ranges = std::map<uintptr_t, std::unique_ptr<Registration>>;  // by base

    Registration* find(uintptr_t base, uintptr_t end);
    bool clear_overlap(uintptr_t* base, uintptr_t* end);
    bool make_room(uint64_t bytes);
    void drop_gone();
    Registration* add(uintptr_t base, uintptr_t end);
    void drop(Registration& registration);
    void link_newest(Registration& registration);
    void unlink(Registration& registration);

    DeviceMemory& device_;
    MemoryWatch& watch_;
    size_t max_ranges_;
    uint64_t max_bytes_;
    Ranges ranges_;
    uint64_t bytes_ = 0;
    uint64_t marks_seen_ = 0;  // of the watch, when no unused range was gone
    Registration* newest_ = nullptr;
    Registration* oldest_ = nullptr;
    RegistrationCounters counters_;
};

}  // namespace tagwire
