// SPDX-License-Identifier: BSD-3-Clause
// The header of DPDK 22.11 is not made for C++, and the function not yet stable.
#ifndef ALLOW_EXPERIMENTAL_API
#define ALLOW_EXPERIMENTAL_API
#endif
extern "C" {
#include <rte_vect.h>
}

#include "test/mlx5raw/rx_paths.h"

namespace tagwire::mlx5raw {

void set_simd_width(uint16_t bits) {
    ASSERT_EQ(rte_vect_set_max_simd_bitwidth(bits), 0);
}

}  // namespace tagwire::mlx5raw
