// SPDX-License-Identifier: BSD-3-Clause
// An ethdev port with one RX and one TX queue, started and with its link up.
#pragma once

#include <rte_ether.h>
#include <rte_mempool.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tagwire::port {

// What a message passes through, for the tables that people read.
struct PortPath {
    std::string driver;  // "net_mlx5raw"
    std::string port;    // "net_mlx5raw0"
    std::string device;  // "mlx5_0 (softcx)"
    std::string wire;    // softcx's own description, or "the network"
    std::string memory;  // "hugepages" or "no hugepages"
    std::string mac;
    std::string link;
    uint16_t mtu = 0;
};

struct PortOptions {
    uint16_t mtu = 0;          // 0: as the port has it
    uint32_t held_frames = 0;  // room for frames of messages that nobody has received yet
};

// Everything that can be wrong is a Failure.
class Port {
  public:
    Port(uint16_t port_id, const PortOptions& options);
    ~Port();
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;

    uint16_t id() const noexcept { return port_id_; }
    const rte_ether_addr& mac() const noexcept { return mac_; }
    uint16_t mtu() const noexcept { return mtu_; }
    const PortPath& path() const noexcept { return path_; }
    const std::vector<std::string>& sizes() const noexcept { return sizes_; }

  private:
    void configure(uint16_t wanted_mtu);
    void set_up_queues(uint32_t held_frames);
    void start();
    void describe();

    uint16_t port_id_;
    uint16_t mtu_ = 0;
    bool started_ = false;
    rte_ether_addr mac_{};
    std::unique_ptr<rte_mempool, decltype(&rte_mempool_free)> rx_pool_;
    PortPath path_;
    std::vector<std::string> sizes_;
};

}  // namespace tagwire::port
