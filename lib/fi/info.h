// SPDX-License-Identifier: BSD-3-Clause
// fi_getinfo: what the provider can do, held against what is asked for.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>

namespace tagwire::fi {

inline constexpr size_t kQueueSize = 1024;  // of a context, at least
inline constexpr size_t kRmaIovLimit = 8;
inline constexpr size_t kMaxContexts = 256;  // of a scalable endpoint
inline constexpr size_t kConnectDataSize = 256;
inline constexpr size_t kOrderedSize = 64 * 1024;  // longer puts may pass each other
// What arrives from one peer takes effect in the order in which it was posted; only long puts and
// gets (see the max_order_... sizes) may pass each other.
inline constexpr uint64_t kMessageOrder =
    FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_RAS | FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_WAS |
    FI_ORDER_SAR | FI_ORDER_SAW | FI_ORDER_SAS | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW |
    FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW |
    FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;

int get_info(uint32_t version, const char* node, const char* service, uint64_t flags,
             const fi_info* hints, fi_info** info);

}  // namespace tagwire::fi
