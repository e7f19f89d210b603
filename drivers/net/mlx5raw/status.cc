// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/status.h"

#include <rte_errno.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>

#include "drivers/net/mlx5raw/log.h"

namespace tagwire::mlx5raw {

Status failure(int error, const char* format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return Status{error > 0 ? -error : -EIO, text};
}

int log_and_return(const char* port_name, const Status& status) {
    if (!status.ok()) {
        MLX5RAW_LOG(ERR, "%s: %s", port_name, status.message.c_str());
        rte_errno = -status.code;
    }
    return status.code;
}

}  // namespace tagwire::mlx5raw
