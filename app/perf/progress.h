// SPDX-License-Identifier: BSD-3-Clause
// A progress display on standard error: one changing line on a terminal, a line
// every few seconds elsewhere.
#pragma once

#include <rte_cycles.h>

#include <cstdint>
#include <string>

namespace tagwire::perf {

class Progress {
  public:
    enum class Unit { kBytes, kCount };

    Progress(std::string label, uint64_t total, Unit unit, bool enabled);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    // Cheap enough for every message.
    void update(uint64_t done) noexcept {
        if (rte_rdtsc() >= next_) {
            show(done);
        }
    }

  private:
    void show(uint64_t done) noexcept;

    std::string label_;
    uint64_t total_;
    Unit unit_;
    bool terminal_;
    bool shown_ = false;
    uint64_t start_;
    uint64_t interval_;
    uint64_t next_;
};

}  // namespace tagwire::perf
