// SPDX-License-Identifier: BSD-3-Clause
// An EAL plugin that lets DPDK's polling threads run softcx. It wraps dev_start of
// the ports that stand on an RDMA device and puts itself around their bursts: the device
// runs before each receive burst, which so finds what has just arrived, and after each
// send burst, as a card begins to send when the doorbell rings. The driver does not know
// that its device is no hardware, and softcx does not know DPDK: what joins them is one
// symbol.
//
// Without softcx in the process the plugin does nothing.
#include <bus_vdev_driver.h>
#include <dlfcn.h>
#include <ethdev_driver.h>
#include <rte_common.h>
#include <rte_devargs.h>
#include <rte_log.h>

#include <array>
#include <string_view>
#include <utility>

namespace {

// Drivers whose ports may stand on a softcx device.
constexpr std::string_view kDrivers[] = {"net_mlx5raw", "mlx5_pci", "net_mlx5"};

int log_type;

using StepFunction = int (*)();
StepFunction run_device = nullptr;

struct WrappedPort {
    const eth_dev_ops* original = nullptr;
    eth_dev_ops ops = {};
    eth_rx_burst_t rx = nullptr;  // the driver's own
    eth_tx_burst_t tx = nullptr;
};
std::array<WrappedPort, RTE_MAX_ETHPORTS> ports;

// A burst function is given its queue and nothing that tells the port: one for each port.
template <size_t kPort>
uint16_t rx_burst(void* queue, rte_mbuf** packets, uint16_t count) {
    run_device();
    return ports[kPort].rx(queue, packets, count);
}

template <size_t kPort>
uint16_t tx_burst(void* queue, rte_mbuf** packets, uint16_t count) {
    const uint16_t sent = ports[kPort].tx(queue, packets, count);
    run_device();
    return sent;
}

template <size_t... kPorts>
constexpr auto rx_bursts_of(std::index_sequence<kPorts...>) {
    return std::array<eth_rx_burst_t, sizeof...(kPorts)>{rx_burst<kPorts>...};
}
template <size_t... kPorts>
constexpr auto tx_bursts_of(std::index_sequence<kPorts...>) {
    return std::array<eth_tx_burst_t, sizeof...(kPorts)>{tx_burst<kPorts>...};
}
constexpr auto kRxBursts = rx_bursts_of(std::make_index_sequence<RTE_MAX_ETHPORTS>{});
constexpr auto kTxBursts = tx_bursts_of(std::make_index_sequence<RTE_MAX_ETHPORTS>{});

// ethdev copies dev's burst functions for the data path when dev_start has returned.
void wrap_bursts(rte_eth_dev* dev) {
    const uint16_t port_id = dev->data->port_id;
    WrappedPort& port = ports[port_id];
    port.rx = std::exchange(dev->rx_pkt_burst, kRxBursts[port_id]);
    port.tx = std::exchange(dev->tx_pkt_burst, kTxBursts[port_id]);
}

void unwrap_bursts(rte_eth_dev* dev) {
    const uint16_t port_id = dev->data->port_id;
    const WrappedPort& port = ports[port_id];
    if (dev->rx_pkt_burst == kRxBursts[port_id]) {
        dev->rx_pkt_burst = port.rx;
    }
    if (dev->tx_pkt_burst == kTxBursts[port_id]) {
        dev->tx_pkt_burst = port.tx;
    }
}

int start_port(rte_eth_dev* dev) {
    const int result = ports[dev->data->port_id].original->dev_start(dev);
    if (result == 0) {
        wrap_bursts(dev);
    }
    return result;
}

int stop_port(rte_eth_dev* dev) {
    unwrap_bursts(dev);
    return ports[dev->data->port_id].original->dev_stop(dev);
}

// Drivers compare dev's burst functions with their own to tell which one is in use.
int rx_burst_mode(rte_eth_dev* dev, uint16_t queue, rte_eth_burst_mode* mode) {
    const bool started = dev->data->dev_started != 0;
    unwrap_bursts(dev);
    const int result = ports[dev->data->port_id].original->rx_burst_mode_get(dev, queue, mode);
    if (started) {
        wrap_bursts(dev);
    }
    return result;
}

int tx_burst_mode(rte_eth_dev* dev, uint16_t queue, rte_eth_burst_mode* mode) {
    const bool started = dev->data->dev_started != 0;
    unwrap_bursts(dev);
    const int result = ports[dev->data->port_id].original->tx_burst_mode_get(dev, queue, mode);
    if (started) {
        wrap_bursts(dev);
    }
    return result;
}

// The bus names the driver only after the probe that we are in; the device's name
// begins with it where the bus is vdev.
bool stands_on_rdma(const rte_device* device) {
    if (device == nullptr) {
        return false;
    }
    const std::string_view name = device->driver != nullptr ? device->driver->name : device->name;
    for (const std::string_view driver : kDrivers) {
        if (name.substr(0, driver.size()) == driver) {
            return true;
        }
    }
    return false;
}

int on_new_port(uint16_t port_id, rte_eth_event_type, void*, void*) {
    rte_eth_dev* dev = &rte_eth_devices[port_id];
    if (!stands_on_rdma(dev->device)) {
        return 0;
    }
    WrappedPort& port = ports[port_id];
    port.original = dev->dev_ops;
    port.ops = *dev->dev_ops;
    port.ops.dev_start = start_port;
    port.ops.dev_stop = stop_port;
    port.ops.rx_burst_mode_get = port.ops.rx_burst_mode_get != nullptr ? rx_burst_mode : nullptr;
    port.ops.tx_burst_mode_get = port.ops.tx_burst_mode_get != nullptr ? tx_burst_mode : nullptr;
    dev->dev_ops = &port.ops;
    rte_log(RTE_LOG_DEBUG, log_type, "softcx_step: port %u is run by its polling threads\n",
            port_id);
    return 0;
}

void wrap_existing_ports() {
    uint16_t port_id;
    RTE_ETH_FOREACH_DEV(port_id) {
        on_new_port(port_id, RTE_ETH_EVENT_NEW, nullptr, nullptr);
    }
}

int probe(rte_vdev_device*) {
    // Now, not when the plugin is loaded: a program may bring softcx in before its first port.
    run_device = reinterpret_cast<StepFunction>(dlsym(RTLD_DEFAULT, "softcx_step"));
    if (run_device == nullptr) {
        rte_log(RTE_LOG_DEBUG, log_type, "softcx_step: no softcx in this process, nothing to do\n");
        return 0;
    }
    wrap_existing_ports();
    return rte_eth_dev_callback_register(RTE_ETH_ALL, RTE_ETH_EVENT_NEW, on_new_port, nullptr);
}

int remove(rte_vdev_device*) {
    return run_device == nullptr ? 0
                                 : rte_eth_dev_callback_unregister(RTE_ETH_ALL, RTE_ETH_EVENT_NEW,
                                                                   on_new_port, nullptr);
}

constinit rte_vdev_driver driver = {.probe = probe, .remove = remove};

// A callback can be registered only when EAL has memory, and must be before the
// first port. A device of our own, first in the list, is probed just then. (The PCI
// bus comes before the virtual one: hence wrap_existing_ports.)
RTE_INIT(softcx_step_init) {
    log_type = rte_log_register_type_and_pick_level("softcx.step", RTE_LOG_INFO);
    driver.driver.name = "softcx_step";
    rte_vdev_register(&driver);
    if (rte_devargs_add(RTE_DEVTYPE_VIRTUAL, "softcx_step0") != 0) {
        rte_log(RTE_LOG_ERR, log_type,
                "softcx_step: EAL takes no device of ours: nothing runs softcx\n");
    }
}

}  // namespace
