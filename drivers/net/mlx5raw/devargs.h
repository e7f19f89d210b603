// SPDX-License-Identifier: BSD-3-Clause
// What a user may say after --vdev net_mlx5raw0,...
#pragma once

#include <cstdint>
#include <string>

#include "drivers/net/mlx5raw/rx_arguments.h"
#include "drivers/net/mlx5raw/status.h"
#include "drivers/net/mlx5raw/tx_arguments.h"

namespace tagwire::mlx5raw {

#define MLX5RAW_ARG_IBDEV "ibdev"
#define MLX5RAW_ARG_PORT "port"
#define MLX5RAW_ARG_MAC "mac"
#define MLX5RAW_ARG_RETA_SIZE "reta_size"

struct Devargs {
    std::string ibdev;         // empty: the only device there is
    uint32_t port = 1;         // as in ibv_devinfo, counted from 1
    std::string mac;           // empty: the port's own address
    uint32_t reta_size = 128;  // entries of the indirection table
    RxArguments rx;
    TxArguments tx;
};

Status parse_devargs(const char* text, Devargs& out);

}  // namespace tagwire::mlx5raw
