// SPDX-License-Identifier: BSD-3-Clause
// ucp_config_*: UCX's names, of which a few mean something here (doc/ucp.md).
#pragma once

#include <ucp/api/ucp.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

struct ucp_config {
    // PREFIX_UCX_NAME and UCX_NAME of the environment, then ucp_config_modify.
    static ucp_config from_environment(const char* prefix);

    // Bytes of data from which on an active message offers its data instead of sending it.
    size_t offer_threshold() const;

    // How often the peers of endpoints that want to hear of failures are asked for a sign of life.
    std::chrono::nanoseconds keepalive_interval() const;

    std::map<std::string, std::string> values;
};
