// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "report.h"
#include "session.h"

namespace tagwire::perf {

// The other end of send_files (file_sender.h): writes below `directory`, adds a row
// per file, returns after the sender's end. Throws Failure when a file is not right.
void receive_files(Session& session, const std::string& directory, Report& report, bool progress);

}  // namespace tagwire::perf
