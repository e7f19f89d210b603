// SPDX-License-Identifier: BSD-3-Clause
// rte_vect_get_max_simd_bitwidth is not in the stable interface of DPDK 22.11, and its
// header is not made for C++: it must be first, because others include it.
#ifndef ALLOW_EXPERIMENTAL_API
#define ALLOW_EXPERIMENTAL_API
#endif
extern "C" {
#include <rte_vect.h>
}

#include <rte_cpuflags.h>

#include <iterator>

#include "drivers/net/mlx5raw/rx_path.h"

namespace tagwire::mlx5raw {

namespace {

struct Names {
    const char* words;
    const char* key;
};
constexpr Names kNames[] = {
    {"scalar", "scalar"},
    {"vector AVX2", "vector_avx2"},
    {"vector AVX-512", "vector_avx512"},
    {"scalar scatter", "scalar_scatter"},
    {"striding", "striding"},
};
static_assert(std::size(kNames) == kRxPaths);

}  // namespace

const char* rx_path_name(RxPathKind kind) {
    return kNames[static_cast<uint8_t>(kind)].words;
}

const char* rx_path_key(RxPathKind kind) {
    return kNames[static_cast<uint8_t>(kind)].key;
}

bool has_rx_avx512() {
    for (const rte_cpu_flag_t flag : {RTE_CPUFLAG_AVX512F, RTE_CPUFLAG_AVX512BW,
                                      RTE_CPUFLAG_AVX512VL, RTE_CPUFLAG_AVX512VBMI}) {
        if (rte_cpu_get_flag_enabled(flag) <= 0) {
            return false;
        }
    }
    return true;
}

// EAL's limit is what --force-max-simd-bitwidth says.
RxPath choose_rx_path(bool vector) {
    if (vector && rte_vect_get_max_simd_bitwidth() >= RTE_VECT_SIMD_512 && has_rx_avx512()) {
        return {RxPathKind::kAvx512, rx_decode_avx512, rx_expand_avx512, rx_refill_avx512};
    }
    if (vector && rte_vect_get_max_simd_bitwidth() >= RTE_VECT_SIMD_256 &&
        rte_cpu_get_flag_enabled(RTE_CPUFLAG_AVX2) > 0) {
        return {RxPathKind::kAvx2, rx_decode_avx2, rx_expand_avx2, rx_refill_avx2};
    }
    return {RxPathKind::kScalar, rx_decode_scalar, rx_expand_scalar, rx_refill_scalar};
}

RxPath rx_striding_path() {
    return {RxPathKind::kStriding, nullptr, nullptr, nullptr};
}

RxPath rx_scatter_path() {
    return {RxPathKind::kScatter, nullptr, nullptr, nullptr};
}

}  // namespace tagwire::mlx5raw
