// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/netdev.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tagwire::mlx5raw {
namespace {

// netdevice(7): any socket carries these requests.
Status request(uint32_t ifindex, unsigned long code, ifreq& message) {
    if (if_indextoname(ifindex, message.ifr_name) == nullptr) {
        return failure(errno, "no network interface has index %u", ifindex);
    }
    const int socket_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket_fd < 0) {
        return failure(errno, "socket: %s", strerror(errno));
    }
    const int result = ioctl(socket_fd, code, &message);
    const int error = errno;
    close(socket_fd);
    if (result != 0) {
        return failure(error, "%s: %s", message.ifr_name, strerror(error));
    }
    return {};
}

}  // namespace

Status netdev_mac(uint32_t ifindex, rte_ether_addr& out) {
    ifreq message = {};
    Status status = request(ifindex, SIOCGIFHWADDR, message);
    if (status.ok()) {
        memcpy(out.addr_bytes, message.ifr_hwaddr.sa_data, RTE_ETHER_ADDR_LEN);
    }
    return status;
}

Status netdev_set_mtu(uint32_t ifindex, uint16_t mtu) {
    ifreq message = {};
    message.ifr_mtu = mtu;
    return request(ifindex, SIOCSIFMTU, message);
}

}  // namespace tagwire::mlx5raw
