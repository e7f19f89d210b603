// SPDX-License-Identifier: BSD-3-Clause
// What the environment asks for (softcx.h lists the variables).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drivers/softcx/log.h"
#include "drivers/softcx/model/objects.h"
#include "drivers/softcx/wire/faults.h"

namespace softcx {

// kAuto: a device thread, until somebody calls softcx_step. kTrap: the device runs inside
// the doorbell store (uverbs/trap.h).
enum class Mode : uint8_t { kAuto, kStep, kThread, kTrap };

struct Configuration {
    uint32_t devices = 1;
    std::string wire = "loopback";
    std::string wire_variable = "SOFTCX_WIRE";  // in which the user named it, for error texts
    Mode mode = Mode::kAuto;
    std::optional<MacAddress> mac;
    std::vector<std::string> netdevs;  // network devices of mlx5_0, mlx5_1 ...
    FaultPlan faults;
    LogLevel log = LogLevel::kWarn;
    bool checks_are_fatal = false;  // a client error aborts the program

    // nullptr: the device has none.
    const std::string* netdev_of(uint32_t device) const {
        return device < netdevs.size() ? &netdevs[device] : nullptr;
    }
};

inline constexpr uint32_t kMaxDevices = 32;

// `get` is getenv or a stand-in. False, and what is wrong with which remedy, for a
// value that cannot be used.
bool read_configuration(const char* (*get)(const char*), Configuration& configuration,
                        std::string& error);

}  // namespace softcx
