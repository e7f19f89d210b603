// SPDX-License-Identifier: BSD-3-Clause
// SOFTCX_STRICT, which softcx-run sets: a program does not start with a wrong setting.
#include <unistd.h>

#include <cstdlib>

#include "drivers/softcx/model/configuration.h"
#include "drivers/softcx/model/netdev.h"

namespace {

const char* environment(const char* name) {
    return std::getenv(name);
}

[[gnu::constructor]] void check_settings() {
    if (std::getenv("SOFTCX_STRICT") == nullptr)
        return;
    softcx::Configuration configuration;
    std::string error;
    bool right = softcx::read_configuration(environment, configuration, error);
    for (const std::string& name : configuration.netdevs) {
        softcx::MacAddress mac;
        if (right && !softcx::read_netdev_mac(name, mac, error)) {
            right = false;
            error = "SOFTCX_NETDEV: " + name + ": " + error;
        }
    }
    if (right)
        return;
    softcx::log(softcx::LogLevel::kError, "%s", error.c_str());
    ::_exit(2);
}

}  // namespace
