// SPDX-License-Identifier: BSD-3-Clause
// One open file of a uverbs device, and the objects that were created through it.
// A handle means something only in its own context, as in the kernel.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "drivers/softcx/model/clock.h"
#include "drivers/softcx/model/objects.h"

namespace softcx {

struct EventQueue;

enum class ObjectKind : uint8_t {
    kProtectionDomain,
    kMemoryRegion,
    kCompletionQueue,
    kWorkQueue,
    kIndirectionTable,
    kQueuePair,
    kFlow,
    kFlowCounters,
    kUar,
};

struct Handle {
    ObjectKind kind;
    uint32_t number;  // key in the device's map of that kind
};

struct Context {
    explicit Context(Device& owner) : device(owner) {}

    Device& device;
    bool opened = false;  // GET_CONTEXT was done: every other command needs it
    uint8_t cqe_version = 0;
    std::shared_ptr<EventQueue> async_events;
    std::vector<std::shared_ptr<EventQueue>> more_async_events;  // of users who imported it
    std::unique_ptr<ClockPages> clock;                           // in the device file
    std::vector<uint32_t> channels;                              // keys of Device::channels
    std::map<uint32_t, Handle> handles;
    uint32_t next_handle = 0;
    uint32_t next_uar_page = 0;

    uint32_t add(ObjectKind kind, uint32_t number);
    // nullptr when the handle is unknown or names another kind.
    const Handle* find(ObjectKind kind, uint32_t handle) const;
};

// Typed look-ups by handle; nullptr when there is none.
ProtectionDomain* find_pd(Context& context, uint32_t handle);
MemoryRegion* find_mr(Context& context, uint32_t handle);
CompletionQueue* find_cq(Context& context, uint32_t handle);
WorkQueue* find_wq(Context& context, uint32_t handle);
IndirectionTable* find_table(Context& context, uint32_t handle);
QueuePair* find_qp(Context& context, uint32_t handle);
Flow* find_flow(Context& context, uint32_t handle);
FlowCounters* find_flow_counters(Context& context, uint32_t handle);

// Releases whatever the client left behind, children first. The caller holds
// Device::mutex.
void tear_down(Context& context) noexcept;

}  // namespace softcx
