// SPDX-License-Identifier: BSD-3-Clause
// Configure, start, stop, close.
#include <rte_malloc.h>

#include <cerrno>

#include "drivers/net/mlx5raw/log.h"
#include "drivers/net/mlx5raw/port.h"

namespace tagwire::mlx5raw {
namespace {

Status check_alive(const rte_eth_dev* dev) {
    if (port_of(dev).events.device_failed()) {
        return failure(EIO, "the device has failed: close the port and probe it again");
    }
    return {};
}

// After a stop, and after a start that failed half way: no verbs object of a queue
// or of the steering is left.
void tear_down(rte_eth_dev* dev) {
    Port& port = port_of(dev);
    close_rx_interrupts(dev);
    port.steering.clear();
    port.vlan_filter.clear();
    port.flows.stop();
    for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i) {
        if (RxQueue* queue = rx_queue(dev, i); queue != nullptr) {
            queue->destroy();
        }
        dev->data->rx_queue_state[i] = RTE_ETH_QUEUE_STATE_STOPPED;
    }
    for (uint16_t i = 0; i < dev->data->nb_tx_queues; ++i) {
        if (TxQueue* queue = tx_queue(dev, i); queue != nullptr) {
            queue->destroy();
        }
        dev->data->tx_queue_state[i] = RTE_ETH_QUEUE_STATE_STOPPED;
    }
}

// The burst function is the port's, so it fits the most demanding queue.
TxMode tx_mode_of(const rte_eth_dev* dev) {
    const Port& port = port_of(dev);
    uint64_t offloads = dev->data->dev_conf.txmode.offloads;
    for (uint16_t i = 0; i < dev->data->nb_tx_queues; ++i) {
        offloads |= tx_queue(dev, i)->config().offloads;
    }
    TxMode mode =
        choose_tx_mode(port.devargs.tx, port.device->caps(), offloads, dev->data->nb_tx_queues);
    mode.longest_packet = kMaxMtu + kFrameOverhead;
    return mode;
}

Status start_tx(rte_eth_dev* dev) {
    Port& port = port_of(dev);
    port.tx_mode = tx_mode_of(dev);
    for (uint16_t i = 0; i < dev->data->nb_tx_queues; ++i) {
        TxQueue* queue = tx_queue(dev, i);
        if (Status status = queue->create(*port.device, port.memory, port.tx_mode); !status.ok()) {
            return status;
        }
        if (queue->config().deferred_start) {
            continue;
        }
        if (Status status = queue->start(); !status.ok()) {
            return status;
        }
        dev->data->tx_queue_state[i] = RTE_ETH_QUEUE_STATE_STARTED;
    }
    return {};
}

Status start_rx(rte_eth_dev* dev) {
    Port& port = port_of(dev);
    for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i) {
        RxQueue* queue = rx_queue(dev, i);
        Status status = queue->create(*port.device, port.memory, port.cqe_classes, port.devargs.rx,
                                      port.rx_timestamp, dev->data->mtu + kFrameOverhead);
        if (!status.ok()) {
            return status;
        }
        if (queue->config().deferred_start) {
            continue;
        }
        if (status = queue->start(); !status.ok()) {
            return status;
        }
        dev->data->rx_queue_state[i] = RTE_ETH_QUEUE_STATE_STARTED;
    }
    return {};
}

// Before the port listens: a packet that a rule takes must not go elsewhere.
Status start_flows(rte_eth_dev* dev) {
    Port& port = port_of(dev);
    report_flow_marks(dev, port.flows.marks());
    return port.flows.start({*port.device, work_queues(dev), port.rss});
}

void choose_bursts(rte_eth_dev* dev) {
    Port& port = port_of(dev);
    dev->tx_pkt_burst = TxQueue::burst_of(port.tx_mode.path);
    dev->tx_pkt_prepare = TxQueue::prepare;
    bool scatter = false;
    for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i) {
        scatter |= rx_queue(dev, i)->segments_per_packet() > 1;
    }
    dev->data->scattered_rx = scatter;
    dev->rx_pkt_burst = port.devargs.rx.striding ? RxQueue::burst_striding
                        : scatter                ? RxQueue::burst_scatter
                                                 : RxQueue::burst_single;
    MLX5RAW_LOG(INFO, "%s: RX path %s, TX path %s, %zu flow rules", dev->data->name,
                rx_path_name(dev).c_str(), port.tx_mode.describe().c_str(),
                port.steering.rule_count());
}

}  // namespace

int dev_configure(rte_eth_dev* dev) {
    if (Status status = check_alive(dev); !status.ok()) {
        return log_and_return(dev->data->name, status);
    }
    if (const int error = configure_rss(dev); error != 0) {
        return error;
    }
    return configure_rx(dev);
}

int dev_start(rte_eth_dev* dev) {
    if (Status status = check_alive(dev); !status.ok()) {
        return log_and_return(dev->data->name, status);
    }
    Status status = start_tx(dev);
    if (status.ok()) {
        status = start_rx(dev);
    }
    if (status.ok()) {
        status = open_rx_interrupts(dev);
    }
    if (status.ok() && dev->data->nb_rx_queues != 0) {
        status = start_flows(dev);
    }
    if (status.ok()) {
        status = apply_steering(dev);
    }
    if (!status.ok()) {
        tear_down(dev);
        return log_and_return(dev->data->name, status);
    }
    choose_bursts(dev);
    // With link events ethdev asks the driver no more.
    link_update(dev, 0);
    return 0;
}

int dev_stop(rte_eth_dev* dev) {
    dev->data->dev_started = 0;
    dev->rx_pkt_burst = rte_eth_pkt_burst_dummy;
    dev->tx_pkt_burst = rte_eth_pkt_burst_dummy;
    rte_wmb();
    tear_down(dev);
    return 0;
}

// ethdev has stopped the port: no object of the device is left that could be broken. What
// the application had set goes too, since it must configure the port anew.
int dev_reset(rte_eth_dev* dev) {
    Port& port = port_of(dev);
    port.flows.clear();
    port.isolated = false;
    return log_and_return(dev->data->name, check_alive(dev));
}

int dev_close(rte_eth_dev* dev) {
    if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
        return 0;
    }
    Port& port = port_of(dev);
    port.events.stop();
    tear_down(dev);
    for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i) {
        rx_queue_release(dev, i);
    }
    for (uint16_t i = 0; i < dev->data->nb_tx_queues; ++i) {
        tx_queue_release(dev, i);
    }
    auto* handle = static_cast<PortHandle*>(dev->data->dev_private);
    delete handle->port;
    handle->port = nullptr;
    dev->intr_handle = nullptr;
    return 0;
}

}  // namespace tagwire::mlx5raw
