// SPDX-License-Identifier: BSD-3-Clause
// Words of the library to the person who runs the program, on standard error.
#pragma once

namespace tagwire::ucp {

[[gnu::format(printf, 1, 2)]] void log_error(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void log_warning(const char* format, ...);

}  // namespace tagwire::ucp
