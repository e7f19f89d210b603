// SPDX-License-Identifier: BSD-3-Clause
// VLAN offloads that can change while the port runs.
#include "drivers/net/mlx5raw/log.h"
#include "drivers/net/mlx5raw/port.h"

namespace tagwire::mlx5raw {
namespace {

// The list that ethdev keeps. Priority-tagged frames (VLAN 0) belong to no VLAN
// (IEEE 802.1Q, 9.6) and pass.
VlanSet allowed_vlans(const rte_eth_dev* dev) {
    VlanSet allowed;
    for (size_t vlan = 0; vlan < allowed.size(); ++vlan) {
        allowed[vlan] = (dev->data->vlan_filter_conf.ids[vlan / 64] >> (vlan % 64) & 1) != 0;
    }
    allowed[0] = true;
    return allowed;
}

Status apply(rte_eth_dev* dev, bool promiscuous, const VlanSet& allowed) {
    Port& port = port_of(dev);
    const bool wanted = (dev->data->dev_conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_VLAN_FILTER) != 0;
    if (!wanted || promiscuous || port.isolated || dev->data->nb_rx_queues == 0) {
        port.vlan_filter.clear();
        return {};
    }
    return port.vlan_filter.apply(*port.device, rx_queue(dev, 0)->wq(), allowed);
}

}  // namespace

Status apply_vlan_filter(rte_eth_dev* dev, bool promiscuous) {
    return apply(dev, promiscuous, allowed_vlans(dev));
}

// ethdev changes its list after this call.
int vlan_filter_set(rte_eth_dev* dev, uint16_t vlan, int on) {
    if (!dev->data->dev_started) {
        return 0;
    }
    VlanSet allowed = allowed_vlans(dev);
    allowed[vlan] = on != 0 || vlan == 0;
    return log_and_return(dev->data->name, apply(dev, dev->data->promiscuous != 0, allowed));
}

// ethdev has changed the port's offloads, and takes that back when this fails.
int vlan_offload_set(rte_eth_dev* dev, int mask) {
    Status status;
    if ((mask & RTE_ETH_VLAN_STRIP_MASK) != 0) {
        status = apply_vlan_strip(dev);
    }
    if (status.ok() && dev->data->dev_started && (mask & RTE_ETH_VLAN_FILTER_MASK) != 0) {
        status = apply_vlan_filter(dev, dev->data->promiscuous != 0);
    }
    return log_and_return(dev->data->name, status);
}

}  // namespace tagwire::mlx5raw
