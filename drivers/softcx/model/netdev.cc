// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/model/netdev.h"

#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace softcx {

bool read_netdev_mac(const std::string& name, MacAddress& mac, std::string& error) {
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        error = std::string("no socket to ask for it: ") + std::strerror(errno);
        return false;
    }
    ifreq request{};
    name.copy(request.ifr_name, sizeof(request.ifr_name) - 1);
    const bool found = ::ioctl(fd, SIOCGIFHWADDR, &request) == 0;
    const int reason = errno;
    ::close(fd);
    if (!found) {
        error = reason == ENODEV ? "no such network device here: make it first, as with "
                                   "ip link add NAME type veth peer name OTHER"
                                 : std::strerror(reason);
        return false;
    }
    std::memcpy(mac.data(), request.ifr_hwaddr.sa_data, mac.size());
    const bool zero = mac == MacAddress{};
    if (request.ifr_hwaddr.sa_family != ARPHRD_ETHER || zero || (mac[0] & 1) != 0) {
        error = "no Ethernet device with a unicast address: use a veth";
        return false;
    }
    return true;
}

}  // namespace softcx
