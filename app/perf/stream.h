// SPDX-License-Identifier: BSD-3-Clause
// Message rate and bandwidth: the client sends with a window, the server receives.
#pragma once

#include "options.h"
#include "report.h"
#include "session.h"

namespace tagwire::perf {

// Adds a row per size with the rate at the receiver; when it is interrupted, a
// partial one with what the sender saw.
void run_stream_client(Session& session, const StreamOptions& options, Report& report,
                       bool progress);
void run_stream_server(Session& session, const Json& parameters);

Json to_parameters(const StreamOptions& options);

}  // namespace tagwire::perf
