// SPDX-License-Identifier: BSD-3-Clause
// Packet type and offload flags of a received packet, in one table look-up.
//
// The CQE's header field (PRM, "CQE": l4_hdr_type_etc and hds_ip_ext) holds
//   low byte   bit 0 L2 ok, bit 1 IP header checksum ok, bit 2 L4 checksum ok
//   high byte  bit 0 VLAN tag present, bits 2-3 L3 type, bits 4-6 L4 type, bit 7 fragment
// The table index is those bits, squeezed to eight: L4 ok, L3 ok, fragment, L4, L3.
#pragma once

#include <array>
#include <cstdint>

namespace tagwire::mlx5raw {

struct CqeClass {
    uint32_t packet_type;  // RTE_PTYPE_*
    uint32_t flags;        // RTE_MBUF_F_RX_*; those of reception fit in 32 bits
};
static_assert(sizeof(CqeClass) == 8);

using CqeClassTable = std::array<CqeClass, 256>;

constexpr uint32_t cqe_class_index(uint16_t header) {
    return (header >> 10) | ((header & 6u) << 5);
}

enum CqeL3 : uint8_t { kL3None = 0, kL3Ipv6 = 1, kL3Ipv4 = 2 };
enum CqeL4 : uint8_t { kL4None = 0, kL4Tcp = 1, kL4Udp = 2, kL4TcpEmptyAck = 3, kL4TcpAck = 4 };

// What the port reports: nothing that was not asked for.
struct CqeClassOptions {
    bool checksum = false;
    uint64_t rss_types = 0;  // RTE_ETH_RSS_*; zero: no hash in the mbuf
};

CqeClassTable make_cqe_classes(const CqeClassOptions& options);

}  // namespace tagwire::mlx5raw
