// SPDX-License-Identifier: BSD-3-Clause
// Birth and death of objects: numbers, use counts, and the order in which the data
// path is told. The caller holds Device::mutex.
#pragma once

#include <cstdint>

#include "drivers/softcx/model/context.h"
#include "drivers/softcx/model/objects.h"

namespace softcx {

// 24-bit object numbers, as in the card's contexts.
uint32_t allocate_pd_number(Device& device);
uint32_t allocate_mkey(Device& device);
uint32_t allocate_cq_number(Device& device);
uint32_t allocate_channel_number(Device& device);
uint32_t allocate_wq_number(Device& device);
uint32_t allocate_table_number(Device& device);
uint32_t allocate_qp_number(Device& device);
uint32_t allocate_flow_number(Device& device);
uint32_t allocate_counters_number(Device& device);

// These destroy, or return EBUSY and change nothing while somebody uses the object.
int destroy_pd(Device& device, uint32_t number);
int destroy_mr(Device& device, uint32_t lkey);
int destroy_cq(Device& device, uint32_t number);
int destroy_wq(Device& device, uint32_t number);
int destroy_table(Device& device, uint32_t number);
int destroy_qp(Device& device, uint32_t number);
int destroy_flow(Device& device, uint32_t number);
int destroy_flow_counters(Device& device, uint32_t number);
int destroy_object(Device& device, const Handle& handle);

}  // namespace softcx
