// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/flow_error.h"

#include <cstdarg>
#include <cstdio>

#include "drivers/net/mlx5raw/log.h"

namespace tagwire::mlx5raw {

int flow_failure(rte_flow_error* error, int code, rte_flow_error_type type, const void* cause,
                 const char* format, ...) {
    thread_local char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    MLX5RAW_LOG(DEBUG, "rte_flow: %s", text);
    return rte_flow_error_set(error, code, type, cause, text);
}

}  // namespace tagwire::mlx5raw
