// SPDX-License-Identifier: BSD-3-Clause
// rte_eth_tx_prepare: names the first packet that this queue could not send as its flags
// ask. The device needs no help with the contents: it sums pseudo headers itself.
#include <rte_errno.h>
#include <rte_ethdev.h>

#include <cerrno>

#include "drivers/net/mlx5raw/txq.h"
#include "drivers/net/mlx5raw/wqe.h"

namespace tagwire::mlx5raw {
namespace {

// Say what a packet is, and ask for nothing.
constexpr uint64_t kHints = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IPV6;

struct Request {
    uint64_t offload;
    uint64_t flags;
};
constexpr Request kRequests[] = {{RTE_ETH_TX_OFFLOAD_IPV4_CKSUM, RTE_MBUF_F_TX_IP_CKSUM},
                                 {RTE_ETH_TX_OFFLOAD_TCP_TSO, RTE_MBUF_F_TX_TCP_SEG},
                                 {RTE_ETH_TX_OFFLOAD_VLAN_INSERT, RTE_MBUF_F_TX_VLAN}};

bool supported(uint64_t flags, uint64_t offloads) {
    uint64_t known = kHints | RTE_MBUF_F_TX_L4_MASK;
    for (const Request& request : kRequests) {
        known |= (offloads & request.offload) != 0 ? request.flags : 0;
    }
    if ((flags & RTE_MBUF_F_TX_OFFLOAD_MASK & ~known) != 0) {
        return false;
    }
    switch (flags & RTE_MBUF_F_TX_L4_MASK) {
        case RTE_MBUF_F_TX_L4_NO_CKSUM:
            return true;
        case RTE_MBUF_F_TX_TCP_CKSUM:
            // A large send sums too.
            return (offloads & (RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_TSO)) != 0;
        case RTE_MBUF_F_TX_UDP_CKSUM:
            return (offloads & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) != 0;
        default:
            return false;  // SCTP
    }
}

}  // namespace

int TxQueue::check_packet(const rte_mbuf& packet) const {
    if (!supported(packet.ol_flags, config_.offloads)) {
        return ENOTSUP;
    }
    const bool large = (packet.ol_flags & RTE_MBUF_F_TX_TCP_SEG) != 0;
    if (packet.pkt_len < kShortestPacket || (!large && packet.pkt_len > mode_.longest_packet)) {
        return EINVAL;
    }
    if (packet.nb_segs > (mode_.segments ? kMaxTxSegments : 1)) {
        return EINVAL;
    }
    if (large && !good_large_send(packet)) {
        return EINVAL;
    }
    return -rte_validate_tx_offload(&packet);
}

uint16_t TxQueue::prepare(void* queue, rte_mbuf** packets, uint16_t count) {
    const TxQueue& q = *static_cast<const TxQueue*>(queue);
    for (uint16_t i = 0; i < count; ++i) {
        if (const int error = q.check_packet(*packets[i]); unlikely(error != 0)) {
            rte_errno = error;
            return i;
        }
    }
    return count;
}

}  // namespace tagwire::mlx5raw
