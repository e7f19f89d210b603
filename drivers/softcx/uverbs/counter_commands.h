// SPDX-License-Identifier: BSD-3-Clause
// Counters of flows: ioctls of their own, and the vendor part of CREATE_FLOW that says
// which value goes where.
#pragma once

#include <cstdint>
#include <span>

#include "drivers/softcx/model/context.h"
#include "drivers/softcx/uverbs/attributes.h"

namespace softcx {

int create_counters(Context& context, const Attributes& attributes);
int destroy_counters(Context& context, const Attributes& attributes);
int read_counters(Context& context, const Attributes& attributes);

// `vendor` is what follows the core request of CREATE_FLOW (struct mlx5_ib_create_flow).
// `counters` may be null: then there must be no vendor part. The caller holds
// Device::mutex.
int bind_counters(std::span<const uint8_t> vendor, FlowCounters* counters);

}  // namespace softcx
