// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/cqe_class.h"

#include <rte_mbuf.h>

#include <cstddef>
#include <cstring>

#include "drivers/net/mlx5raw/rss.h"

namespace tagwire::mlx5raw {
namespace {

// The class is copied over the mbuf as it is.
static_assert(offsetof(rte_mbuf, ol_flags) ==
                  offsetof(rte_mbuf, data_off) + offsetof(CqeClass, flags) &&
              offsetof(rte_mbuf, packet_type) ==
                  offsetof(rte_mbuf, data_off) + offsetof(CqeClass, packet_type) &&
              offsetof(rte_mbuf, hash.rss) + 4 == offsetof(rte_mbuf, data_off) + sizeof(CqeClass));

struct Headers {
    unsigned l3, l4;
    bool fragment, vlan, l3_ok, l4_ok;

    bool ip() const { return l3 == kL3Ipv4 || l3 == kL3Ipv6; }
    bool tcp() const { return l4 == kL4Tcp || l4 == kL4TcpEmptyAck || l4 == kL4TcpAck; }
    bool udp() const { return l4 == kL4Udp; }
};

Headers headers_of(uint32_t index) {
    const uint32_t high = index >> 2;
    return {high >> 2 & 3,   high >> 4 & 7,    (high & 0x80) != 0,
            (high & 1) != 0, (index & 1) != 0, (index & 2) != 0};
}

// By the compiler's own layout of rte_mbuf.
uint64_t make_rearm(uint16_t port_id) {
    alignas(rte_mbuf) rte_mbuf mbuf = {};
    mbuf.data_off = RTE_PKTMBUF_HEADROOM;
    mbuf.refcnt = 1;
    mbuf.nb_segs = 1;
    mbuf.port = port_id;
    uint64_t rearm;
    memcpy(&rearm, reinterpret_cast<const uint8_t*>(&mbuf) + offsetof(rte_mbuf, data_off),
           sizeof(rearm));
    return rearm;
}

uint32_t packet_type_of(const Headers& h) {
    if (!h.ip()) {
        return RTE_PTYPE_L2_ETHER;
    }
    const uint32_t l3 =
        h.l3 == kL3Ipv4 ? RTE_PTYPE_L3_IPV4_EXT_UNKNOWN : RTE_PTYPE_L3_IPV6_EXT_UNKNOWN;
    uint32_t l4 = RTE_PTYPE_L4_NONFRAG;
    if (h.fragment) {
        l4 = RTE_PTYPE_L4_FRAG;
    } else if (h.tcp()) {
        l4 = RTE_PTYPE_L4_TCP;
    } else if (h.udp()) {
        l4 = RTE_PTYPE_L4_UDP;
    }
    return RTE_PTYPE_L2_ETHER | l3 | l4;
}

uint64_t checksum_flags_of(const Headers& h) {
    uint64_t flags = 0;
    if (h.l3 == kL3Ipv4) {  // IPv6 has no header checksum
        flags |= h.l3_ok ? RTE_MBUF_F_RX_IP_CKSUM_GOOD : RTE_MBUF_F_RX_IP_CKSUM_BAD;
    }
    // The sum of a fragmented datagram cannot be known from one fragment.
    if (h.ip() && !h.fragment && (h.tcp() || h.udp())) {
        flags |= h.l4_ok ? RTE_MBUF_F_RX_L4_CKSUM_GOOD : RTE_MBUF_F_RX_L4_CKSUM_BAD;
    }
    return flags;
}

bool hashed(const Headers& h, uint64_t rss_types) {
    if (!h.ip()) {
        return false;
    }
    const bool v4 = h.l3 == kL3Ipv4;
    if (!h.fragment && h.tcp() &&
        (rss_types & rss_types_of(v4 ? HashType::kIpv4Tcp : HashType::kIpv6Tcp))) {
        return true;
    }
    if (!h.fragment && h.udp() &&
        (rss_types & rss_types_of(v4 ? HashType::kIpv4Udp : HashType::kIpv6Udp))) {
        return true;
    }
    return (rss_types & rss_types_of(v4 ? HashType::kIpv4 : HashType::kIpv6)) != 0;
}

}  // namespace

CqeClassTable make_cqe_classes(const CqeClassOptions& options) {
    CqeClassTable table = {};
    const uint64_t rearm = make_rearm(options.port_id);
    for (uint32_t index = 0; index < table.size(); ++index) {
        const Headers headers = headers_of(index);
        uint64_t flags = options.time_flag;
        if (options.checksum) {
            flags |= checksum_flags_of(headers);
        }
        if (headers.vlan) {  // only work queues that strip say so
            flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
        }
        if (hashed(headers, options.rss_types)) {
            flags |= RTE_MBUF_F_RX_RSS_HASH;
        }
        table[index] = {rearm, flags, packet_type_of(headers), {}};
    }
    return table;
}

}  // namespace tagwire::mlx5raw
