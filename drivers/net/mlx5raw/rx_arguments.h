// SPDX-License-Identifier: BSD-3-Clause
// Device arguments of the receive side. Their names are those of DPDK's mlx5 driver.
#pragma once

#include <cstdint>
#include <string>

#include "drivers/net/mlx5raw/status.h"

namespace tagwire::mlx5raw {

#define MLX5RAW_ARG_RX_VEC_EN "rx_vec_en"

#define MLX5RAW_RX_ARGUMENTS MLX5RAW_ARG_RX_VEC_EN
#define MLX5RAW_RX_PARAMETERS MLX5RAW_ARG_RX_VEC_EN "=<0|1>"

struct RxArguments {
    bool vector = true;  // vector instructions where the processor has them
};

bool is_rx_argument(const std::string& key);
Status apply_rx_argument(const std::string& key, uint32_t value, RxArguments& out);

}  // namespace tagwire::mlx5raw
