// SPDX-License-Identifier: BSD-3-Clause
#include "lib/port/settings.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "lib/port/failure.h"

namespace tagwire::port {
namespace {

template <class Number>
void read_number(const char* name, const char* text, Number least, Number most, Number* value) {
    if (text == nullptr || *text == '\0') {
        return;
    }
    Number number{};
    const char* end = text + std::strlen(text);
    const auto [stop, error] = std::from_chars(text, end, number);
    if (error != std::errc{} || stop != end || number < least || number > most) {
        throw Failure(fmt::format("TAGWIRE_{}={} cannot be used", name, text),
                      fmt::format("give a number between {} and {}", least, most));
    }
    *value = number;
}

void read_text(const char* text, std::string* value) {
    if (text != nullptr) {
        *value = text;
    }
}

}  // namespace

const std::vector<Variable>& variables() {
    static const std::vector<Variable> all = {
        {"WIRE",
         "wire of the software ConnectX, as softcx-run's --wire: switch:NAME, netdev:NAME "
         "... (switch:tagwire-USER-ID)"},
        {"VDEV",
         "DPDK device to use, as EAL's --vdev: net_mlx5raw0,ibdev=mlx5_0, "
         "net_memif0,role=client ... (the first mlx5 card, else the software one)"},
        {"EAL_ARGS", "more EAL arguments, separated by spaces"},
        {"IP",
         "IPv4 address; several, separated by commas, for several workers of the process "
         "(10.x.y.z, different in each process of a host)"},
        {"UDP_PORT", "UDP port (18515)"},
        {"MTU",
         "largest IP packet in bytes (9000 on the software card's own wires, else the "
         "port's)"},
        {"PEER_TIMEOUT_MS", "silence after which a peer is dead (10000)"},
        {"UNEXPECTED_MB", "memory for messages that nobody received yet, each worker (128)"},
        {"MAX_OPERATIONS", "sends outstanding, and as many receives, each worker (16384)"},
        {"MAX_PEERS", "peers of a worker (1024)"},
        {"WORKERS", "workers, and ports, of one process at most (4)"},
        {"SOFTCX", "path of libsoftcx.so (found beside the library)"},
    };
    return all;
}

Settings Settings::from(const std::function<const char*(const char* name)>& get) {
    Settings settings;
    read_text(get("EAL_ARGS"), &settings.eal_args);
    read_text(get("VDEV"), &settings.vdev);
    read_text(get("WIRE"), &settings.wire);
    read_text(get("SOFTCX"), &settings.softcx);
    if (const char* list = get("IP"); list != nullptr) {
        std::istringstream text(list);
        for (std::string ip; std::getline(text, ip, ',');) {
            tw_address address{};
            if (tw_address_parse((ip + ":1").c_str(), &address) < 0 || address.family != 4) {
                throw Failure(fmt::format("TAGWIRE_IP={}: '{}' is no IPv4 address", list, ip),
                              "give addresses of a private network, as 10.0.0.1");
            }
            settings.ip.push_back(ip);
        }
    }
    read_number<uint16_t>("UDP_PORT", get("UDP_PORT"), 1, 65535, &settings.udp_port);
    read_number<uint16_t>("MTU", get("MTU"), 576, 9600, &settings.mtu);
    read_number<uint32_t>("PEER_TIMEOUT_MS", get("PEER_TIMEOUT_MS"), 100, 3600'000,
                          &settings.peer_timeout_ms);
    read_number<uint32_t>("UNEXPECTED_MB", get("UNEXPECTED_MB"), 1, 16384, &settings.unexpected_mb);
    read_number<uint32_t>("MAX_OPERATIONS", get("MAX_OPERATIONS"), 64, 1 << 20,
                          &settings.max_operations);
    read_number<uint32_t>("MAX_PEERS", get("MAX_PEERS"), 1, 1 << 20, &settings.max_peers);
    read_number<uint32_t>("WORKERS", get("WORKERS"), 1, 32, &settings.workers);
    return settings;
}

Settings Settings::from_environment() {
    return from([](const char* name) {
        return static_cast<const char*>(std::getenv((std::string("TAGWIRE_") + name).c_str()));
    });
}

}  // namespace tagwire::port
