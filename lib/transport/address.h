// SPDX-License-Identifier: BSD-3-Clause
// Where an endpoint is: IP address, UDP port of its worker, endpoint number there.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

namespace tagwire::transport {

enum class AddressFamily : uint8_t { kIpv4 = 4, kIpv6 = 6 };

struct EndpointAddress {
    AddressFamily family = AddressFamily::kIpv4;
    std::array<uint8_t, 16> ip{};  // network order; IPv4 in the first four bytes
    uint16_t udp_port = 0;         // host order
    uint16_t endpoint = 0;         // several endpoints share one worker's UDP port

    bool operator==(const EndpointAddress&) const = default;
};

struct MacAddress {
    std::array<uint8_t, 6> bytes{};
    bool operator==(const MacAddress&) const = default;
};

std::string format(const EndpointAddress& address);
std::string format(const MacAddress& mac);

}  // namespace tagwire::transport
