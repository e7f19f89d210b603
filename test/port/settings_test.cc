// SPDX-License-Identifier: BSD-3-Clause
#include "lib/port/settings.h"

#include <gtest/gtest.h>

#include <map>

#include "lib/port/failure.h"
#include "lib/port/process_ports.h"

namespace tagwire::port {
namespace {

Settings read(const std::map<std::string, std::string>& values) {
    return Settings::from([&](const char* name) {
        const auto found = values.find(name);
        return found == values.end() ? nullptr : found->second.c_str();
    });
}

TEST(Settings, DefaultsWithoutVariables) {
    const Settings settings = read({});
    EXPECT_EQ(settings.udp_port, 18515);
    EXPECT_EQ(settings.unexpected_mb, 128u);
    EXPECT_TRUE(settings.ip.empty());
}

TEST(Settings, EveryVariableIsRead) {
    const Settings settings = read({{"EAL_ARGS", "--log-level=8"},
                                    {"VDEV", "net_null0"},
                                    {"WIRE", "switch:x"},
                                    {"IP", "10.0.0.1,10.0.0.2"},
                                    {"UDP_PORT", "4791"},
                                    {"MTU", "1500"},
                                    {"PEER_TIMEOUT_MS", "500"},
                                    {"UNEXPECTED_MB", "2"},
                                    {"MAX_OPERATIONS", "128"},
                                    {"MAX_PEERS", "8"},
                                    {"WORKERS", "2"},
                                    {"SOFTCX", "/lib/x.so"}});
    EXPECT_EQ(settings.eal_args, "--log-level=8");
    EXPECT_EQ(settings.vdev, "net_null0");
    EXPECT_EQ(settings.wire, "switch:x");
    EXPECT_EQ(settings.ip, (std::vector<std::string>{"10.0.0.1", "10.0.0.2"}));
    EXPECT_EQ(settings.udp_port, 4791);
    EXPECT_EQ(settings.mtu, 1500);
    EXPECT_EQ(settings.peer_timeout_ms, 500u);
    EXPECT_EQ(settings.unexpected_mb, 2u);
    EXPECT_EQ(settings.max_operations, 128u);
    EXPECT_EQ(settings.max_peers, 8u);
    EXPECT_EQ(settings.workers, 2u);
    EXPECT_EQ(settings.softcx, "/lib/x.so");
}

TEST(Settings, WhatCannotBeUsedIsNamedWithARemedy) {
    for (const auto& [name, value] : std::map<std::string, std::string>{{"UDP_PORT", "0"},
                                                                        {"UDP_PORT", "70000"},
                                                                        {"MTU", "1500x"},
                                                                        {"WORKERS", "-1"},
                                                                        {"IP", "example.org"},
                                                                        {"IP", "::1"}}) {
        try {
            read({{name, value}});
            ADD_FAILURE() << name << "=" << value << " was taken";
        } catch (const Failure& failure) {
            EXPECT_NE(std::string(failure.what()).find("TAGWIRE_" + name), std::string::npos);
            EXPECT_FALSE(failure.remedy().empty());
        }
    }
}

TEST(Settings, AddressesOfWorkersDifferAndStay) {
    const Settings settings = read({{"WIRE", "switch:x"}, {"IP", "10.9.8.7"}});
    const tw_address first = address_of_worker(settings, 0);
    const tw_address second = address_of_worker(settings, 1);
    EXPECT_EQ(first.ip[3], 7);
    EXPECT_NE(std::string(reinterpret_cast<const char*>(first.ip), 4),
              std::string(reinterpret_cast<const char*>(second.ip), 4));
    const tw_address again = address_of_worker(settings, 1);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(again.ip), 4),
              std::string(reinterpret_cast<const char*>(second.ip), 4));
}

}  // namespace
}  // namespace tagwire::port
