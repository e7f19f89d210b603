// SPDX-License-Identifier: BSD-3-Clause
// Latency: the client sends a message, the server sends it back.
#pragma once

#include "options.h"
#include "report.h"
#include "session.h"

namespace tagwire::perf {

// Adds a row per size; when it is interrupted, a partial one for what was measured.
void run_pingpong_client(Session& session, const PingpongOptions& options, Report& report,
                         bool progress);
void run_pingpong_server(Session& session, const Json& parameters);

Json to_parameters(const PingpongOptions& options);

}  // namespace tagwire::perf
