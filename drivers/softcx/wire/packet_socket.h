// SPDX-License-Identifier: BSD-3-Clause
// A packet socket (packet(7)) on one network device: frames whole, as the device has them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace softcx {

// "veth0,veth1": names as the kernel allows them (dev_valid_name), each once.
bool parse_netdev_names(const std::string& text, std::vector<std::string>& names);

class PacketSocket {
  public:
    // nullptr, and why with a remedy.
    static std::unique_ptr<PacketSocket> open(const std::string& netdev, std::string* error);

    ~PacketSocket();
    PacketSocket(const PacketSocket&) = delete;
    PacketSocket& operator=(const PacketSocket&) = delete;

    int fd() const noexcept { return fd_; }
    const std::string& netdev() const noexcept { return netdev_; }

    // The device is up and has a carrier. False also when it is gone.
    bool has_carrier() const noexcept;

    // Frames that found the socket's queue full, since the last call.
    uint32_t take_drops() noexcept;

  private:
    PacketSocket(int fd, std::string netdev) noexcept;

    int fd_;
    std::string netdev_;
};

}  // namespace softcx
