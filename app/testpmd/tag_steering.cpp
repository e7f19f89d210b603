// SPDX-License-Identifier: BSD-3-Clause
#include "tag_steering.h"

#include <fmt/format.h>
#include <rte_arp.h>
#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include <utility>

namespace tagwire::testpmd {

int TagAddresses::owner_of(const rte_mbuf* packet) const noexcept {
    const auto* ethernet = rte_pktmbuf_mtod(packet, const rte_ether_hdr*);
    if (packet->data_len < sizeof(*ethernet) + sizeof(rte_arp_hdr)) {
        return kNobody;
    }
    if (ethernet->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_ARP)) {
        const auto* arp = reinterpret_cast<const rte_arp_hdr*>(ethernet + 1);
        const rte_be32_t target = arp->arp_data.arp_tip;
        return target == ip || target == arp->arp_data.arp_sip ? kEverybody : kNobody;
    }
    const auto* header = reinterpret_cast<const rte_ipv4_hdr*>(ethernet + 1);
    const auto* udp = reinterpret_cast<const rte_udp_hdr*>(header + 1);
    if (ethernet->ether_type != rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) || header->dst_addr != ip ||
        header->version_ihl != RTE_IPV4_VHL_DEF || header->next_proto_id != IPPROTO_UDP ||
        packet->data_len < sizeof(*ethernet) + sizeof(*header) + sizeof(*udp)) {
        return kNobody;
    }
    const auto queue = static_cast<uint16_t>(rte_be_to_cpu_16(udp->dst_port) - base);
    return queue < queues ? queue : kNobody;
}

SteeringRule::SteeringRule(SteeringRule&& other) noexcept
    : port_(other.port_), flow_(std::exchange(other.flow_, nullptr)) {}

SteeringRule::~SteeringRule() {
    if (flow_ != nullptr) {
        rte_flow_error error{};
        rte_flow_destroy(port_, flow_, &error);
    }
}

bool SteeringRule::create(uint16_t port, uint16_t queue, const TagAddresses& addresses,
                          std::string* why) {
    rte_flow_item_ipv4 ip{};
    rte_flow_item_ipv4 ip_mask{};
    ip.hdr.dst_addr = addresses.ip;
    ip_mask.hdr.dst_addr = RTE_BE32(0xffffffff);
    rte_flow_item_udp udp{};
    rte_flow_item_udp udp_mask{};
    udp.hdr.dst_port = rte_cpu_to_be_16(static_cast<uint16_t>(addresses.base + queue));
    udp_mask.hdr.dst_port = RTE_BE16(0xffff);
    const rte_flow_item pattern[] = {
        {RTE_FLOW_ITEM_TYPE_ETH, nullptr, nullptr, nullptr},
        {RTE_FLOW_ITEM_TYPE_IPV4, &ip, nullptr, &ip_mask},
        {RTE_FLOW_ITEM_TYPE_UDP, &udp, nullptr, &udp_mask},
        {RTE_FLOW_ITEM_TYPE_END, nullptr, nullptr, nullptr},
    };
    const rte_flow_action_queue to{queue};
    const rte_flow_action actions[] = {
        {RTE_FLOW_ACTION_TYPE_QUEUE, &to},
        {RTE_FLOW_ACTION_TYPE_END, nullptr},
    };
    rte_flow_attr attributes{};
    attributes.ingress = 1;
    rte_flow_error error{};
    port_ = port;
    flow_ = rte_flow_create(port, &attributes, pattern, actions, &error);
    if (flow_ == nullptr) {
        *why = error.message != nullptr ? error.message : rte_strerror(rte_errno);
    }
    return flow_ != nullptr;
}

}  // namespace tagwire::testpmd
