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

#include "drivers/net/mlx5raw/rx_path.h"

namespace tagwire::mlx5raw {

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
        return {"vector AVX-512", rx_decode_avx512, rx_expand_avx512, rx_refill_avx512};
    }
    if (vector && rte_vect_get_max_simd_bitwidth() >= RTE_VECT_SIMD_256 &&
        rte_cpu_get_flag_enabled(RTE_CPUFLAG_AVX2) > 0) {
        return {"vector AVX2", rx_decode_avx2, rx_expand_avx2, rx_refill_avx2};
    }
    return {"scalar", rx_decode_scalar, rx_expand_scalar, rx_refill_scalar};
}

RxPath rx_striding_path() {
    return {"striding", nullptr, nullptr, nullptr};
}

RxPath rx_scatter_path() {
    return {"scalar scatter", nullptr, nullptr, nullptr};
}

}  // namespace tagwire::mlx5raw
