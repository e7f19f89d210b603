// SPDX-License-Identifier: BSD-3-Clause
// How the port receives: what it reports of packets, and in which way.
#include <rte_mbuf_dyn.h>

#include <cerrno>

#include "drivers/net/mlx5raw/log.h"
#include "drivers/net/mlx5raw/port.h"

namespace tagwire::mlx5raw {

CqeClassOptions cqe_class_options(const rte_eth_dev* dev) {
    const Port& port = port_of(dev);
    const uint64_t offloads = dev->data->dev_conf.rxmode.offloads;
    CqeClassOptions options;
    options.checksum = (offloads & RTE_ETH_RX_OFFLOAD_CHECKSUM) != 0;
    options.rss_types = port.rss.types;
    options.time_flag = (offloads & RTE_ETH_RX_OFFLOAD_TIMESTAMP) != 0 ? port.rx_timestamp.flag : 0;
    options.port_id = dev->data->port_id;
    return options;
}

int configure_rx(rte_eth_dev* dev) {
    Port& port = port_of(dev);
    if ((dev->data->dev_conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_TIMESTAMP) != 0) {
        int field = 0;
        if (rte_mbuf_dyn_rx_timestamp_register(&field, &port.rx_timestamp.flag) != 0) {
            return log_and_return(
                dev->data->name,
                failure(ENOMEM, "the mbuf has no room left for a timestamp (dynamic fields)"));
        }
        port.rx_timestamp.field = static_cast<uint16_t>(field);
    }
    port.cqe_classes = make_cqe_classes(cqe_class_options(dev));
    return 0;
}

Status apply_vlan_strip(rte_eth_dev* dev) {
    const bool on = (dev->data->dev_conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_VLAN_STRIP) != 0;
    for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i) {
        RxQueue* const queue = rx_queue(dev, i);
        if (queue == nullptr) {
            continue;
        }
        if (Status status = queue->set_vlan_strip(on); !status.ok()) {
            return status;
        }
    }
    return {};
}

void vlan_strip_queue_set(rte_eth_dev* dev, uint16_t queue, int on) {
    log_and_return(dev->data->name, rx_queue(dev, queue)->set_vlan_strip(on != 0));
}

// The clock that timestamps are read from, in its own ticks.
int read_clock(rte_eth_dev* dev, uint64_t* time) {
    ibv_values_ex values = {};
    values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    if (const int error = ibv_query_rt_values_ex(port_of(dev).device->context(), &values);
        error != 0) {
        return error < 0 ? error : -error;
    }
    *time = static_cast<uint64_t>(values.raw_clock.tv_nsec);
    return 0;
}

// A burst function serves the whole port, and its queues have the path that fits it.
std::string rx_path_name(const rte_eth_dev* dev) {
    if (dev->data->nb_rx_queues == 0) {
        return "none";
    }
    return rx_queue(dev, 0)->path_name();
}

}  // namespace tagwire::mlx5raw
