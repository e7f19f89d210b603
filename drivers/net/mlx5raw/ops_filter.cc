// SPDX-License-Identifier: BSD-3-Clause
// What the port listens to: addresses, promiscuous and multicast modes, MTU.
#include <algorithm>
#include <cerrno>

#include "drivers/net/mlx5raw/log.h"
#include "drivers/net/mlx5raw/netdev.h"
#include "drivers/net/mlx5raw/port.h"

namespace tagwire::mlx5raw {
namespace {

int listen(rte_eth_dev* dev, const Listening& listening) {
    return log_and_return(dev->data->name, port_of(dev).steering.listen(listening));
}

bool same(const rte_ether_addr& a, const rte_ether_addr& b) {
    return rte_is_same_ether_addr(&a, &b) != 0;
}

}  // namespace

Listening listening_of(const rte_eth_dev* dev) {
    Listening listening;
    listening.promiscuous = dev->data->promiscuous != 0;
    listening.all_multicast = dev->data->all_multicast != 0;
    listening.unicast.assign(dev->data->mac_addrs, dev->data->mac_addrs + kMaxMacAddresses);
    listening.multicast = port_of(dev).multicast;
    return listening;
}

int promiscuous_enable(rte_eth_dev* dev) {
    Listening listening = listening_of(dev);
    listening.promiscuous = true;
    const int result = listen(dev, listening);
    if (result == 0) {
        port_of(dev).vlan_filter.clear();
    }
    return result;
}

int promiscuous_disable(rte_eth_dev* dev) {
    if (dev->data->dev_started) {
        if (const Status status = apply_vlan_filter(dev, false); !status.ok()) {
            return log_and_return(dev->data->name, status);
        }
    }
    Listening listening = listening_of(dev);
    listening.promiscuous = false;
    const int result = listen(dev, listening);
    if (result != 0) {
        port_of(dev).vlan_filter.clear();  // the port stays promiscuous
    }
    return result;
}

int allmulticast_enable(rte_eth_dev* dev) {
    Listening listening = listening_of(dev);
    listening.all_multicast = true;
    return listen(dev, listening);
}

int allmulticast_disable(rte_eth_dev* dev) {
    Listening listening = listening_of(dev);
    listening.all_multicast = false;
    return listen(dev, listening);
}

// ethdev writes the new address to its table after this call.
int mac_addr_set(rte_eth_dev* dev, rte_ether_addr* address) {
    Listening listening = listening_of(dev);
    listening.unicast.front() = *address;
    return listen(dev, listening);
}

int mac_addr_add(rte_eth_dev* dev, rte_ether_addr* address, uint32_t, uint32_t) {
    Listening listening = listening_of(dev);
    listening.unicast.push_back(*address);
    return listen(dev, listening);
}

void mac_addr_remove(rte_eth_dev* dev, uint32_t index) {
    Listening listening = listening_of(dev);
    listening.unicast.erase(listening.unicast.begin() + index);
    listen(dev, listening);
}

int set_mc_addr_list(rte_eth_dev* dev, rte_ether_addr* list, uint32_t count) {
    Port& port = port_of(dev);
    std::vector<rte_ether_addr> wanted;
    for (uint32_t i = 0; i < count; ++i) {
        const bool known = std::any_of(wanted.begin(), wanted.end(),
                                       [&](const rte_ether_addr& a) { return same(a, list[i]); });
        if (!known && rte_is_broadcast_ether_addr(&list[i]) == 0) {
            wanted.push_back(list[i]);
        }
    }
    Listening listening = listening_of(dev);
    listening.multicast = wanted;
    const int result = listen(dev, listening);
    if (result == 0) {
        port.multicast = std::move(wanted);
    }
    return result;
}

int mtu_set(rte_eth_dev* dev, uint16_t mtu) {
    const uint32_t frame = mtu + kFrameOverhead;
    for (uint16_t i = 0; dev->data->dev_started && i < dev->data->nb_rx_queues; ++i) {
        const RxQueue* queue = rx_queue(dev, i);
        if (frame > queue->largest_frame()) {
            return log_and_return(dev->data->name,
                                  failure(EBUSY,
                                          "the MTU %u does not fit the posted buffers; stop the "
                                          "port, set it, and start again",
                                          mtu));
        }
    }
    const uint32_t ifindex = port_of(dev).device->ifindex();
    // Without a network device the port passes what fits the buffers.
    if (ifindex != 0) {
        return log_and_return(dev->data->name, netdev_set_mtu(ifindex, mtu));
    }
    return 0;
}

}  // namespace tagwire::mlx5raw
