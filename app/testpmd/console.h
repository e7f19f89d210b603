// SPDX-License-Identifier: BSD-3-Clause
// Where commands come from: a file, and the prompt.
#pragma once

#include <string>

#include "command_table.h"
#include "program.h"

namespace tagwire::testpmd {

class Console {
  public:
    explicit Console(Program& program);

    // Runs the file's commands, as testpmd does also behind one with an error. False if there was
    // one. Throws perf::Failure when there is no such file.
    bool run_file(const std::string& path);
    // Until quit, the end of the input or a signal.
    void interact();

  private:
    void report(const std::string& what, const std::string& remedy);

    Program& program_;
    CommandTable table_;
    std::string place_;  // "FILE:LINE: "
    bool failed_ = false;
};

// Waits until standard input has something or is at its end, or a signal came; at most
// `milliseconds`, -1: for ever. True if there is something to read.
bool wait_for_input(int milliseconds);

}  // namespace tagwire::testpmd
