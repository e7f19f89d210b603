// SPDX-License-Identifier: BSD-3-Clause
// How bringing up a port fails: what happened, and what to do about it.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace tagwire::port {

class Failure : public std::runtime_error {
  public:
    explicit Failure(const std::string& what, std::string remedy = {})
        : std::runtime_error(what), remedy_(std::move(remedy)) {}

    const std::string& remedy() const noexcept { return remedy_; }
    // Both, for a line of a log.
    std::string text() const {
        return remedy_.empty() ? what() : std::string(what()) + ": " + remedy_;
    }

  private:
    std::string remedy_;
};

}  // namespace tagwire::port
