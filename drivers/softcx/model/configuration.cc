// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/model/configuration.h"

#include <net/if.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

namespace softcx {

namespace {

std::string wrong(const char* name, const char* value, const char* remedy) {
    return std::string(name) + "=" + value + ": " + remedy;
}

bool read_devices(const char* text, uint32_t& devices) {
    const char* end = text + std::strlen(text);
    const auto [stop, error] = std::from_chars(text, end, devices);
    return error == std::errc{} && stop == end && devices >= 1 && devices <= kMaxDevices;
}

bool read_mac(const char* text, MacAddress& mac) {
    unsigned bytes[6];
    int used = 0;
    if (std::sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &bytes[0], &bytes[1], &bytes[2], &bytes[3],
                    &bytes[4], &bytes[5], &used) != 6 ||
        text[used] != '\0')
        return false;
    bool zero = true;
    for (int i = 0; i < 6; ++i) {
        mac[i] = static_cast<uint8_t>(bytes[i]);
        zero = zero && bytes[i] == 0;
    }
    return !zero && (mac[0] & 1) == 0;
}

bool read_mode(const std::string& text, Mode& mode) {
    if (text == "auto")
        mode = Mode::kAuto;
    else if (text == "step")
        mode = Mode::kStep;
    else if (text == "thread")
        mode = Mode::kThread;
    else
        return false;
    return true;
}

bool read_log_level(const std::string& text, LogLevel& level) {
    if (text == "error")
        level = LogLevel::kError;
    else if (text == "warn")
        level = LogLevel::kWarn;
    else if (text == "info")
        level = LogLevel::kInfo;
    else if (text == "debug")
        level = LogLevel::kDebug;
    else
        return false;
    return true;
}

// Names as the kernel allows them (dev_valid_name), one for each device.
bool read_netdevs(const std::string& text, std::vector<std::string>& names) {
    for (size_t start = 0; start <= text.size();) {
        const size_t end = std::min(text.find(',', start), text.size());
        const std::string name = text.substr(start, end - start);
        if (name.empty() || name.size() >= IF_NAMESIZE || name == "." || name == ".." ||
            name.find_first_of("/: \t\n") != std::string::npos ||
            std::find(names.begin(), names.end(), name) != names.end())
            return false;
        names.push_back(name);
        start = end + 1;
    }
    return true;
}

const char* check_wire(const std::string& wire, uint32_t devices) {
    if (wire == "loopback")
        return nullptr;
    if (wire == "pair")
        return devices % 2 == 0 ? nullptr
                                : "a pair joins two devices: set SOFTCX_DEVICES to an even number";
    constexpr const char* kSwitch = "switch:";
    if (wire.rfind(kSwitch, 0) == 0)
        return wire.size() > std::strlen(kSwitch) ? nullptr : "name the switch, as in switch:lab";
    return "no such wire: use loopback, pair or switch:NAME";
}

}  // namespace

bool read_configuration(const char* (*get)(const char*), Configuration& configuration,
                        std::string& error) {
    if (const char* text = get("SOFTCX_LOG"); text != nullptr) {
        if (!read_log_level(text, configuration.log)) {
            error = wrong("SOFTCX_LOG", text, "use error, warn, info or debug");
            return false;
        }
    }
    if (const char* text = get("SOFTCX_DEVICES"); text != nullptr) {
        if (!read_devices(text, configuration.devices)) {
            error = wrong("SOFTCX_DEVICES", text, "use a number from 1 to 32");
            return false;
        }
    }
    if (const char* text = get("SOFTCX_NETDEV"); text != nullptr) {
        if (!read_netdevs(text, configuration.netdevs)) {
            error = wrong("SOFTCX_NETDEV", text,
                          "use names of network devices, each once, such as veth0,veth1");
            return false;
        }
        if (get("SOFTCX_DEVICES") == nullptr)
            configuration.devices = static_cast<uint32_t>(configuration.netdevs.size());
        if (configuration.netdevs.size() > std::min(configuration.devices, kMaxDevices)) {
            error = wrong("SOFTCX_NETDEV", text,
                          "more names than devices: name one for each, or set SOFTCX_DEVICES");
            return false;
        }
        if (get("SOFTCX_MAC") != nullptr) {
            error = wrong("SOFTCX_NETDEV", text, "the addresses come from there: unset SOFTCX_MAC");
            return false;
        }
    }
    configuration.wire = configuration.devices == 2 ? "pair" : "loopback";
    if (const char* text = get("SOFTCX_WIRE"); text != nullptr) {
        configuration.wire = text;
        if (const char* remedy = check_wire(text, configuration.devices)) {
            error = wrong("SOFTCX_WIRE", text, remedy);
            return false;
        }
    }
    if (const char* text = get("SOFTCX_MODE"); text != nullptr) {
        if (!read_mode(text, configuration.mode)) {
            error = wrong("SOFTCX_MODE", text, "use auto, step or thread");
            return false;
        }
    }
    if (const char* text = get("SOFTCX_MAC"); text != nullptr) {
        MacAddress mac;
        if (!read_mac(text, mac)) {
            error = wrong("SOFTCX_MAC", text, "use a unicast address such as 02:00:00:00:00:01");
            return false;
        }
        configuration.mac = mac;
    }
    if (const char* text = get("SOFTCX_FAULTS"); text != nullptr) {
        std::string remedy;
        if (!parse_faults(text, configuration.faults, remedy)) {
            error = wrong("SOFTCX_FAULTS", text, remedy.c_str());
            return false;
        }
    }
    return true;
}

}  // namespace softcx
