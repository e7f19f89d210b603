// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/wire/packet_socket.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "drivers/softcx/log.h"

namespace softcx {

namespace {

constexpr int kReceiveQueue = 8 << 20;  // bytes; some thousand frames

ifreq request_for(const std::string& netdev) noexcept {
    ifreq request{};
    netdev.copy(request.ifr_name, sizeof(request.ifr_name) - 1);
    return request;
}

std::string reason_and(const char* what) {
    return std::string(what) + ": " + std::strerror(errno);
}

template <typename Value>
bool set_option(int fd, int level, int option, const Value& value) noexcept {
    return ::setsockopt(fd, level, option, &value, sizeof(value)) == 0;
}

int open_socket(std::string* error) {
    // Protocol 0: nothing arrives before the socket is bound to its device.
    const int fd = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0)
        return fd;
    if (errno == EPERM || errno == EACCES)
        *error =
            "a packet socket needs CAP_NET_RAW: run as root, or in a network namespace of your "
            "own (unshare --map-root-user --net)";
    else
        *error = reason_and("no packet socket");
    return -1;
}

// The device's index, or 0 and the reason.
int find_device(int fd, const std::string& netdev, std::string* error) {
    ifreq request = request_for(netdev);
    if (::ioctl(fd, SIOCGIFINDEX, &request) != 0) {
        *error = errno == ENODEV
                     ? "no network device " + netdev +
                           " in this network namespace: make it first, as with ip link add " +
                           netdev + " type veth peer name OTHER"
                     : reason_and("SIOCGIFINDEX");
        return 0;
    }
    const int index = request.ifr_ifindex;
    request = request_for(netdev);
    if (::ioctl(fd, SIOCGIFHWADDR, &request) != 0) {
        *error = reason_and("SIOCGIFHWADDR");
        return 0;
    }
    if (request.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
        *error = netdev + " is no Ethernet device: use one, such as a veth";
        return 0;
    }
    return index;
}

bool set_up(int fd, int index, std::string* error) {
    // Own frames are not for us; their checksums may be left to the hardware, and frames
    // may be larger than the wire takes: both are told in a header. VLAN tags come apart.
    if (!set_option(fd, SOL_PACKET, PACKET_VNET_HDR, 1) ||
        !set_option(fd, SOL_PACKET, PACKET_AUXDATA, 1) ||
        !set_option(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)) {
        *error =
            reason_and("this kernel's packet sockets lack an option (Linux 4.20 or later has it)");
        return false;
    }
    packet_mreq everything{};
    everything.mr_ifindex = index;
    everything.mr_type = PACKET_MR_PROMISC;
    if (!set_option(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, everything)) {
        *error = reason_and("no promiscuous mode");
        return false;
    }
    // Beyond the limit of the system with CAP_NET_ADMIN; else as far as it lets us.
    if (!set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, kReceiveQueue))
        set_option(fd, SOL_SOCKET, SO_RCVBUF, kReceiveQueue);

    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = index;
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        *error = reason_and("bind");
        return false;
    }
    return true;
}

}  // namespace

bool parse_netdev_names(const std::string& text, std::vector<std::string>& names) {
    for (size_t start = 0; start <= text.size();) {
        const size_t end = std::min(text.find(',', start), text.size());
        const std::string name = text.substr(start, end - start);
        if (name.empty() || name.size() >= IF_NAMESIZE || name == "." || name == ".." ||
            name.find_first_of("/: \t\n") != std::string::npos ||
            std::find(names.begin(), names.end(), name) != names.end())
            return false;
        names.push_back(name);
        start = end + 1;
    }
    return true;
}

PacketSocket::PacketSocket(int fd, std::string netdev) noexcept
    : fd_(fd), netdev_(std::move(netdev)) {}

PacketSocket::~PacketSocket() {
    ::close(fd_);
}

std::unique_ptr<PacketSocket> PacketSocket::open(const std::string& netdev, std::string* error) {
    const int fd = open_socket(error);
    if (fd < 0)
        return nullptr;
    std::unique_ptr<PacketSocket> made(new PacketSocket(fd, netdev));
    const int index = find_device(fd, netdev, error);
    if (index == 0 || !set_up(fd, index, error))
        return nullptr;
    if (!made->has_carrier())
        log(LogLevel::kWarn, "%s has no link yet: ip link set %s up, and its peer", netdev.c_str(),
            netdev.c_str());
    return made;
}

bool PacketSocket::has_carrier() const noexcept {
    constexpr unsigned kNeeded = IFF_UP | IFF_RUNNING;
    ifreq request = request_for(netdev_);
    return ::ioctl(fd_, SIOCGIFFLAGS, &request) == 0 &&
           (static_cast<unsigned>(request.ifr_flags) & kNeeded) == kNeeded;
}

uint32_t PacketSocket::take_drops() noexcept {
    tpacket_stats statistics{};
    socklen_t length = sizeof(statistics);
    if (::getsockopt(fd_, SOL_PACKET, PACKET_STATISTICS, &statistics, &length) != 0)
        return 0;
    return statistics.tp_drops;
}

}  // namespace softcx
