// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/model/configuration.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "drivers/softcx/wire/packet_socket.h"
#include "drivers/softcx/wire/wire.h"

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
    else if (text == "trap")
        mode = Mode::kTrap;
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

bool read_checks(const std::string& text, bool& fatal) {
    fatal = text == "fatal";
    return fatal || text == "count";
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
    if (const char* text = get("SOFTCX_CHECKS"); text != nullptr) {
        if (!read_checks(text, configuration.checks_are_fatal)) {
            error = wrong("SOFTCX_CHECKS", text, "use count or fatal");
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
        if (!parse_netdev_names(text, configuration.netdevs)) {
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
        const uint32_t spoken_of = devices_of_wire(configuration.wire);
        if (spoken_of != 0 && get("SOFTCX_DEVICES") == nullptr && get("SOFTCX_NETDEV") == nullptr)
            configuration.devices = std::min(spoken_of, kMaxDevices);
        if (const char* variable = get("SOFTCX_WIRE_VARIABLE"); variable != nullptr)
            configuration.wire_variable = variable;
        if (const std::string remedy = check_wire(text, configuration.devices); !remedy.empty()) {
            error = wrong(configuration.wire_variable.c_str(), text, remedy.c_str());
            return false;
        }
    }
    if (const char* text = get("SOFTCX_MODE"); text != nullptr) {
        if (!read_mode(text, configuration.mode)) {
            error = wrong("SOFTCX_MODE", text, "use auto, step, thread or trap");
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
