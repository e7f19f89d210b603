// SPDX-License-Identifier: BSD-3-Clause
// How this program's control path fails: what happened, and what to do about it.
#pragma once

#include <string>
#include <utility>

#include "lib/port/failure.h"

namespace tagwire::perf {

enum class ExitCode : int {
    kSuccess = 0,
    kFailure = 1,
    kUsage = 2,
    kInterrupted = 130,  // 128 + SIGINT, as shells report it
};

class Failure : public port::Failure {
  public:
    explicit Failure(const std::string& what, std::string remedy = {},
                     ExitCode exit_code = ExitCode::kFailure)
        : port::Failure(what, std::move(remedy)), exit_code_(exit_code) {}

    ExitCode exit_code() const noexcept { return exit_code_; }

  private:
    ExitCode exit_code_;
};

// SIGINT or SIGTERM: unwinds to main, which prints what was measured so far.
class Interrupted : public Failure {
  public:
    Interrupted() : Failure("interrupted", {}, ExitCode::kInterrupted) {}
};

// The other side said why it ends; it needs no answer.
class PeerGaveUp : public Failure {
  public:
    using Failure::Failure;
};

}  // namespace tagwire::perf
