// SPDX-License-Identifier: BSD-3-Clause
// How the port receives: what it reports of packets, and in which way.
#include "drivers/net/mlx5raw/port.h"

namespace tagwire::mlx5raw {

CqeClassOptions cqe_class_options(const rte_eth_dev* dev) {
    CqeClassOptions options;
    options.checksum = (dev->data->dev_conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_CHECKSUM) != 0;
    options.rss_types = port_of(dev).rss.types;
    options.port_id = dev->data->port_id;
    return options;
}

// A burst function serves the whole port, and its queues have the path that fits it.
const char* rx_path_name(const rte_eth_dev* dev) {
    if (dev->data->nb_rx_queues == 0) {
        return "none";
    }
    return rx_queue(dev, 0)->path_name();
}

}  // namespace tagwire::mlx5raw
