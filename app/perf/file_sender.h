// SPDX-License-Identifier: BSD-3-Clause
// Files as tagged messages of mixed sizes. Per file, after its name and size were said:
//
//   sender -> receiver   file      name, size, mode, number of messages, longest message
//   receiver -> sender   ready     its receives are posted
//   sender -> receiver   data messages, in order, tag kData with a running number
//   sender -> receiver   sent      SHA-256 of what was read
//   receiver -> sender   received  SHA-256 of what was written (renamed into place only if equal)
//
// and at the end: end, with the number of files and bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "file_list.h"
#include "report.h"
#include "session.h"

namespace tagwire::perf {

// Messages outstanding; the receiver posts as many.
inline constexpr uint32_t kFileWindow = 16;

// Adds a row per file. Throws Failure at the first file that did not arrive right.
void send_files(Session& session, const std::vector<SourceFile>& files, uint64_t max_message,
                Report& report, bool progress);

}  // namespace tagwire::perf
