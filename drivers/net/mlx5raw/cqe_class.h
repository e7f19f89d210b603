// SPDX-License-Identifier: BSD-3-Clause
// What the mbuf of a received packet says about it, in one table look-up.
//
// The CQE's header field (PRM, "CQE": hds_ip_ext and l4_hdr_type_etc) holds
//   low byte   bit 0 L2 ok, bit 1 IP header checksum ok, bit 2 L4 checksum ok
//   high byte  bit 0 VLAN tag stripped, bit 1 IP options, bits 2-3 L3 type,
//              bits 4-6 L4 type, bit 7 fragment
// The table index is the high byte, then the two checksum bits.
#pragma once

#include <array>
#include <cstdint>

namespace tagwire::mlx5raw {

// 32 bytes of the mbuf from data_off on. The receive paths add lengths, tag and hash.
struct alignas(32) CqeClass {
    uint64_t rearm;        // data_off, refcnt, nb_segs, port
    uint64_t flags;        // RTE_MBUF_F_RX_*
    uint32_t packet_type;  // RTE_PTYPE_*
    uint32_t zero[3];      // pkt_len, data_len, vlan_tci, hash.rss
};
static_assert(sizeof(CqeClass) == 32);

using CqeClassTable = std::array<CqeClass, 1024>;

constexpr uint32_t cqe_class_index(uint16_t header) {
    return header >> 8 << 2 | (header & 6u) >> 1;
}

enum CqeL3 : uint8_t { kL3None = 0, kL3Ipv6 = 1, kL3Ipv4 = 2 };
enum CqeL4 : uint8_t { kL4None = 0, kL4Tcp = 1, kL4Udp = 2, kL4TcpEmptyAck = 3, kL4TcpAck = 4 };

// What the port reports: nothing that was not asked for.
struct CqeClassOptions {
    bool checksum = false;
    uint64_t rss_types = 0;  // RTE_ETH_RSS_*; zero: no hash in the mbuf
    uint64_t time_flag = 0;  // the flag of rte_mbuf_dyn_rx_timestamp_register
    uint16_t port_id = 0;
};

CqeClassTable make_cqe_classes(const CqeClassOptions& options);

}  // namespace tagwire::mlx5raw
