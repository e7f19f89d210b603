// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/model/configuration.h"

#include <gtest/gtest.h>

#include <map>

namespace softcx {
namespace {

std::map<std::string, std::string> environment;

const char* get(const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
}

bool read(std::map<std::string, std::string> values, Configuration& configuration,
          std::string& error) {
    environment = std::move(values);
    return read_configuration(get, configuration, error);
}

TEST(Configuration, DefaultIsOneLoopedDevice) {
    Configuration configuration;
    std::string error;
    ASSERT_TRUE(read({}, configuration, error));
    EXPECT_EQ(configuration.devices, 1u);
    EXPECT_EQ(configuration.wire, "loopback");
    EXPECT_EQ(configuration.mode, Mode::kAuto);
    EXPECT_FALSE(configuration.mac);
}

TEST(Configuration, TwoDevicesAreAPair) {
    Configuration configuration;
    std::string error;
    ASSERT_TRUE(read({{"SOFTCX_DEVICES", "2"}}, configuration, error));
    EXPECT_EQ(configuration.wire, "pair");
}

TEST(Configuration, AWireOfNetdevsSaysHowManyDevicesThereAre) {
    Configuration configuration;
    std::string error;
    ASSERT_TRUE(read({{"SOFTCX_WIRE", "netdev:veth0,veth1,veth2"}}, configuration, error));
    EXPECT_EQ(configuration.devices, 3u);
    EXPECT_FALSE(
        read({{"SOFTCX_WIRE", "netdev:veth0"}, {"SOFTCX_DEVICES", "2"}}, configuration, error));
    EXPECT_NE(error.find("it names 1 network devices for 2 devices"), std::string::npos) << error;
    EXPECT_FALSE(read({{"SOFTCX_WIRE", "netdev:veth0,veth0"}}, configuration, error));
    EXPECT_NE(error.find("each once"), std::string::npos) << error;
}

TEST(Configuration, ReadsEveryVariable) {
    Configuration configuration;
    std::string error;
    ASSERT_TRUE(read({{"SOFTCX_DEVICES", "3"},
                      {"SOFTCX_WIRE", "switch:lab"},
                      {"SOFTCX_MODE", "thread"},
                      {"SOFTCX_MAC", "02:00:00:00:0a:Ff"},
                      {"SOFTCX_LOG", "debug"}},
                     configuration, error))
        << error;
    EXPECT_EQ(configuration.devices, 3u);
    EXPECT_EQ(configuration.wire, "switch:lab");
    EXPECT_EQ(configuration.mode, Mode::kThread);
    EXPECT_EQ(*configuration.mac, (MacAddress{2, 0, 0, 0, 0x0a, 0xff}));
    EXPECT_EQ(configuration.log, LogLevel::kDebug);
}

TEST(Configuration, NetdevsSayHowManyDevicesThereAre) {
    Configuration configuration;
    std::string error;
    ASSERT_TRUE(read({{"SOFTCX_NETDEV", "veth0,eth1.5"}}, configuration, error)) << error;
    EXPECT_EQ(configuration.devices, 2u);
    EXPECT_EQ(configuration.wire, "pair");
    ASSERT_NE(configuration.netdev_of(1), nullptr);
    EXPECT_EQ(*configuration.netdev_of(1), "eth1.5");
    EXPECT_EQ(configuration.netdev_of(2), nullptr);
}

TEST(Configuration, DevicesMayOutnumberNetdevs) {
    Configuration configuration;
    std::string error;
    ASSERT_TRUE(read({{"SOFTCX_NETDEV", "veth0"}, {"SOFTCX_DEVICES", "4"}}, configuration, error))
        << error;
    EXPECT_EQ(configuration.devices, 4u);
    EXPECT_EQ(configuration.netdev_of(1), nullptr);
}

TEST(Configuration, NetdevsMayNotOutnumberDevicesNorHaveAnotherAddress) {
    for (const auto& [name, value] :
         {std::pair{"SOFTCX_DEVICES", "1"}, std::pair{"SOFTCX_MAC", "02:00:00:00:00:01"}}) {
        Configuration configuration;
        std::string error;
        EXPECT_FALSE(read({{"SOFTCX_NETDEV", "veth0,veth1"}, {name, value}}, configuration, error));
        EXPECT_EQ(error.rfind("SOFTCX_NETDEV=veth0,veth1: ", 0), 0u) << error;
        EXPECT_NE(error.find(name), std::string::npos) << error;
    }
}

TEST(Configuration, NamesTheValueAndTheRemedy) {
    const std::map<std::string, std::string> wrong[] = {
        {{"SOFTCX_DEVICES", "0"}},
        {{"SOFTCX_DEVICES", "33"}},
        {{"SOFTCX_DEVICES", "2x"}},
        {{"SOFTCX_DEVICES", ""}},
        {{"SOFTCX_WIRE", "cable"}},
        {{"SOFTCX_WIRE", "switch:"}},
        {{"SOFTCX_WIRE", "pair"}},
        {{"SOFTCX_MODE", "fast"}},
        {{"SOFTCX_MAC", "01:00:00:00:00:01"}},
        {{"SOFTCX_MAC", "02:00:00:00:00"}},
        {{"SOFTCX_MAC", "02:00:00:00:00:01:02"}},
        {{"SOFTCX_MAC", "00:00:00:00:00:00"}},
        {{"SOFTCX_LOG", "loud"}},
        {{"SOFTCX_NETDEV", ""}},
        {{"SOFTCX_NETDEV", "veth0,"}},
        {{"SOFTCX_NETDEV", "veth0,veth0"}},
        {{"SOFTCX_NETDEV", "../veth0"}},
        {{"SOFTCX_NETDEV", "sixteencharacter"}},
    };
    for (const auto& values : wrong) {
        Configuration configuration;
        std::string error;
        EXPECT_FALSE(read(values, configuration, error)) << values.begin()->second;
        const std::string named = values.begin()->first + "=" + values.begin()->second;
        EXPECT_EQ(error.rfind(named, 0), 0u) << error;
        EXPECT_GT(error.size(), named.size() + 10) << error;
    }
}

TEST(Configuration, ChecksCountOrAreFatal) {
    Configuration configuration;
    std::string error;
    ASSERT_TRUE(read({{"SOFTCX_CHECKS", "fatal"}}, configuration, error));
    EXPECT_TRUE(configuration.checks_are_fatal);
    ASSERT_TRUE(read({{"SOFTCX_CHECKS", "count"}}, configuration, error));
    EXPECT_FALSE(configuration.checks_are_fatal);
    EXPECT_FALSE(read({{"SOFTCX_CHECKS", "Fatal"}}, configuration, error));
    EXPECT_EQ(error, "SOFTCX_CHECKS=Fatal: use count or fatal");
}

}  // namespace
}  // namespace softcx
