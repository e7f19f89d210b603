// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "test/fi/killed.h"

int main(int argc, char** argv) {
    const std::string role = argc > 1 ? argv[1] : "";
    if (role == "--victim") {
        tagwire::fi_test::run_victim();
    }
    if (role == "--survivor") {
        return tagwire::fi_test::run_survivor();
    }
    testing::InitGoogleTest(&argc, argv);
    const std::string wire = "switch:fi-test-" + std::to_string(getpid());
    setenv("TAGWIRE_WIRE", wire.c_str(), 1);
    setenv("TAGWIRE_MAX_OPERATIONS", "1024", 1);
    setenv("TAGWIRE_MAX_PEERS", "16", 1);
    setenv("TAGWIRE_UNEXPECTED_MB", "4", 1);
    // libfabric reads them at its first call; refusal_test.cc reads what it writes.
    setenv("FI_LOG_LEVEL", "info", 1);
    setenv("FI_LOG_PROV", "tagwire", 1);
    return RUN_ALL_TESTS();
}
