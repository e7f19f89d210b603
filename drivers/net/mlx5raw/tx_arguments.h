// SPDX-License-Identifier: BSD-3-Clause
// Device arguments of the transmit side. Their names are those of DPDK's mlx5 driver.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "drivers/net/mlx5raw/status.h"

namespace tagwire::mlx5raw {

#define MLX5RAW_ARG_TXQ_MPW_EN "txq_mpw_en"
#define MLX5RAW_ARG_TXQ_INLINE_MIN "txq_inline_min"
#define MLX5RAW_ARG_TXQ_INLINE_MAX "txq_inline_max"
#define MLX5RAW_ARG_TXQ_INLINE_MPW "txq_inline_mpw"
#define MLX5RAW_ARG_TXQS_MIN_INLINE "txqs_min_inline"
#define MLX5RAW_ARG_TX_VEC_EN "tx_vec_en"

#define MLX5RAW_TX_ARGUMENTS                                                        \
    MLX5RAW_ARG_TXQ_MPW_EN, MLX5RAW_ARG_TXQ_INLINE_MIN, MLX5RAW_ARG_TXQ_INLINE_MAX, \
        MLX5RAW_ARG_TXQ_INLINE_MPW, MLX5RAW_ARG_TXQS_MIN_INLINE, MLX5RAW_ARG_TX_VEC_EN
#define MLX5RAW_TX_PARAMETERS                                                  \
    MLX5RAW_ARG_TXQ_MPW_EN                                                     \
    "=<0|1> " MLX5RAW_ARG_TXQ_INLINE_MIN "=<int> " MLX5RAW_ARG_TXQ_INLINE_MAX  \
    "=<int> " MLX5RAW_ARG_TXQ_INLINE_MPW "=<int> " MLX5RAW_ARG_TXQS_MIN_INLINE \
    "=<int> " MLX5RAW_ARG_TX_VEC_EN "=<0|1>"

// Empty: what the device needs or can (see tx_mode.h).
struct TxArguments {
    std::optional<bool> multi_packet;       // txq_mpw_en
    std::optional<uint32_t> inline_min;     // bytes of header in each send WQE
    std::optional<uint32_t> inline_max;     // packets up to this length in a send WQE
    std::optional<uint32_t> inline_mpw;     // ... in a multi-packet send
    std::optional<uint32_t> queues_inline;  // txqs_min_inline: queues from which on to copy
    std::optional<bool> vector;             // tx_vec_en
};

bool is_tx_argument(const std::string& key);
Status apply_tx_argument(const std::string& key, uint32_t value, TxArguments& out);

}  // namespace tagwire::mlx5raw
