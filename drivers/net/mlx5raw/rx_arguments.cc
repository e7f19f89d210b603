// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/rx_arguments.h"

#include <cerrno>
#include <utility>

namespace tagwire::mlx5raw {
namespace {

Status parse_switch(const std::string& key, uint32_t value, bool& out) {
    if (value > 1) {
        return failure(EINVAL, "%s=%u: give 0 (off) or 1 (on)", key.c_str(), value);
    }
    out = value == 1;
    return {};
}

}  // namespace

bool is_rx_argument(const std::string& key) {
    static const char* const kKeys[] = {MLX5RAW_RX_ARGUMENTS};
    for (const char* known : kKeys) {
        if (key == known) {
            return true;
        }
    }
    return false;
}

Status apply_rx_argument(const std::string& key, uint32_t value, RxArguments& out) {
    if (key == MLX5RAW_ARG_MPRQ_STRIDE_NUM) {
        out.log_strides = value;
        return {};
    }
    if (key == MLX5RAW_ARG_MPRQ_STRIDE_SIZE) {
        out.log_stride_bytes = value;
        return {};
    }
    if (key == MLX5RAW_ARG_MPRQ_MEMCPY) {
        out.most_copied = value;
        return {};
    }
    bool on = false;
    if (Status status = parse_switch(key, value, on); !status.ok()) {
        return status;
    }
    if (key == MLX5RAW_ARG_RX_VEC_EN) {
        out.vector = on;
    } else if (key == MLX5RAW_ARG_CQE_COMP_EN) {
        out.compression = on;
    } else {
        out.striding = on;
    }
    return {};
}

Status check_rx_arguments(const RxArguments& arguments) {
    const std::pair<const char*, bool> given[] = {
        {MLX5RAW_ARG_MPRQ_STRIDE_NUM, arguments.log_strides.has_value()},
        {MLX5RAW_ARG_MPRQ_STRIDE_SIZE, arguments.log_stride_bytes.has_value()},
        {MLX5RAW_ARG_MPRQ_MEMCPY, arguments.most_copied.has_value()},
    };
    for (const auto& [name, present] : given) {
        if (present && !arguments.striding) {
            return failure(EINVAL, "%s means nothing without mprq_en=1", name);
        }
    }
    return {};
}

}  // namespace tagwire::mlx5raw
