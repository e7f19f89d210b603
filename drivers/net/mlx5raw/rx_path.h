// SPDX-License-Identifier: BSD-3-Clause
// The way in which a queue receives: chosen when it is created, from what the
// processor, EAL and the user allow.
#pragma once

#include "drivers/net/mlx5raw/rx_ring.h"

namespace tagwire::mlx5raw {

enum class RxPathKind : uint8_t { kScalar, kAvx2, kAvx512, kScatter, kStriding };
inline constexpr uint8_t kRxPaths = 5;

// In words, and as part of the name of a statistic.
const char* rx_path_name(RxPathKind kind);
const char* rx_path_key(RxPathKind kind);

struct RxPath {
    RxPathKind kind = RxPathKind::kScalar;
    RxDecode decode = rx_decode_scalar;
    RxExpand expand = rx_expand_scalar;
    RxRefill refill = rx_refill_scalar;
};

// Whether the processor has what rx_avx512.cc is compiled for.
bool has_rx_avx512();

// For queues with one buffer per packet.
RxPath choose_rx_path(bool vector);
// For queues whose WQEs take many packets; they have a loop of their own.
RxPath rx_striding_path();
// For queues that scatter a packet over several; they have a loop of their own.
RxPath rx_scatter_path();

}  // namespace tagwire::mlx5raw
