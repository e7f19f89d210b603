// SPDX-License-Identifier: BSD-3-Clause
// What to send: files and folders of the command line, with the names that the
// receiver sees.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tagwire::perf {

struct SourceFile {
    std::string path;  // here
    std::string name;  // there: relative, with '/' between the parts
    uint64_t size = 0;
};

// Folders are walked; symbolic links to files are followed, and what is neither file nor
// folder is left out. Throws Failure for what is missing or unreadable.
std::vector<SourceFile> list_files(const std::vector<std::string>& paths);

// True for a relative name without "..", empty parts or control characters.
bool is_safe_name(const std::string& name);

}  // namespace tagwire::perf
