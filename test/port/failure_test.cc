// SPDX-License-Identifier: BSD-3-Clause
// What is said when there is no port: the true reason, in the words of what the user has set.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "drivers/softcx/wire/wire.h"
#include "lib/port/eal_options.h"
#include "lib/port/failure.h"
#include "lib/port/process_ports.h"

namespace tagwire::port {
namespace {

Settings small_settings() {
    Settings settings;
    settings.unexpected_mb = 2;
    settings.eal_args = "--no-huge -m 256 --no-shconf";
    return settings;
}

// In a process of its own, since an EAL starts once.
[[noreturn]] void tell_why(const Settings& settings) {
    try {
        Lease::acquire(settings);
        std::fprintf(stderr, "there is a port\n");
    } catch (const Failure& failure) {
        std::fprintf(stderr, "FAILURE[%s]\n", failure.text().c_str());
    }
    std::_Exit(1);
}

using testing::ExitedWithCode;

// Death tests run before the others, which start the EAL.
TEST(FailureDeathTest, ABadWireIsNamedByTheVariableThatTheUserSet) {
    Settings settings = small_settings();
    settings.wire = "cable";
    EXPECT_EXIT(tell_why(settings), ExitedWithCode(1),
                "FAILURE\\[the software card cannot be used: TAGWIRE_WIRE=cable: no such wire");
    EXPECT_EXIT(
        {
            setenv("SOFTCX_WIRE", "rope", 1);
            tell_why(settings);
        },
        ExitedWithCode(1),
        "FAILURE\\[the software card cannot be used: SOFTCX_WIRE=rope: no such wire");
}

TEST(FailureDeathTest, ANetworkDeviceThatIsNotThereIsTheReason) {
    Settings settings = small_settings();
    settings.wire = "netdev:tw-no-such0";
    EXPECT_EXIT(tell_why(settings), ExitedWithCode(1),
                "FAILURE\\[the device .* cannot be opened: "
                "TAGWIRE_WIRE=netdev:tw-no-such0: [^\n]*tw-no-such0");
}

TEST(FailureDeathTest, AFullSwitchIsTheReasonWhenItIsFull) {
    const std::string wire = "switch:port-test-full-" + std::to_string(getpid());
    std::vector<std::unique_ptr<softcx::Wire>> ports;
    std::string error;
    for (uint32_t i = 0; i < 32; ++i) {
        ports.push_back(softcx::open_wire(wire, i, &error));
        ASSERT_NE(ports.back(), nullptr) << error;
    }
    Settings settings = small_settings();
    settings.wire = wire;
    EXPECT_EXIT(tell_why(settings), ExitedWithCode(1),
                "FAILURE\\[the device .* cannot be opened: TAGWIRE_WIRE=" + wire +
                    ": all 32 ports of [^\n]* are in use: end a program that has one, give each job "
                    "a switch of its own \\(another name\\), or start fewer processes");
}

TEST(FailureDeathTest, ADeviceOfTheUserNeedsACard) {
    Settings settings = small_settings();
    settings.vdev = "net_mlx5raw0";
    if (prospect(small_settings()).software) {
        EXPECT_EXIT(tell_why(settings), ExitedWithCode(1),
                    "FAILURE\\[TAGWIRE_VDEV=net_mlx5raw0 wants an mlx5 RDMA device, and there is "
                    "none: [^\n]*leave TAGWIRE_VDEV unset");
    }
    settings.vdev = "net_nonsense0";
    EXPECT_EXIT(tell_why(settings), ExitedWithCode(1),
                "FAILURE\\[the device 'net_nonsense0' cannot be opened: [^\n]*"
                "TAGWIRE_EAL_ARGS=--log-level=\\*:info says more\\]");
}

TEST(FailureDeathTest, NonsenseAmongEalArgumentsIsNamed) {
    Settings settings = small_settings();
    settings.eal_args = "--no-huge --nonsense=1";
    EXPECT_EXIT(tell_why(settings), ExitedWithCode(1),
                "^FAILURE\\[TAGWIRE_EAL_ARGS: '--nonsense=1' is no EAL argument");
}

TEST(EalOptions, TakesWhatTheEalTakes) {
    const std::vector<std::string> known[] = {
        {},
        {"--no-huge", "-m", "256", "-l0", "--lcores=0@(0,1)", "-l", "0-1", "-v"},
        {"--vdev", "net_null0", "--vdev=net_null1", "--huge-unlink", "--log-level", "8"},
        {"-a", "0000:01:00.0", "--file-pre=x"},
    };
    for (const auto& words : known) {
        EXPECT_NO_THROW(check_eal_arguments("X", words));
    }
}

TEST(EalOptions, NamesWhatTheEalDoesNotKnow) {
    const std::pair<std::vector<std::string>, const char*> unknown[] = {
        {{"nonsense"}, "X: 'nonsense'"},
        {{"--nonsense"}, "X: '--nonsense'"},
        {{"-m", "1", "-q"}, "X: '-q'"},
        {{"--no-huge", "256"}, "X: '256'"},
        {{"--help"}, "X: '--help'"},
        {{"--"}, "X: '--'"},
        {{"-"}, "X: '-'"},
        {{"--no-huge", "-m"}, "X: '-m' needs a value"},
        {{"--vdev"}, "X: '--vdev' needs"},
        {{"--no-pcie"}, "X: '--no-pcie'"},
    };
    for (const auto& [words, text] : unknown) {
        try {
            check_eal_arguments("X", words);
            ADD_FAILURE() << text << " was taken";
        } catch (const Failure& failure) {
            EXPECT_EQ(std::string(failure.what()).rfind(text, 0), 0u) << failure.what();
        }
    }
}

}  // namespace
}  // namespace tagwire::port
