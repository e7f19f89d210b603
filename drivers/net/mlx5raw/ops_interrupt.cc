// SPDX-License-Identifier: BSD-3-Clause
// RX interrupts as ethdev sees them: a vector per queue, whose descriptor is that of
// the queue's completion channel.
#include <rte_interrupts.h>

#include <cerrno>
#include <cstring>

#include "drivers/net/mlx5raw/log.h"
#include "drivers/net/mlx5raw/port.h"

namespace tagwire::mlx5raw {

Status open_rx_interrupts(rte_eth_dev* dev) {
    const uint16_t queues = dev->data->nb_rx_queues;
    if (dev->data->dev_conf.intr_conf.rxq == 0 || queues == 0) {
        return {};
    }
    rte_intr_handle* const handle = dev->intr_handle;
    if (queues >= RTE_MAX_RXTX_INTR_VEC_ID) {
        return failure(EINVAL, "RX interrupts for %u queues: EAL has %u vectors", queues,
                       RTE_MAX_RXTX_INTR_VEC_ID - 1);
    }
    if (const int error = rte_intr_vec_list_alloc(handle, nullptr, queues); error != 0) {
        return failure(-error, "no memory for %u interrupt vectors", queues);
    }
    for (uint16_t i = 0; i < queues; ++i) {
        int error = rte_intr_vec_list_index_set(handle, i, RTE_INTR_VEC_RXTX_OFFSET + i);
        if (error == 0) {
            error = rte_intr_efds_index_set(handle, i, rx_queue(dev, i)->interrupt().fd());
        }
        if (error != 0) {
            return failure(-error, "RX queue %u: EAL does not take its interrupt vector", i);
        }
    }
    rte_intr_nb_efd_set(handle, queues);
    return {};
}

void close_rx_interrupts(rte_eth_dev* dev) {
    rte_intr_free_epoll_fd(dev->intr_handle);
    rte_intr_vec_list_free(dev->intr_handle);
    rte_intr_nb_efd_set(dev->intr_handle, 0);
}

namespace {

int usable(const rte_eth_dev* dev, const RxQueue& queue) {
    if (queue.interrupt().fd() < 0) {
        return log_and_return(dev->data->name,
                              failure(ENOTSUP,
                                      "RX queue %u has no interrupt: configure the port "
                                      "with intr_conf.rxq and start it",
                                      queue.config().queue));
    }
    return 0;
}

}  // namespace

int rx_queue_intr_enable(rte_eth_dev* dev, uint16_t index) {
    RxQueue& queue = *rx_queue(dev, index);
    if (const int error = usable(dev, queue); error != 0) {
        return error;
    }
    queue.interrupt().arm(queue.completion_index());
    return 0;
}

int rx_queue_intr_disable(rte_eth_dev* dev, uint16_t index) {
    RxQueue& queue = *rx_queue(dev, index);
    if (const int error = usable(dev, queue); error != 0) {
        return error;
    }
    if (!queue.interrupt().take()) {
        const int error = errno;
        return log_and_return(dev->data->name,
                              failure(error, "RX queue %u: cannot read its completion channel: %s",
                                      index, strerror(error)));
    }
    return 0;
}

}  // namespace tagwire::mlx5raw
