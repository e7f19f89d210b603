// SPDX-License-Identifier: BSD-3-Clause
// One port of one RDMA device: opened through libibverbs, with what it can do.
#pragma once

#include <rte_ether.h>

#include <memory>
#include <string>

#include "drivers/net/mlx5raw/devargs.h"
#include "drivers/net/mlx5raw/status.h"
#include "drivers/net/mlx5raw/stride_geometry.h"
#include "drivers/net/mlx5raw/verbs.h"

namespace tagwire::mlx5raw {

struct Capabilities {
    uint32_t max_queues = 0;  // of either direction
    uint32_t max_descriptors = 0;
    uint32_t max_rx_segments = 0;
    uint32_t max_reta_size = 0;
    uint64_t rx_hash_fields = 0;  // IBV_RX_HASH_*
    StridingLimits striding;
    uint32_t compression_formats = 0;  // mlx5dv_cqe_comp_res_format
    bool vlan_strip = false;
    bool timestamp = false;     // in completions
    bool checksum = false;      // raw packets: verify on receive, generate on send
    uint32_t min_inline = 0;    // bytes of each packet that must be in the send WQE
    bool vlan_insert = false;   // by the device, from the Ethernet segment
    bool multi_packet = false;  // enhanced multi-packet send
    uint32_t max_tso = 0;       // bytes of payload of a large send; zero: none
    uint32_t part_id = 0;
    std::string firmware;
};

class Device {
  public:
    static Status open(const Devargs& arguments, std::unique_ptr<Device>& out);

    ibv_context* context() const { return context_.get(); }
    ibv_pd* pd() const { return pd_.get(); }
    uint8_t port() const { return port_; }
    uint32_t ifindex() const { return ifindex_; }
    const Capabilities& caps() const { return caps_; }
    const rte_ether_addr& mac() const { return mac_; }
    const char* name() const { return ibv_get_device_name(context_->device); }

  private:
    Device() = default;
    Status find_port(const Devargs& arguments);
    Status query_capabilities(const Devargs& arguments);
    Status find_mac(const Devargs& arguments);

    Context context_;
    ProtectionDomain pd_;
    uint8_t port_ = 1;
    uint32_t ifindex_ = 0;
    rte_ether_addr mac_ = {};
    Capabilities caps_;
};

// The MAC address in a GID with an EUI-64 interface identifier (RFC 4291,
// appendix A), as the default GIDs of an Ethernet port have; false if it has none.
bool mac_from_gid(const uint8_t (&gid)[16], rte_ether_addr& out);

}  // namespace tagwire::mlx5raw
