// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "fabric.h"
#include "options.h"
#include "report.h"

namespace tagwire::perf {

// Waits for a client and does what it asks; with --keep for the next one too, until it
// is interrupted. Throws Failure when the (only) session failed.
void run_server(Fabric& fabric, const Options& options, Report& report);

}  // namespace tagwire::perf
