// SPDX-License-Identifier: BSD-3-Clause
// The table of files that both sides print.
#pragma once

#include <cstdint>
#include <string>

#include "report.h"

namespace tagwire::perf {

struct FileRow {
    std::string name;
    uint64_t size = 0;
    uint64_t messages = 0;
    double seconds = 0;
    std::string sha256;
};

void begin_file_table(Report& report);
void add_file_row(Report& report, const FileRow& file, const char* direction);

}  // namespace tagwire::perf
