// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/model/life.h"

#include <cerrno>

#include "drivers/softcx/engine.h"

namespace softcx {

namespace {

constexpr uint32_t kNumberMask = 0xffffff;

// The next free number after `last`, so that one that was just released is not
// met again soon. 0xffffff means "none" to the client library.
template <class Map>
uint32_t next_number(uint32_t& last, uint32_t first, const Map& in_use) {
    do {
        last = (last + 1) & kNumberMask;
        if (last < first || last == kNumberMask)
            last = first;
    } while (in_use.count(last) != 0);
    return last;
}

void changed(Device& device) {
    device.generation.fetch_add(1, std::memory_order_release);
}

}  // namespace

uint32_t allocate_pd_number(Device& device) {
    return next_number(device.last_numbers.pd, 1, device.pds);
}

uint32_t allocate_mkey(Device& device) {
    // A memory key is a 24-bit index and 8 bits that vary, so that the key of a
    // region that is gone does not fit its successor.
    uint32_t key;
    do {
        uint32_t& last = device.last_numbers.mkey;
        last = (last + 1) & kNumberMask;
        if (last < 0x20)
            last = 0x20;
        key = (last << 8) | ((last * 0x9d) & 0xff);
    } while (device.mrs.count(key) != 0);
    return key;
}

uint32_t allocate_cq_number(Device& device) {
    return next_number(device.last_numbers.cq, 0x400, device.cqs);
}

uint32_t allocate_channel_number(Device& device) {
    return next_number(device.last_numbers.channel, 1, device.channels);
}

uint32_t allocate_wq_number(Device& device) {
    return next_number(device.last_numbers.wq, 0x80, device.wqs);
}

uint32_t allocate_table_number(Device& device) {
    return next_number(device.last_numbers.table, 1, device.tables);
}

uint32_t allocate_qp_number(Device& device) {
    return next_number(device.last_numbers.qp, 0x80, device.qps);
}

uint32_t allocate_flow_number(Device& device) {
    return next_number(device.last_numbers.flow, 1, device.flows);
}

uint32_t allocate_counters_number(Device& device) {
    return next_number(device.last_numbers.counters, 1, device.flow_counters);
}

int destroy_pd(Device& device, uint32_t number) {
    const auto found = device.pds.find(number);
    if (found->second->use_count != 0)
        return EBUSY;
    device.pds.erase(found);
    return 0;
}

int destroy_mr(Device& device, uint32_t lkey) {
    const auto found = device.mrs.find(lkey);
    engine_forget(device, *found->second);
    --found->second->pd->use_count;
    device.mrs.erase(found);
    changed(device);
    return 0;
}

int destroy_cq(Device& device, uint32_t number) {
    const auto found = device.cqs.find(number);
    CompletionQueue& cq = *found->second;
    if (cq.use_count != 0)
        return EBUSY;
    if (cq.channel != nullptr)
        --cq.channel->use_count;
    device.cqs.erase(found);
    changed(device);
    return 0;
}

int destroy_wq(Device& device, uint32_t number) {
    const auto found = device.wqs.find(number);
    WorkQueue& wq = *found->second;
    if (wq.use_count != 0)
        return EBUSY;
    --wq.pd->use_count;
    --wq.cq->use_count;
    device.wqs.erase(found);
    changed(device);
    return 0;
}

int destroy_table(Device& device, uint32_t number) {
    const auto found = device.tables.find(number);
    IndirectionTable& table = *found->second;
    if (table.use_count != 0)
        return EBUSY;
    for (WorkQueue* wq : table.entries)
        --wq->use_count;
    device.tables.erase(found);
    changed(device);
    return 0;
}

int destroy_qp(Device& device, uint32_t number) {
    const auto found = device.qps.find(number);
    QueuePair& qp = *found->second;
    if (qp.use_count != 0)
        return EBUSY;
    --qp.pd->use_count;
    if (qp.sq.cq != nullptr)
        --qp.sq.cq->use_count;
    if (qp.receive_cq != nullptr)
        --qp.receive_cq->use_count;
    if (qp.rss)
        --qp.rss->table->use_count;
    device.qps.erase(found);
    changed(device);
    return 0;
}

int destroy_flow(Device& device, uint32_t number) {
    const auto found = device.flows.find(number);
    if (found->second->qp != nullptr)
        --found->second->qp->use_count;
    if (found->second->counters != nullptr)
        --found->second->counters->use_count;
    device.flows.erase(found);
    changed(device);
    return 0;
}

int destroy_flow_counters(Device& device, uint32_t number) {
    const auto found = device.flow_counters.find(number);
    if (found->second->use_count != 0)
        return EBUSY;
    device.flow_counters.erase(found);
    return 0;
}

int destroy_object(Device& device, const Handle& handle) {
    switch (handle.kind) {
        case ObjectKind::kProtectionDomain:
            return destroy_pd(device, handle.number);
        case ObjectKind::kMemoryRegion:
            return destroy_mr(device, handle.number);
        case ObjectKind::kCompletionQueue:
            return destroy_cq(device, handle.number);
        case ObjectKind::kWorkQueue:
            return destroy_wq(device, handle.number);
        case ObjectKind::kIndirectionTable:
            return destroy_table(device, handle.number);
        case ObjectKind::kQueuePair:
            return destroy_qp(device, handle.number);
        case ObjectKind::kFlow:
            return destroy_flow(device, handle.number);
        case ObjectKind::kFlowCounters:
            return destroy_flow_counters(device, handle.number);
        case ObjectKind::kUar:
            return 0;
    }
    return EINVAL;
}

}  // namespace softcx
