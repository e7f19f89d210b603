// SPDX-License-Identifier: BSD-3-Clause
// The environment of these tests: one device that hears itself, stepped by hand.
#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
    ::testing::InitGoogleTest(&argc, argv);
    ::setenv("SOFTCX_DEVICES", "2", 1);
    ::setenv("SOFTCX_WIRE", "loopback", 1);
    ::setenv("SOFTCX_MODE", "step", 1);
    return RUN_ALL_TESTS();
}
