// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/port_events.h"

#include <fcntl.h>
#include <rte_interrupts.h>

#include <cerrno>
#include <cstring>

#include "drivers/net/mlx5raw/log.h"
#include "drivers/net/mlx5raw/port.h"

namespace tagwire::mlx5raw {
namespace {

constexpr uint32_t bit(rte_eth_event_type type) {
    return 1u << type;
}

constexpr rte_eth_event_type kReported[] = {RTE_ETH_EVENT_INTR_LSC, RTE_ETH_EVENT_INTR_RESET,
                                            RTE_ETH_EVENT_INTR_RMV};

}  // namespace

Status PortEvents::start(rte_eth_dev* dev, const Device& device) {
    const int fd = device.context()->async_fd;
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        return failure(errno, "%s: its event descriptor cannot be made non-blocking: %s",
                       device.name(), strerror(errno));
    }
    InterruptHandle handle(rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE));
    if (handle == nullptr) {
        return failure(ENOMEM, "%s: no memory for an interrupt handle", device.name());
    }
    rte_intr_fd_set(handle.get(), fd);
    rte_intr_type_set(handle.get(), RTE_INTR_HANDLE_EXT);
    if (const int error = rte_intr_callback_register(handle.get(), on_interrupt, dev); error != 0) {
        return failure(-error, "%s: EAL does not watch its events: %s", device.name(),
                       strerror(-error));
    }
    dev_ = dev;
    device_ = &device;
    handle_ = std::move(handle);
    return {};
}

void PortEvents::stop() {
    if (handle_ == nullptr) {
        return;
    }
    int result = 0;
    if (rte_thread_is_intr() != 0) {
        // A port that is closed by its own callback: EAL lets go when that returns.
        result = rte_intr_callback_unregister_pending(handle_.get(), on_interrupt, dev_, nullptr);
    }
    if (rte_thread_is_intr() == 0 || result <= 0) {
        result = rte_intr_callback_unregister_sync(handle_.get(), on_interrupt, dev_);
    }
    if (result < 0) {
        MLX5RAW_LOG(ERR, "%s: EAL does not stop watching its events: %s", device_->name(),
                    strerror(-result));
    }
    handle_.reset();
}

// A callback of the application may close the port: nothing of it is touched then.
void PortEvents::on_interrupt(void* argument) {
    auto* dev = static_cast<rte_eth_dev*>(argument);
    const uint32_t events = port_of(dev).events.take_events(dev);
    for (const rte_eth_event_type type : kReported) {
        if (dev->state != RTE_ETH_DEV_ATTACHED) {
            return;
        }
        if ((events & bit(type)) != 0) {
            rte_eth_dev_callback_process(dev, type, nullptr);
        }
    }
}

uint32_t PortEvents::take_events(rte_eth_dev* dev) {
    uint32_t events = 0;
    ibv_async_event event;
    while (ibv_get_async_event(device_->context(), &event) == 0) {
        events |= take(dev, event);
        // At once: destroying the object that it names waits for this.
        ibv_ack_async_event(&event);
    }
    return events;
}

uint32_t PortEvents::take(rte_eth_dev* dev, const ibv_async_event& event) {
    const rte_eth_intr_conf& wanted = dev->data->dev_conf.intr_conf;
    switch (event.event_type) {
        case IBV_EVENT_PORT_ACTIVE:
        case IBV_EVENT_PORT_ERR:
            if (event.element.port_num != device_->port() || link_update(dev, 0) != 0) {
                return 0;  // another port, or no change
            }
            ++counters_.link_changes;
            return wanted.lsc != 0 ? bit(RTE_ETH_EVENT_INTR_LSC) : 0;
        case IBV_EVENT_DEVICE_FATAL:
            ++counters_.device_fatal;
            failed_.store(true, std::memory_order_relaxed);
            MLX5RAW_LOG(ERR,
                        "%s: the device %s has failed: nothing moves any more; close the port and "
                        "probe it again",
                        dev->data->name, device_->name());
            return (wanted.rmv != 0 ? bit(RTE_ETH_EVENT_INTR_RMV) : 0) |
                   (link_update(dev, 0) == 0 && wanted.lsc != 0 ? bit(RTE_ETH_EVENT_INTR_LSC) : 0);
        case IBV_EVENT_CQ_ERR:
            ++counters_.completion_errors;
            MLX5RAW_LOG(ERR,
                        "%s: a completion queue is in error (overrun?) and its queue gets nothing "
                        "any more; stop the port and start it again",
                        dev->data->name);
            return bit(RTE_ETH_EVENT_INTR_RESET);
        case IBV_EVENT_WQ_FATAL:
        case IBV_EVENT_QP_FATAL:
        case IBV_EVENT_QP_REQ_ERR:
        case IBV_EVENT_QP_ACCESS_ERR:
            // The polling thread finds the error completion and recovers.
            ++counters_.queue_errors;
            return 0;
        default:
            return 0;
    }
}

}  // namespace tagwire::mlx5raw
