// SPDX-License-Identifier: BSD-3-Clause
// Outcome of a control operation: a negative errno and, on failure, what happened
// and what to do about it.
#pragma once

#include <string>

namespace tagwire::mlx5raw {

struct [[nodiscard]] Status {
    int code = 0;
    std::string message;

    bool ok() const { return code == 0; }
};

// errno values are positive here, as errno itself; zero becomes EIO, because some
// verbs fail without setting errno.
[[gnu::format(printf, 2, 3)]] Status failure(int error, const char* format, ...);

// Logs a failure and returns its code, for the ethdev boundary.
int log_and_return(const char* port_name, const Status& status);

}  // namespace tagwire::mlx5raw
