// SPDX-License-Identifier: BSD-3-Clause
// What a user may say about the port of a process that knows nothing of DPDK: doc/port.md.
#pragma once

#include <tagwire/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tagwire::port {

struct Variable {
    const char* name;  // after "TAGWIRE_"
    const char* help;
};
const std::vector<Variable>& variables();

struct Settings {
    std::string eal_args;  // EAL arguments, separated by spaces
    std::string vdev;      // a DPDK device, as EAL's --vdev
    std::string wire;      // softcx's wire
    std::string softcx;    // path of libsoftcx.so
    std::vector<std::string> ip;
    uint16_t udp_port = 18515;
    uint16_t mtu = 0;
    uint32_t peer_timeout_ms = 10000;
    uint32_t unexpected_mb = 128;
    uint32_t max_operations = 16384;
    uint32_t max_peers = 1024;
    uint32_t workers = 4;  // ports of this process at most

    // `get` gives the value of a variable, or nullptr. Throws Failure for what cannot be used.
    static Settings from(const std::function<const char*(const char* name)>& get);
    // From TAGWIRE_*.
    static Settings from_environment();
};

}  // namespace tagwire::port
