// SPDX-License-Identifier: BSD-3-Clause
// Variables that look like one of Tagwire's, and are none: they would have no effect, silently.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tagwire::port {

// The variable of variables() that is likely meant by `name`, both without "TAGWIRE_"; empty when
// `name` is one, or resembles none.
std::string meant_variable(std::string_view name);

// A line for each entry NAME=VALUE of `environment`, which ends with nullptr, that is misspelt.
std::vector<std::string> misspelt_variables(const char* const* environment);

}  // namespace tagwire::port
