// SPDX-License-Identifier: BSD-3-Clause
// Addresses as people type and read them: "192.0.2.1:18515/3", "[2001:db8::1]:18515".
#include <arpa/inet.h>

#include <charconv>
#include <cstring>
#include <string>
#include <string_view>

#include "lib/tagwire/address.h"
#include "lib/tagwire/error.h"
#include "tagwire/tagwire.h"

namespace tagwire {
namespace {

bool take_number(std::string_view text, uint16_t* number) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, *number);
    return error == std::errc{} && stop == end && !text.empty();
}

int parse(std::string_view text, tw_address* address) {
    const std::string whole(text);
    tw_address result{};
    const size_t slash = text.find('/');
    if (slash != text.npos) {
        if (!take_number(text.substr(slash + 1), &result.endpoint) ||
            result.endpoint == TW_EP_ANY) {
            return fail(EINVAL, "address '%s': after '/' comes an endpoint number, 0 to 65534",
                        whole.c_str());
        }
        text = text.substr(0, slash);
    }
    const size_t colon = text.rfind(':');
    if (colon == text.npos || !take_number(text.substr(colon + 1), &result.udp_port) ||
        result.udp_port == 0) {
        return fail(EINVAL,
                    "address '%s': after ':' comes a UDP port, 1 to 65535, as in 192.0.2.1:18515",
                    whole.c_str());
    }
    std::string ip(text.substr(0, colon));
    const bool bracketed = ip.size() > 2 && ip.front() == '[' && ip.back() == ']';
    if (bracketed) {
        ip = ip.substr(1, ip.size() - 2);
    }
    result.family = bracketed ? 6 : 4;
    if (inet_pton(bracketed ? AF_INET6 : AF_INET, ip.c_str(), result.ip) != 1) {
        return fail(EINVAL, "address '%s': '%s' is not an IP address (IPv6 stands in brackets)",
                    whole.c_str(), ip.c_str());
    }
    *address = result;
    return 0;
}

}  // namespace

transport::EndpointAddress to_transport(const tw_address& address) {
    transport::EndpointAddress result;
    result.family = static_cast<transport::AddressFamily>(address.family);
    std::memcpy(result.ip.data(), address.ip, address.family == 6 ? 16 : 4);
    result.udp_port = address.udp_port;
    result.endpoint = address.endpoint;
    return result;
}

tw_address from_transport(const transport::EndpointAddress& address) {
    tw_address result{};
    result.family = static_cast<uint8_t>(address.family);
    result.udp_port = address.udp_port;
    result.endpoint = address.endpoint;
    std::memcpy(result.ip, address.ip.data(), sizeof(result.ip));
    return result;
}

int check_address(const tw_address& address) {
    if (address.family != 4 && address.family != 6) {
        return fail(EINVAL, "address family %u: it is 4 or 6", address.family);
    }
    if (address.udp_port == 0) {
        return fail(EINVAL, "the UDP port of an address cannot be 0");
    }
    return 0;
}

}  // namespace tagwire

int tw_address_parse(const char* text, tw_address* address) {
    if (text == nullptr || address == nullptr) {
        return tagwire::refuse(EINVAL, "tw_address_parse: text and address cannot be NULL");
    }
    return tagwire::guarded([&] { return tagwire::parse(text, address); });
}

int tw_address_format(const tw_address* address, char* text, size_t size) {
    if (address == nullptr || text == nullptr) {
        return tagwire::refuse(EINVAL, "tw_address_format: address and text cannot be NULL");
    }
    return tagwire::guarded([&] {
        if (const int error = tagwire::check_address(*address); error != 0) {
            return error;
        }
        const std::string result = tagwire::transport::format(tagwire::to_transport(*address));
        if (result.size() >= size) {
            return tagwire::fail(ENOSPC, "an address text of %zu bytes needs room for %zu",
                                 result.size(), result.size() + 1);
        }
        std::memcpy(text, result.c_str(), result.size() + 1);
        return 0;
    });
}
