// SPDX-License-Identifier: BSD-3-Clause
// Which arguments the EAL knows. It answers an unknown one with a page on all of them, which is of
// no use to somebody who set a variable of a library.
#pragma once

#include <string>
#include <vector>

namespace tagwire::port {

// Throws Failure that names the first of `words` that the EAL has no use for. `variable` is where
// they came from.
void check_eal_arguments(const char* variable, const std::vector<std::string>& words);

}  // namespace tagwire::port
