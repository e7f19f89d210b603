// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <rdma/fi_errno.h>

#include <cstring>

namespace tagwire::fi {

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
    if (data == nullptr || length < sizeof(sockaddr_in)) {
        return -FI_EINVAL;
    }
    sockaddr_in name{};
    std::memcpy(&name, data, sizeof(name));
    if (name.sin_family != AF_INET) {
        return -FI_EINVAL;
    }
    *address = {};
    address->family = 4;
    address->udp_port = ntohs(name.sin_port);
    address->endpoint = static_cast<uint16_t>(name.sin_zero[0] << 8 | name.sin_zero[1]);
    std::memcpy(address->ip, &name.sin_addr, sizeof(name.sin_addr));
    return 0;
}

int resolve(const char* node, const char* service, bool numeric, sockaddr_in* address) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_DGRAM;
    hints.ai_flags = (numeric ? AI_NUMERICHOST : 0) | (node == nullptr ? AI_PASSIVE : 0);
    addrinfo* found = nullptr;
    if (getaddrinfo(node, service, &hints, &found) != 0) {
        return -FI_ENODATA;
    }
    std::memcpy(address, found->ai_addr, sizeof(*address));
    std::memset(address->sin_zero, 0, sizeof(address->sin_zero));
    freeaddrinfo(found);
    return 0;
}

std::string to_text(const sockaddr_in& address) {
    char ip[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, &address.sin_addr, ip, sizeof(ip));
    std::string text =
        std::string("fi_sockaddr_in://") + ip + ":" + std::to_string(ntohs(address.sin_port));
    const int endpoint = address.sin_zero[0] << 8 | address.sin_zero[1];
    return endpoint == 0 ? text : text + "/" + std::to_string(endpoint);
}

}  // namespace tagwire::fi
