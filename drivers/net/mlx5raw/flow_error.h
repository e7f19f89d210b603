// SPDX-License-Identifier: BSD-3-Clause
// Why rte_flow refuses something.
#pragma once

#include <rte_flow_driver.h>

namespace tagwire::mlx5raw {

// Fills `error` (may be null) and returns -code. The text stays valid until the
// thread's next failure.
[[gnu::format(printf, 5, 6)]] int flow_failure(rte_flow_error* error, int code,
                                               rte_flow_error_type type, const void* cause,
                                               const char* format, ...);

}  // namespace tagwire::mlx5raw
