// SPDX-License-Identifier: BSD-3-Clause
// An EAL plugin that lets DPDK's polling threads run softcx. It wraps dev_start of
// the ports that stand on an RDMA device and adds a callback per queue, which ethdev
// calls at each burst, an empty one too. The driver does not know that its device is
// no hardware, and softcx does not know DPDK: what joins them is one symbol.
//
// Without softcx in the process the plugin does nothing.
#include <bus_vdev_driver.h>
#include <dlfcn.h>
#include <ethdev_driver.h>
#include <rte_common.h>
#include <rte_devargs.h>
#include <rte_log.h>
#include <rte_malloc.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <vector>

namespace {

// Drivers whose ports may stand on a softcx device.
constexpr std::string_view kDrivers[] = {"net_mlx5raw", "mlx5_pci", "net_mlx5"};

int log_type;

using StepFunction = int (*)();
StepFunction run_device = nullptr;

// A burst of an RX queue has run the device since the last TX burst of this thread.
thread_local bool stepped_by_rx = false;

struct WrappedPort {
    const eth_dev_ops* original = nullptr;
    eth_dev_ops ops = {};
    std::vector<const rte_eth_rxtx_callback*> rx;
    std::vector<const rte_eth_rxtx_callback*> tx;
};
std::array<WrappedPort, RTE_MAX_ETHPORTS> ports;

uint16_t after_rx_burst(uint16_t, uint16_t, rte_mbuf**, uint16_t count, uint16_t, void*) {
    run_device();
    stepped_by_rx = true;
    return count;
}

// A thread that receives too has run the device already; one that only sends has not.
uint16_t before_tx_burst(uint16_t, uint16_t, rte_mbuf**, uint16_t count, void*) {
    if (!stepped_by_rx) {
        run_device();
    }
    stepped_by_rx = false;
    return count;
}

void remove_callbacks(uint16_t port_id) {
    WrappedPort& port = ports[port_id];
    for (uint16_t i = 0; i < port.rx.size(); ++i) {
        rte_eth_remove_rx_callback(port_id, i, port.rx[i]);
        rte_free(const_cast<rte_eth_rxtx_callback*>(port.rx[i]));
    }
    for (uint16_t i = 0; i < port.tx.size(); ++i) {
        rte_eth_remove_tx_callback(port_id, i, port.tx[i]);
        rte_free(const_cast<rte_eth_rxtx_callback*>(port.tx[i]));
    }
    port.rx.clear();
    port.tx.clear();
}

bool add_callbacks(const rte_eth_dev* dev) {
    const uint16_t port_id = dev->data->port_id;
    WrappedPort& port = ports[port_id];
    for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i) {
        const auto* callback = rte_eth_add_rx_callback(port_id, i, after_rx_burst, nullptr);
        if (callback == nullptr) {
            return false;
        }
        port.rx.push_back(callback);
    }
    for (uint16_t i = 0; i < dev->data->nb_tx_queues; ++i) {
        const auto* callback = rte_eth_add_tx_callback(port_id, i, before_tx_burst, nullptr);
        if (callback == nullptr) {
            return false;
        }
        port.tx.push_back(callback);
    }
    return true;
}

int start_port(rte_eth_dev* dev) {
    const uint16_t port_id = dev->data->port_id;
    const int result = ports[port_id].original->dev_start(dev);
    if (result != 0) {
        return result;
    }
    if (!add_callbacks(dev)) {
        remove_callbacks(port_id);
        rte_log(RTE_LOG_ERR, log_type,
                "softcx_step: no callback on port %u: nothing would run it\n", port_id);
        ports[port_id].original->dev_stop(dev);
        return -ENOMEM;
    }
    return 0;
}

int stop_port(rte_eth_dev* dev) {
    const uint16_t port_id = dev->data->port_id;
    remove_callbacks(port_id);
    return ports[port_id].original->dev_stop(dev);
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
