// SPDX-License-Identifier: BSD-3-Clause
#include "file_table.h"

#include "sizes.h"

namespace tagwire::perf {

void begin_file_table(Report& report) {
    report.begin_table({{"direction", "", 9},
                        {"size", "bytes", 12},
                        {"messages", "messages", 10},
                        {"megabytes_per_second", "MB/s", 10},
                        {"sha256", "SHA-256", 66},
                        {"name", "name", 0}});
}

void add_file_row(Report& report, const FileRow& file, const char* direction) {
    report.add_row({{"test", "file"},
                    {"direction", direction},
                    {"size", file.size},
                    {"messages", file.messages},
                    {"seconds", file.seconds},
                    {"megabytes_per_second",
                     file.seconds > 0 ? static_cast<double>(file.size) / file.seconds / 1e6 : 0.0},
                    {"sha256", file.sha256},
                    {"name", file.name}});
}

}  // namespace tagwire::perf
