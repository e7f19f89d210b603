// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/rx_arguments.h"

#include <cerrno>

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
    bool on = false;
    if (Status status = parse_switch(key, value, on); !status.ok()) {
        return status;
    }
    if (key == MLX5RAW_ARG_RX_VEC_EN) {
        out.vector = on;
    } else {
        out.compression = on;
    }
    return {};
}

}  // namespace tagwire::mlx5raw
