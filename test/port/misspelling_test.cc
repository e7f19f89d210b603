// SPDX-License-Identifier: BSD-3-Clause
#include "lib/port/misspelling.h"

#include <gtest/gtest.h>

#include <utility>

#include "lib/port/settings.h"

namespace tagwire::port {
namespace {

TEST(Misspelling, TellsWhichVariableIsMeant) {
    const std::pair<const char*, const char*> kCases[] = {
        {"WRIE", "WIRE"},     {"WIR", "WIRE"},
        {"WIRES", "WIRE"},    {"PEER_TIMEOUT", "PEER_TIMEOUT_MS"},
        {"MTUS", "MTU"},      {"UNEXPECTED_MS", "UNEXPECTED_MB"},
        {"SOFTXC", "SOFTCX"}, {"MAX_PEER", "MAX_PEERS"},
    };
    for (const auto& [name, meant] : kCases) {
        EXPECT_EQ(meant_variable(name), meant) << name;
    }
}

TEST(Misspelling, LeavesOtherNamesAlone) {
    for (const Variable& variable : variables()) {
        EXPECT_EQ(meant_variable(variable.name), "") << variable.name;
    }
    for (const char* name : {"FI_DIR", "TEST_SLOW", "TESTPMD", "PERF", "WIRE_A", "DPDK_HEADERS",
                             "ROWS", "CACHE", "TEST_LOG", "", "I", "X"}) {
        EXPECT_EQ(meant_variable(name), "") << name;
    }
}

TEST(Misspelling, NamesTheVariablesOfAnEnvironment) {
    const char* const environment[] = {"HOME=/root", "TAGWIRE_WRIE=switch:a", "TAGWIRE_WIRE=x",
                                       "WRIE=1",     "TAGWIRE_IPS",           nullptr};
    EXPECT_EQ(misspelt_variables(environment),
              std::vector<std::string>{"TAGWIRE_WRIE has no effect: is TAGWIRE_WIRE meant?"});
}

}  // namespace
}  // namespace tagwire::port
