// SPDX-License-Identifier: BSD-3-Clause
// What the port is and can do.
#include <rte_version.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "drivers/net/mlx5raw/port.h"
#include "drivers/net/mlx5raw/wqe.h"

namespace tagwire::mlx5raw {
namespace {

// Lane speed times width, in Mbit/s (IBA, PortInfo LinkSpeedActive and
// LinkWidthActive), rounded to the Ethernet speed that the lanes carry.
uint32_t speed_of(const ibv_port_attr& port) {
    uint32_t lane = 0;
    switch (port.active_speed) {
        case 1:
            lane = 2500;
            break;
        case 2:
            lane = 5000;
            break;
        case 4:
        case 8:
            lane = 10000;
            break;
        case 16:
            lane = 14000;
            break;
        case 32:
            lane = 25000;
            break;
        case 64:
            lane = 50000;
            break;
        case 128:
            lane = 100000;
            break;
        default:
            return RTE_ETH_SPEED_NUM_UNKNOWN;
    }
    switch (port.active_width) {
        case 1:
            return lane;
        case 2:
            return lane * 4;
        case 4:
            return lane * 8;
        case 8:
            return lane * 12;
        case 16:
            return lane * 2;
        default:
            return RTE_ETH_SPEED_NUM_UNKNOWN;
    }
}

}  // namespace

uint64_t rx_offloads(const Capabilities& caps) {
    uint64_t offloads =
        RTE_ETH_RX_OFFLOAD_SCATTER | RTE_ETH_RX_OFFLOAD_RSS_HASH | RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
    if (caps.checksum) {
        offloads |= RTE_ETH_RX_OFFLOAD_CHECKSUM;
    }
    if (caps.vlan_strip) {
        offloads |= RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
    }
    if (caps.timestamp) {
        offloads |= RTE_ETH_RX_OFFLOAD_TIMESTAMP;
    }
    return offloads;
}

uint64_t tx_offloads(const Capabilities& caps) {
    uint64_t offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE |
                        RTE_ETH_TX_OFFLOAD_VLAN_INSERT;
    if (caps.checksum) {
        offloads |= RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM |
                    RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
        if (caps.max_tso != 0) {
            offloads |= RTE_ETH_TX_OFFLOAD_TCP_TSO;
        }
    }
    return offloads;
}

int dev_infos_get(rte_eth_dev* dev, rte_eth_dev_info* info) {
    const Port& port = port_of(dev);
    const Capabilities& caps = port.device->caps();
    info->if_index = port.device->ifindex();
    info->min_mtu = RTE_ETHER_MIN_MTU;
    info->max_mtu = kMaxMtu;
    info->min_rx_bufsize = RTE_ETHER_MIN_LEN;
    info->max_rx_pktlen = kMaxMtu + kFrameOverhead;
    info->max_rx_queues = static_cast<uint16_t>(caps.max_queues);
    info->max_tx_queues = static_cast<uint16_t>(caps.max_queues);
    info->max_mac_addrs = kMaxMacAddresses;
    info->rx_offload_capa = rx_offloads(caps);
    info->rx_queue_offload_capa = caps.vlan_strip ? RTE_ETH_RX_OFFLOAD_VLAN_STRIP : 0;
    info->tx_offload_capa = tx_offloads(caps);
    info->tx_queue_offload_capa = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
    info->dev_capa = RTE_ETH_DEV_CAPA_FLOW_RULE_KEEP;
    info->reta_size = static_cast<uint16_t>(port.devargs.reta_size);
    info->hash_key_size = kRssKeyLength;
    info->flow_type_rss_offloads = supported_rss_types();
    const auto most = static_cast<uint16_t>(caps.max_descriptors);
    info->rx_desc_lim.nb_max = info->tx_desc_lim.nb_max = most;
    info->rx_desc_lim.nb_min = info->tx_desc_lim.nb_min = kMinDescriptors;
    info->rx_desc_lim.nb_align = info->tx_desc_lim.nb_align = 1;
    info->tx_desc_lim.nb_seg_max = kMaxTxSegments;
    info->tx_desc_lim.nb_mtu_seg_max = kMaxTxSegments;
    info->default_rxportconf.ring_size = info->default_txportconf.ring_size = 1024;
    info->default_rxportconf.burst_size = info->default_txportconf.burst_size = 32;
    info->default_rxportconf.nb_queues = info->default_txportconf.nb_queues = 1;
    info->speed_capa = RTE_ETH_LINK_SPEED_10G | RTE_ETH_LINK_SPEED_25G | RTE_ETH_LINK_SPEED_40G |
                       RTE_ETH_LINK_SPEED_50G | RTE_ETH_LINK_SPEED_56G | RTE_ETH_LINK_SPEED_100G |
                       RTE_ETH_LINK_SPEED_200G;
    return 0;
}

namespace {
const uint32_t kPacketTypes[] = {RTE_PTYPE_L2_ETHER,
                                 RTE_PTYPE_L3_IPV4_EXT_UNKNOWN,
                                 RTE_PTYPE_L3_IPV6_EXT_UNKNOWN,
                                 RTE_PTYPE_L4_NONFRAG,
                                 RTE_PTYPE_L4_FRAG,
                                 RTE_PTYPE_L4_TCP,
                                 RTE_PTYPE_L4_UDP,
                                 RTE_PTYPE_UNKNOWN};
}

const uint32_t* supported_ptypes_get(rte_eth_dev*) {
    return kPacketTypes;
}

const uint32_t* supported_ptypes_get(rte_eth_dev*, size_t* count) {
    *count = std::size(kPacketTypes) - 1;
    return kPacketTypes;
}

int fw_version_get(rte_eth_dev* dev, char* text, size_t size) {
    const std::string& version = port_of(dev).device->caps().firmware;
    const int length = snprintf(text, size, "%s", version.c_str());
    // The size that it takes, when the caller's is too small.
    return static_cast<size_t>(length) < size ? 0 : length + 1;
}

void rxq_info_get(rte_eth_dev* dev, uint16_t queue, rte_eth_rxq_info* info) {
    const RxQueueConfig& config = rx_queue(dev, queue)->config();
    info->mp = config.pool;
    info->conf.offloads = config.offloads;
    info->conf.rx_deferred_start = config.deferred_start;
    info->scattered_rx = dev->data->scattered_rx;
    info->nb_desc = static_cast<uint16_t>(config.descriptors);
    info->rx_buf_size = static_cast<uint16_t>(RxQueue::buffer_size(config.pool));
}

void txq_info_get(rte_eth_dev* dev, uint16_t queue, rte_eth_txq_info* info) {
    const TxQueueConfig& config = tx_queue(dev, queue)->config();
    info->conf.offloads = config.offloads;
    info->conf.tx_deferred_start = config.deferred_start;
    info->nb_desc = static_cast<uint16_t>(config.descriptors);
}

int rx_burst_mode_get(rte_eth_dev* dev, uint16_t, rte_eth_burst_mode* mode) {
    snprintf(mode->info, sizeof(mode->info), "%s", rx_path_name(dev).c_str());
    return 0;
}

int tx_burst_mode_get(rte_eth_dev* dev, uint16_t, rte_eth_burst_mode* mode) {
    snprintf(mode->info, sizeof(mode->info), "%s", port_of(dev).tx_mode.describe().c_str());
    return 0;
}

int link_update(rte_eth_dev* dev, int) {
    const Device& device = *port_of(dev).device;
    ibv_port_attr attributes = {};
    rte_eth_link link = {};
    link.link_duplex = RTE_ETH_LINK_FULL_DUPLEX;
    link.link_autoneg = RTE_ETH_LINK_AUTONEG;
    if (ibv_query_port(device.context(), device.port(), &attributes) == 0 &&
        attributes.state == IBV_PORT_ACTIVE) {
        link.link_status = RTE_ETH_LINK_UP;
        link.link_speed = speed_of(attributes);
    }
    return rte_eth_linkstatus_set(dev, &link);
}

int is_removed(rte_eth_dev* dev) {
    return port_of(dev).events.device_failed() ? 1 : 0;
}

int priv_dump(rte_eth_dev* dev, FILE* file) {
    const Port& port = port_of(dev);
    fprintf(file,
            "%s: device %s port %u firmware %s part 0x%x inline %u, %zu memory regions, %zu flow "
            "rules, %zu VLAN filter rules, %zu rte_flow rules%s\n",
            dev->data->name, port.device->name(), port.device->port(),
            port.device->caps().firmware.c_str(), port.device->caps().part_id,
            port.tx_mode.inline_header, port.memory.region_count(), port.steering.rule_count(),
            port.vlan_filter.rule_count(), port.flows.size(), port.isolated ? ", isolated" : "");
    for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i) {
        if (const RxQueue* queue = rx_queue(dev, i); queue != nullptr) {
            fprintf(file, "%s\n", queue->describe().c_str());
        }
    }
    for (uint16_t i = 0; i < dev->data->nb_tx_queues; ++i) {
        if (const TxQueue* queue = tx_queue(dev, i); queue != nullptr) {
            fprintf(file, "%s\n", queue->describe().c_str());
        }
    }
    return 0;
}

}  // namespace tagwire::mlx5raw
