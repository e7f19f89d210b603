// SPDX-License-Identifier: BSD-3-Clause
#include "addresses.h"

#include <fmt/format.h>

#include "failure.h"

namespace tagwire::perf {
namespace {

// An IPv6 address without a port has no brackets but several colons.
std::string with_port(const std::string& text, uint16_t port) {
    const bool bracketed = text.find('[') != std::string::npos;
    const size_t colon = text.find(':');
    if (bracketed) {
        return text.find("]:") != std::string::npos ? text : fmt::format("{}:{}", text, port);
    }
    if (colon == std::string::npos) {
        return fmt::format("{}:{}", text, port);
    }
    return text.find(':', colon + 1) != std::string::npos ? fmt::format("[{}]:{}", text, port)
                                                          : text;
}

// An address that one port of a network can have (RFC 6890).
bool is_usable(const tw_address& address) {
    const uint8_t first = address.ip[0];
    return address.family == 4 && first != 0 && first != 127 && first < 224;
}

}  // namespace

tw_address parse_address(const std::string& text, uint16_t default_port) {
    tw_address address{};
    if (tw_address_parse(with_port(text, default_port).c_str(), &address) < 0) {
        throw Failure(fmt::format("'{}' is no address", text),
                      "give an IP address with an optional UDP port: 10.0.0.1 or 10.0.0.1:18515",
                      ExitCode::kUsage);
    }
    if (!is_usable(address)) {
        throw Failure(
            fmt::format("{} cannot be the address of a port", text),
            "choose IPv4 addresses of a private network for the two sides, as 10.0.0.1 and "
            "10.0.0.2; loopback and multicast are of no use between them",
            ExitCode::kUsage);
    }
    return address;
}

std::string format_address(const tw_address& address) {
    char text[80] = {};
    tw_address_format(&address, text, sizeof(text));
    return text;
}

std::string default_ip(const rte_ether_addr& mac) {
    return fmt::format("10.{}.{}.{}", mac.addr_bytes[3], mac.addr_bytes[4], mac.addr_bytes[5]);
}

}  // namespace tagwire::perf
