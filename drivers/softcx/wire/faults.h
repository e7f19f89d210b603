// SPDX-License-Identifier: BSD-3-Clause
// Which faults a wire has: "loss=0.01,dup=0.005,reorder=16,seed=7".
#pragma once

#include <cstdint>
#include <string>

namespace softcx {

struct FaultPlan {
    double loss = 0;         // probability that a frame is lost
    double duplication = 0;  // that it arrives twice
    double corruption = 0;   // that one of its bits is flipped
    uint32_t reorder = 0;    // frames that are held, to leave in any order
    uint64_t delay = 0;      // nanoseconds
    uint64_t rate = 0;       // bits per second; 0: no limit
    uint32_t queue = 1024;   // frames that wait for delay and rate; more are dropped
    uint64_t seed = 1;

    bool any() const {
        return loss > 0 || duplication > 0 || corruption > 0 || reorder != 0 || delay != 0 ||
               rate != 0;
    }
};

// False, and what is wrong with which remedy.
bool parse_faults(const std::string& text, FaultPlan& plan, std::string& error);

}  // namespace softcx
