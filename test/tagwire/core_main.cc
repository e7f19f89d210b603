// SPDX-License-Identifier: BSD-3-Clause
// main() of the core's tests: EAL, for the memory that it gives, then GoogleTest.
#include <gtest/gtest.h>
#include <rte_eal.h>
#include <sched.h>

#include <cstdio>
#include <string>
#include <vector>

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    std::vector<std::string> arguments{argv[0],
                                       "--no-huge",
                                       "-m",
                                       "64",
                                       "--no-shconf",
                                       "--no-pci",
                                       "--lcores",
                                       "0@" + std::to_string(sched_getcpu()),
                                       "--no-telemetry",
                                       "--log-level=*:warning"};
    std::vector<char*> pointers;
    for (std::string& argument : arguments) {
        pointers.push_back(argument.data());
    }
    if (rte_eal_init(static_cast<int>(pointers.size()), pointers.data()) < 0) {
        std::fprintf(stderr, "tagwire_core_test: EAL does not start\n");
        return 1;
    }
    return RUN_ALL_TESTS();
}
