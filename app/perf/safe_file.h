// SPDX-License-Identifier: BSD-3-Clause
// A received file: written under a temporary name next to its place, renamed when it
// is right, removed when it is not. No name leads out of the folder, not even over a
// symbolic link.
#pragma once

#include <cstddef>
#include <string>

#include "unique_fd.h"

namespace tagwire::perf {

class SafeFile {
  public:
    // Creates the folders of `name` below `directory`. Throws Failure (also for an unsafe name).
    SafeFile(const std::string& directory, const std::string& name, unsigned int mode);
    ~SafeFile();
    SafeFile(const SafeFile&) = delete;
    SafeFile& operator=(const SafeFile&) = delete;

    void write(const std::byte* data, size_t length);
    void commit();  // now it has its name

  private:
    std::string name_;       // as it was asked for, for messages
    std::string leaf_;       // its last part
    std::string temporary_;  // in the same folder
    UniqueFd folder_;
    UniqueFd file_;
    bool committed_ = false;
};

}  // namespace tagwire::perf
