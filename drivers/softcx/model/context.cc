// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/model/context.h"

#include <algorithm>

#include "drivers/softcx/log.h"
#include "drivers/softcx/model/life.h"

namespace softcx {

uint32_t Context::add(ObjectKind kind, uint32_t number) {
    // Handles are not reused while the context lives, so a stale one is caught.
    const uint32_t handle = next_handle++;
    handles.emplace(handle, Handle{kind, number});
    return handle;
}

const Handle* Context::find(ObjectKind kind, uint32_t handle) const {
    const auto found = handles.find(handle);
    if (found == handles.end() || found->second.kind != kind)
        return nullptr;
    return &found->second;
}

namespace {

template <class Object>
Object* look_up(const Context& context, ObjectKind kind, uint32_t handle,
                const std::map<uint32_t, std::unique_ptr<Object>>& objects) {
    const Handle* entry = context.find(kind, handle);
    if (entry == nullptr)
        return nullptr;
    const auto found = objects.find(entry->number);
    return found == objects.end() ? nullptr : found->second.get();
}

}  // namespace

ProtectionDomain* find_pd(Context& context, uint32_t handle) {
    return look_up(context, ObjectKind::kProtectionDomain, handle, context.device.pds);
}

MemoryRegion* find_mr(Context& context, uint32_t handle) {
    return look_up(context, ObjectKind::kMemoryRegion, handle, context.device.mrs);
}

CompletionQueue* find_cq(Context& context, uint32_t handle) {
    return look_up(context, ObjectKind::kCompletionQueue, handle, context.device.cqs);
}

WorkQueue* find_wq(Context& context, uint32_t handle) {
    return look_up(context, ObjectKind::kWorkQueue, handle, context.device.wqs);
}

IndirectionTable* find_table(Context& context, uint32_t handle) {
    return look_up(context, ObjectKind::kIndirectionTable, handle, context.device.tables);
}

QueuePair* find_qp(Context& context, uint32_t handle) {
    return look_up(context, ObjectKind::kQueuePair, handle, context.device.qps);
}

Flow* find_flow(Context& context, uint32_t handle) {
    return look_up(context, ObjectKind::kFlow, handle, context.device.flows);
}

FlowCounters* find_flow_counters(Context& context, uint32_t handle) {
    return look_up(context, ObjectKind::kFlowCounters, handle, context.device.flow_counters);
}

void tear_down(Context& context) noexcept {
    static constexpr ObjectKind kChildrenFirst[] = {
        ObjectKind::kFlow,         ObjectKind::kFlowCounters,
        ObjectKind::kQueuePair,    ObjectKind::kIndirectionTable,
        ObjectKind::kWorkQueue,    ObjectKind::kCompletionQueue,
        ObjectKind::kMemoryRegion, ObjectKind::kProtectionDomain,
    };
    Device& device = context.device;
    for (const ObjectKind kind : kChildrenFirst) {
        for (const auto& [handle, entry] : context.handles) {
            if (entry.kind != kind)
                continue;
            const int error = destroy_object(device, entry);
            if (error != 0)
                log(LogLevel::kError,
                    "%s: object %u of kind %u is still in use at close (error %d)",
                    device.name.c_str(), entry.number, static_cast<unsigned>(kind), error);
        }
    }
    context.handles.clear();
    for (const uint32_t channel : context.channels)
        device.channels.erase(channel);
    context.channels.clear();
    context.async_events.reset();
    context.more_async_events.clear();
    context.clock.reset();
    context.opened = false;
    std::erase(device.contexts, &context);
    if (device.contexts.empty())
        device.failed = false;  // the card is reset when nobody uses it any more
    device.generation.fetch_add(1, std::memory_order_release);
}

}  // namespace softcx
