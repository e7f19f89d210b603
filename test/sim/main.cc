// SPDX-License-Identifier: BSD-3-Clause
// main() of every test that uses the simulator: EAL without hugepages or devices,
// then GoogleTest. --seed N replays one seed.
#include <gtest/gtest.h>
#include <rte_eal.h>
#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "test/sim/simulator.h"

namespace sim {
namespace {

uint64_t chosen_seed = 0;

// One lcore that may run on any CPU this process may use: EAL would pin it.
std::string any_cpu() {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof(set), &set);
    std::string list;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &set)) {
            list += (list.empty() ? "" : ",") + std::to_string(cpu);
        }
    }
    return "0@(" + list + ")";
}

bool start_eal(const char* program) {
    std::vector<std::string> arguments = {program,
                                          "--no-huge",
                                          "-m",
                                          "512",
                                          "--no-shconf",
                                          "--no-pci",
                                          "--no-telemetry",
                                          "--log-level=*:warning",
                                          "--lcores",
                                          any_cpu()};
    if (const char* level = std::getenv("TAGWIRE_TEST_LOG")) {
        arguments.push_back(std::string("--log-level=") + level);
    }
    std::vector<char*> argv;
    for (std::string& argument : arguments) {
        argv.push_back(argument.data());
    }
    return rte_eal_init(static_cast<int>(argv.size()), argv.data()) >= 0;
}

void take_seed(int* argc, char** argv) {
    int kept = 1;
    for (int i = 1; i < *argc; ++i) {
        if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < *argc) {
            chosen_seed = std::strtoull(argv[++i], nullptr, 0);
        } else if (std::strncmp(argv[i], "--seed=", 7) == 0) {
            chosen_seed = std::strtoull(argv[i] + 7, nullptr, 0);
        } else {
            argv[kept++] = argv[i];
        }
    }
    *argc = kept;
}

}  // namespace

uint64_t seed() {
    return chosen_seed;
}

}  // namespace sim

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    sim::take_seed(&argc, argv);
    if (!sim::start_eal(argv[0])) {
        std::fprintf(stderr, "sim: EAL does not start\n");
        return 1;
    }
    return RUN_ALL_TESTS();
}
