// SPDX-License-Identifier: BSD-3-Clause
// Device arguments of the receive side. Their names are those of DPDK's mlx5 driver.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "drivers/net/mlx5raw/status.h"

namespace tagwire::mlx5raw {

#define MLX5RAW_ARG_RX_VEC_EN "rx_vec_en"

#define MLX5RAW_ARG_CQE_COMP_EN "rxq_cqe_comp_en"

#define MLX5RAW_RX_ARGUMENTS MLX5RAW_ARG_RX_VEC_EN, MLX5RAW_ARG_CQE_COMP_EN
#define MLX5RAW_RX_PARAMETERS MLX5RAW_ARG_RX_VEC_EN "=<0|1> " MLX5RAW_ARG_CQE_COMP_EN "=<0|1>"
#define MLX5RAW_RX_HELP MLX5RAW_ARG_RX_VEC_EN "=0|1, " MLX5RAW_ARG_CQE_COMP_EN "=0|1"

struct RxArguments {
    bool vector = true;               // vector instructions where the processor has them
    std::optional<bool> compression;  // empty: where the device can and nothing forbids it
};

bool is_rx_argument(const std::string& key);
Status apply_rx_argument(const std::string& key, uint32_t value, RxArguments& out);

}  // namespace tagwire::mlx5raw
