// SPDX-License-Identifier: BSD-3-Clause
// The EAL arguments: what the user gave, completed with what is left open.
#pragma once

#include <string>
#include <vector>

namespace tagwire::perf {

struct EalArguments {
    std::vector<std::string> arguments;  // [0] is the program
    std::vector<std::string> choices;    // what was chosen here and why, for people
};

// Chooses the memory (hugepages, or --no-huge), the cores, the device and the log
// level where `given` says nothing about them. Throws Failure when no device is there.
EalArguments complete_eal_arguments(std::vector<std::string> given);

// Initializes the EAL; throws Failure with a remedy.
void initialize_eal(const EalArguments& eal);

}  // namespace tagwire::perf
