// SPDX-License-Identifier: BSD-3-Clause
#include "lib/transport/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

namespace tagwire::transport {

std::string format(const EndpointAddress& address) {
    char text[INET6_ADDRSTRLEN] = "?";
    const bool v6 = address.family == AddressFamily::kIpv6;
    inet_ntop(v6 ? AF_INET6 : AF_INET, address.ip.data(), text, sizeof(text));
    std::string result = v6 ? fmt::format("[{}]:{}", text, address.udp_port)
                            : fmt::format("{}:{}", text, address.udp_port);
    if (address.endpoint != 0) {
        result += fmt::format("/{}", address.endpoint);
    }
    return result;
}

std::string format(const MacAddress& mac) {
    const auto& b = mac.bytes;
    return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", b[0], b[1], b[2], b[3], b[4],
                       b[5]);
}

}  // namespace tagwire::transport
