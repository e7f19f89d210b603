// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "lib/fi/refusal.h"

namespace tagwire::fi {
namespace {

constexpr const char* kForms = "an address is a sockaddr_in or a sockaddr_in6";
constexpr size_t kMappedOffset = 12;  // of the IPv4 address in a mapped one

sockaddr_in6 to_sockaddr6(const tw_address& address) {
    sockaddr_in6 name{};
    name.sin6_family = AF_INET6;
    name.sin6_port = htons(address.udp_port);
    name.sin6_flowinfo = htonl(address.endpoint);
    std::memset(name.sin6_addr.s6_addr + kMappedOffset - 2, 0xff, 2);
    std::memcpy(name.sin6_addr.s6_addr + kMappedOffset, address.ip, sizeof(in_addr));
    return name;
}

int from_sockaddr6(const sockaddr_in6& name, tw_address* address) {
    in_addr ip{};
    if (IN6_IS_ADDR_V4MAPPED(&name.sin6_addr)) {
        std::memcpy(&ip, name.sin6_addr.s6_addr + kMappedOffset, sizeof(ip));
    } else if (IN6_IS_ADDR_LOOPBACK(&name.sin6_addr)) {
        ip.s_addr = htonl(INADDR_LOOPBACK);
    } else if (!IN6_IS_ADDR_UNSPECIFIED(&name.sin6_addr)) {
        return refuse(-EAFNOSUPPORT, FI_LOG_AV,
                      "an IPv6 address: Tagwire's packets are IPv4, so give an IPv4 address or an "
                      "IPv4-mapped one (::ffff:10.0.0.1)");
    }
    *address = {};
    address->family = 4;
    address->udp_port = ntohs(name.sin6_port);
    address->endpoint = static_cast<uint16_t>(ntohl(name.sin6_flowinfo));
    std::memcpy(address->ip, &ip, sizeof(ip));
    return 0;
}

// What getaddrinfo finds in this family.
int look_up(int family, const char* node, const char* service, bool numeric, tw_address* address) {
    addrinfo hints{};
    hints.ai_family = family;
    hints.ai_socktype = SOCK_DGRAM;
    hints.ai_flags = (numeric ? AI_NUMERICHOST : 0) | (node == nullptr ? AI_PASSIVE : 0);
    addrinfo* found = nullptr;
    if (getaddrinfo(node, service, &hints, &found) != 0) {
        return -FI_ENODATA;
    }
    const int result = from_sockaddr(found->ai_addr, found->ai_addrlen, address);
    freeaddrinfo(found);
    address->endpoint = 0;
    return result;
}

}  // namespace

sockaddr_in to_sockaddr(const tw_address& address) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(address.udp_port);
    std::memcpy(&name.sin_addr, address.ip, sizeof(name.sin_addr));
    name.sin_zero[0] = static_cast<uint8_t>(address.endpoint >> 8);
    name.sin_zero[1] = static_cast<uint8_t>(address.endpoint);
    return name;
}

int from_sockaddr(const void* data, size_t length, tw_address* address) {
    sockaddr_in name{};
    if (data == nullptr || length < sizeof(name)) {
        return refuse(-FI_EINVAL, FI_LOG_AV, kForms);
    }
    std::memcpy(&name, data, sizeof(name));
    if (name.sin_family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
        sockaddr_in6 name6{};
        std::memcpy(&name6, data, sizeof(name6));
        return from_sockaddr6(name6, address);
    }
    if (name.sin_family != AF_INET) {
        return refuse(-FI_EINVAL, FI_LOG_AV, kForms);
    }
    *address = {};
    address->family = 4;
    address->udp_port = ntohs(name.sin_port);
    address->endpoint = static_cast<uint16_t>(name.sin_zero[0] << 8 | name.sin_zero[1]);
    std::memcpy(address->ip, &name.sin_addr, sizeof(name.sin_addr));
    return 0;
}

bool read_source(const fi_info& info, tw_address* address) {
    return info.src_addr != nullptr && from_sockaddr(info.src_addr, info.src_addrlen, address) == 0;
}

int from_name(uint32_t format, const void* data, size_t length, tw_address* address) {
    sa_family_t family = AF_UNSPEC;
    if (data != nullptr && length >= sizeof(family)) {
        std::memcpy(&family, data, sizeof(family));
    }
    if (length < name_size(format) || family != (format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET)) {
        return refuse(-FI_EINVAL, FI_LOG_AV,
                      "a name has the address format that the object was opened with");
    }
    return from_sockaddr(data, length, address);
}

bool names_no_card(const tw_address& address) {
    return address.ip[0] == 127 || std::memcmp(address.ip, "\0\0\0\0", sizeof(in_addr)) == 0;
}

size_t name_size(uint32_t format) {
    return format == FI_SOCKADDR_IN6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

size_t copy_name(const tw_address& address, uint32_t format, void* room, size_t size) {
    if (format == FI_SOCKADDR_IN6) {
        const sockaddr_in6 name = to_sockaddr6(address);
        std::memcpy(room, &name, std::min(size, sizeof(name)));
    } else {
        const sockaddr_in name = to_sockaddr(address);
        std::memcpy(room, &name, std::min(size, sizeof(name)));
    }
    return name_size(format);
}

int give_name(const tw_address& address, uint32_t format, void* room, size_t* length) {
    const size_t size = *length;
    *length = name_size(format);
    if (size < *length) {
        return -FI_ETOOSMALL;
    }
    copy_name(address, format, room, size);
    return 0;
}

void set_address(const tw_address& address, uint32_t format, void** data, size_t* length) {
    std::free(*data);
    *length = name_size(format);
    *data = std::malloc(*length);
    copy_name(address, format, *data, *length);
}

int resolve(const char* node, const char* service, bool numeric, tw_address* address) {
    const int result = look_up(AF_INET, node, service, numeric, address);
    // An IPv4 address in the notation of the other family.
    return result == -FI_ENODATA && node != nullptr
               ? look_up(AF_INET6, node, service, true, address)
               : result;
}

std::string to_text(const tw_address& address, uint32_t format) {
    char ip[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, address.ip, ip, sizeof(ip));
    std::string text = format == FI_SOCKADDR_IN6
                           ? std::string("fi_sockaddr_in6://[::ffff:") + ip + "]"
                           : std::string("fi_sockaddr_in://") + ip;
    text += ":" + std::to_string(address.udp_port);
    return address.endpoint == 0 ? text : text + "/" + std::to_string(address.endpoint);
}

}  // namespace tagwire::fi
