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
#define MLX5RAW_ARG_MPRQ_EN "mprq_en"
#define MLX5RAW_ARG_MPRQ_STRIDE_NUM "mprq_log_stride_num"
#define MLX5RAW_ARG_MPRQ_STRIDE_SIZE "mprq_log_stride_size"
#define MLX5RAW_ARG_MPRQ_MEMCPY "mprq_max_memcpy_len"

#define MLX5RAW_RX_ARGUMENTS                                             \
    MLX5RAW_ARG_RX_VEC_EN, MLX5RAW_ARG_CQE_COMP_EN, MLX5RAW_ARG_MPRQ_EN, \
        MLX5RAW_ARG_MPRQ_STRIDE_NUM, MLX5RAW_ARG_MPRQ_STRIDE_SIZE, MLX5RAW_ARG_MPRQ_MEMCPY
#define MLX5RAW_RX_PARAMETERS                                                                      \
    MLX5RAW_ARG_RX_VEC_EN "=<0|1> " MLX5RAW_ARG_CQE_COMP_EN "=<0|1> " MLX5RAW_ARG_MPRQ_EN          \
                          "=<0|1> " MLX5RAW_ARG_MPRQ_STRIDE_NUM                                    \
                          "=<int> " MLX5RAW_ARG_MPRQ_STRIDE_SIZE "=<int> " MLX5RAW_ARG_MPRQ_MEMCPY \
                          "=<int>"
#define MLX5RAW_RX_HELP                                                        \
    "rx_vec_en=0|1, rxq_cqe_comp_en=0|1, mprq_en=0|1, mprq_log_stride_num=N, " \
    "mprq_log_stride_size=N, mprq_max_memcpy_len=N"

struct RxArguments {
    bool vector = true;               // vector instructions where the processor has them
    std::optional<bool> compression;  // empty: where the device can and nothing forbids it
    bool striding = false;            // WQEs that take many packets (stride_geometry.h)
    std::optional<uint32_t> log_strides;
    std::optional<uint32_t> log_stride_bytes;
    std::optional<uint32_t> most_copied;
};

bool is_rx_argument(const std::string& key);
Status apply_rx_argument(const std::string& key, uint32_t value, RxArguments& out);
// When all are known: whether they go together.
Status check_rx_arguments(const RxArguments& arguments);

}  // namespace tagwire::mlx5raw
