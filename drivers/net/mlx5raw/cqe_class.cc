// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/cqe_class.h"

#include <rte_mbuf.h>

#include "drivers/net/mlx5raw/rss.h"

namespace tagwire::mlx5raw {
namespace {

struct Headers {
    unsigned l3, l4;
    bool fragment, l3_ok, l4_ok;

    bool ip() const { return l3 == kL3Ipv4 || l3 == kL3Ipv6; }
    bool tcp() const { return l4 == kL4Tcp || l4 == kL4TcpEmptyAck || l4 == kL4TcpAck; }
    bool udp() const { return l4 == kL4Udp; }
};

Headers headers_of(uint32_t index) {
    return {index & 3, (index >> 2) & 7, (index & 0x20) != 0, (index & 0x40) != 0,
            (index & 0x80) != 0};
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
    CqeClassTable table;
    for (uint32_t index = 0; index < table.size(); ++index) {
        const Headers headers = headers_of(index);
        uint64_t flags = options.checksum ? checksum_flags_of(headers) : 0;
        if (hashed(headers, options.rss_types)) {
            flags |= RTE_MBUF_F_RX_RSS_HASH;
        }
        table[index] = {packet_type_of(headers), static_cast<uint32_t>(flags)};
    }
    return table;
}

}  // namespace tagwire::mlx5raw
