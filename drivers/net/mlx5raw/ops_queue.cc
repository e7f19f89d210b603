// SPDX-License-Identifier: BSD-3-Clause
// Queue set-up, start and stop of a single queue, descriptors.
#include <rte_malloc.h>

#include <bit>
#include <cerrno>
#include <new>

#include "drivers/net/mlx5raw/log.h"
#include "drivers/net/mlx5raw/port.h"

namespace tagwire::mlx5raw {
namespace {

// On the queue's socket, since a polling thread reads it for each packet.
template <typename Queue, typename Config>
Queue* construct(const char* what, const Config& config) {
    void* memory = rte_zmalloc_socket(what, sizeof(Queue), alignof(Queue), config.socket);
    return memory != nullptr ? new (memory) Queue(config) : nullptr;
}

template <typename Queue>
void destruct(void*& slot) {
    if (slot != nullptr) {
        static_cast<Queue*>(slot)->~Queue();
        rte_free(slot);
        slot = nullptr;
    }
}

}  // namespace

int rx_queue_setup(rte_eth_dev* dev, uint16_t queue, uint16_t descriptors, unsigned socket,
                   const rte_eth_rxconf* config, rte_mempool* pool) {
    if (pool == nullptr) {
        return log_and_return(
            dev->data->name,
            failure(EINVAL, "RX queue %u: give one mempool (buffer split is not supported)",
                    queue));
    }
    RxQueueConfig wanted;
    wanted.queue = queue;
    wanted.port_id = dev->data->port_id;
    wanted.descriptors = std::bit_ceil(uint32_t{descriptors});
    wanted.socket = static_cast<int>(socket);
    wanted.pool = pool;
    wanted.offloads = config->offloads | dev->data->dev_conf.rxmode.offloads;
    wanted.deferred_start = config->rx_deferred_start != 0;
    wanted.interrupts = dev->data->dev_conf.intr_conf.rxq != 0;
    if (rte_pktmbuf_data_room_size(pool) <= RTE_PKTMBUF_HEADROOM) {
        return log_and_return(
            dev->data->name,
            failure(EINVAL,
                    "RX queue %u: the buffers of mempool %s are smaller than the headroom of %u",
                    queue, pool->name, RTE_PKTMBUF_HEADROOM));
    }
    auto* object = construct<RxQueue>("mlx5raw_rxq", wanted);
    if (object == nullptr) {
        return log_and_return(dev->data->name,
                              failure(ENOMEM, "RX queue %u: out of memory", queue));
    }
    dev->data->rx_queues[queue] = object;
    return 0;
}

int tx_queue_setup(rte_eth_dev* dev, uint16_t queue, uint16_t descriptors, unsigned socket,
                   const rte_eth_txconf* config) {
    TxQueueConfig wanted;
    wanted.queue = queue;
    wanted.port_id = dev->data->port_id;
    wanted.descriptors = std::bit_ceil(uint32_t{descriptors});
    wanted.socket = static_cast<int>(socket);
    wanted.offloads = config->offloads | dev->data->dev_conf.txmode.offloads;
    wanted.deferred_start = config->tx_deferred_start != 0;
    auto* object = construct<TxQueue>("mlx5raw_txq", wanted);
    if (object == nullptr) {
        return log_and_return(dev->data->name,
                              failure(ENOMEM, "TX queue %u: out of memory", queue));
    }
    dev->data->tx_queues[queue] = object;
    return 0;
}

void rx_queue_release(rte_eth_dev* dev, uint16_t queue) {
    destruct<RxQueue>(dev->data->rx_queues[queue]);
}

void tx_queue_release(rte_eth_dev* dev, uint16_t queue) {
    destruct<TxQueue>(dev->data->tx_queues[queue]);
}

int rx_queue_start(rte_eth_dev* dev, uint16_t queue) {
    const int result = log_and_return(dev->data->name, rx_queue(dev, queue)->start());
    if (result == 0) {
        dev->data->rx_queue_state[queue] = RTE_ETH_QUEUE_STATE_STARTED;
    }
    return result;
}

int rx_queue_stop(rte_eth_dev* dev, uint16_t queue) {
    const int result = log_and_return(dev->data->name, rx_queue(dev, queue)->stop());
    if (result == 0) {
        dev->data->rx_queue_state[queue] = RTE_ETH_QUEUE_STATE_STOPPED;
    }
    return result;
}

int tx_queue_start(rte_eth_dev* dev, uint16_t queue) {
    const int result = log_and_return(dev->data->name, tx_queue(dev, queue)->start());
    if (result == 0) {
        dev->data->tx_queue_state[queue] = RTE_ETH_QUEUE_STATE_STARTED;
    }
    return result;
}

int tx_queue_stop(rte_eth_dev* dev, uint16_t queue) {
    const int result = log_and_return(dev->data->name, tx_queue(dev, queue)->stop());
    if (result == 0) {
        dev->data->tx_queue_state[queue] = RTE_ETH_QUEUE_STATE_STOPPED;
    }
    return result;
}

int tx_done_cleanup(void* queue, uint32_t count) {
    auto& q = *static_cast<TxQueue*>(queue);
    return q.running() ? static_cast<int>(q.cleanup(count != 0 ? count : UINT32_MAX)) : 0;
}

uint32_t rx_queue_count(void* queue) {
    return static_cast<RxQueue*>(queue)->used_descriptors();
}

int rx_descriptor_status(void* queue, uint16_t offset) {
    const auto& q = *static_cast<RxQueue*>(queue);
    if (offset >= q.descriptors()) {
        return -EINVAL;
    }
    return offset < q.used_descriptors() ? RTE_ETH_RX_DESC_DONE : RTE_ETH_RX_DESC_AVAIL;
}

int tx_descriptor_status(void* queue, uint16_t offset) {
    const auto& q = *static_cast<TxQueue*>(queue);
    if (offset >= q.descriptors()) {
        return -EINVAL;
    }
    return offset < q.used_descriptors() ? RTE_ETH_TX_DESC_FULL : RTE_ETH_TX_DESC_DONE;
}

}  // namespace tagwire::mlx5raw
