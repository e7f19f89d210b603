// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rte_log.h>

namespace tagwire::mlx5raw {
extern int log_type;
}

// Log type "pmd.net.mlx5raw"; --log-level=pmd.net.mlx5raw:debug shows everything.
#define MLX5RAW_LOG(level, format, ...)                                                 \
    rte_log(RTE_LOG_##level, ::tagwire::mlx5raw::log_type, "net_mlx5raw: " format "\n", \
            ##__VA_ARGS__)
