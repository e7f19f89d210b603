// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "fabric.h"
#include "options.h"
#include "report.h"

namespace tagwire::perf {

// Runs the test that the options name against the server that they name.
void run_client(Fabric& fabric, const Options& options, Report& report);

}  // namespace tagwire::perf
