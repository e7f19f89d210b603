// SPDX-License-Identifier: BSD-3-Clause
// The driver as EAL and ethdev know it: probe, remove, the table of operations.
#include <ethdev_vdev.h>
#include <rte_malloc.h>

#include <cerrno>

#include "drivers/net/mlx5raw/log.h"
#include "drivers/net/mlx5raw/port.h"

namespace tagwire::mlx5raw {

// Members in the order of struct eth_dev_ops, as C++ wants.
const eth_dev_ops kDevOps = {
    .dev_configure = dev_configure,
    .dev_start = dev_start,
    .dev_stop = dev_stop,
    .dev_close = dev_close,
    .dev_reset = dev_reset,
    .link_update = link_update,
    .is_removed = is_removed,
    .promiscuous_enable = promiscuous_enable,
    .promiscuous_disable = promiscuous_disable,
    .allmulticast_enable = allmulticast_enable,
    .allmulticast_disable = allmulticast_disable,
    .mac_addr_remove = mac_addr_remove,
    .mac_addr_add = mac_addr_add,
    .mac_addr_set = mac_addr_set,
    .set_mc_addr_list = set_mc_addr_list,
    .mtu_set = mtu_set,
    .stats_get = stats_get,
    .stats_reset = stats_reset,
    .xstats_get = xstats_get,
    .xstats_reset = stats_reset,
    .xstats_get_names = xstats_get_names,
    .dev_infos_get = dev_infos_get,
    .rxq_info_get = rxq_info_get,
    .txq_info_get = txq_info_get,
    .rx_burst_mode_get = rx_burst_mode_get,
    .tx_burst_mode_get = tx_burst_mode_get,
    .fw_version_get = fw_version_get,
    .dev_supported_ptypes_get = supported_ptypes_get,
    .vlan_filter_set = vlan_filter_set,
    .vlan_strip_queue_set = vlan_strip_queue_set,
    .vlan_offload_set = vlan_offload_set,
    .rx_queue_start = rx_queue_start,
    .rx_queue_stop = rx_queue_stop,
    .tx_queue_start = tx_queue_start,
    .tx_queue_stop = tx_queue_stop,
    .rx_queue_setup = rx_queue_setup,
    .rx_queue_release = rx_queue_release,
    .rx_queue_intr_enable = rx_queue_intr_enable,
    .rx_queue_intr_disable = rx_queue_intr_disable,
    .tx_queue_setup = tx_queue_setup,
    .tx_queue_release = tx_queue_release,
    .tx_done_cleanup = tx_done_cleanup,
    .rss_hash_update = rss_hash_update,
    .rss_hash_conf_get = rss_hash_conf_get,
    .reta_update = reta_update,
    .reta_query = reta_query,
    .flow_ops_get = flow_ops_get,
    .read_clock = read_clock,
    .eth_dev_priv_dump = priv_dump,
};

namespace {

int allocate(rte_vdev_device* vdev, std::unique_ptr<Port> port) {
    const char* name = rte_vdev_device_name(vdev);
    if (vdev->device.numa_node == SOCKET_ID_ANY) {
        vdev->device.numa_node = static_cast<int>(rte_socket_id());
    }
    rte_eth_dev* dev = rte_eth_vdev_allocate(vdev, sizeof(PortHandle));
    if (dev == nullptr) {
        return log_and_return(name, failure(ENOMEM, "no free ethdev port"));
    }
    // ethdev frees the table of addresses with rte_free.
    dev->data->mac_addrs = static_cast<rte_ether_addr*>(
        rte_zmalloc("mlx5raw_mac", sizeof(rte_ether_addr) * kMaxMacAddresses, 0));
    if (dev->data->mac_addrs == nullptr) {
        rte_eth_dev_release_port(dev);
        return log_and_return(name, failure(ENOMEM, "out of memory"));
    }
    port->rx_vectors.reset(rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE));
    if (port->rx_vectors == nullptr) {
        rte_eth_dev_release_port(dev);
        return log_and_return(name, failure(ENOMEM, "out of memory"));
    }
    rte_intr_type_set(port->rx_vectors.get(), RTE_INTR_HANDLE_EXT);
    dev->intr_handle = port->rx_vectors.get();
    dev->data->mac_addrs[0] = port->device->mac();
    dev->data->dev_flags |=
        RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS | RTE_ETH_DEV_INTR_LSC | RTE_ETH_DEV_INTR_RMV;
    dev->dev_ops = &kDevOps;
    dev->rx_pkt_burst = rte_eth_pkt_burst_dummy;
    dev->tx_pkt_burst = rte_eth_pkt_burst_dummy;
    dev->rx_queue_count = rx_queue_count;
    dev->rx_descriptor_status = rx_descriptor_status;
    dev->tx_descriptor_status = tx_descriptor_status;

    const Device& device = *port->device;
    char mac[RTE_ETHER_ADDR_FMT_SIZE];
    rte_ether_format_addr(mac, sizeof(mac), &device.mac());
    MLX5RAW_LOG(INFO, "%s: %s port %u, firmware %s, MAC %s", name, device.name(), device.port(),
                device.caps().firmware.c_str(), mac);
    auto* handle = static_cast<PortHandle*>(dev->data->dev_private);
    handle->port = port.get();
    if (const Status status = port->events.start(dev, *port->device); !status.ok()) {
        rte_eth_dev_release_port(dev);
        return log_and_return(name, status);
    }
    port.release();
    rte_eth_dev_probing_finish(dev);
    return 0;
}

int probe(rte_vdev_device* vdev) {
    const char* name = rte_vdev_device_name(vdev);
    if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
        return log_and_return(
            name, failure(ENOTSUP,
                          "secondary processes are not supported: open the device in the primary"));
    }
    Devargs arguments;
    if (const Status status = parse_devargs(rte_vdev_device_args(vdev), arguments); !status.ok()) {
        return log_and_return(name, status);
    }
    std::unique_ptr<Device> device;
    if (const Status status = Device::open(arguments, device); !status.ok()) {
        return log_and_return(name, status);
    }
    if (const Status status = check_tx_arguments(arguments.tx, device->caps()); !status.ok()) {
        return log_and_return(name, status);
    }
    return allocate(vdev, std::make_unique<Port>(std::move(device), arguments));
}

int remove(rte_vdev_device* vdev) {
    rte_eth_dev* dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));
    if (dev == nullptr) {
        return 0;  // closed before
    }
    dev_close(dev);
    return rte_eth_dev_release_port(dev);
}

MemoryTable* memory_of(const rte_vdev_device* vdev) {
    const rte_eth_dev* dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));
    return dev != nullptr && dev->data->dev_private != nullptr ? &port_of(dev).memory : nullptr;
}

int dma_map(rte_vdev_device* vdev, void* address, uint64_t, size_t length) {
    MemoryTable* memory = memory_of(vdev);
    const Status status = memory != nullptr
                              ? memory->add_external(reinterpret_cast<uintptr_t>(address), length)
                              : failure(ENODEV, "the port is closed");
    return log_and_return(rte_vdev_device_name(vdev), status) == 0 ? 0 : -1;
}

int dma_unmap(rte_vdev_device* vdev, void* address, uint64_t, size_t length) {
    if (MemoryTable* memory = memory_of(vdev); memory != nullptr) {
        memory->forget(reinterpret_cast<uintptr_t>(address), length);
    }
    return 0;
}

// Initialized by the compiler: the constructor that registers it may run before those
// of C++ objects.
constinit rte_vdev_driver vdev_driver = {
    .probe = probe,
    .remove = remove,
    .dma_map = dma_map,
    .dma_unmap = dma_unmap,
};

}  // namespace
}  // namespace tagwire::mlx5raw

using tagwire::mlx5raw::vdev_driver;
namespace tagwire::mlx5raw {
RTE_LOG_REGISTER(log_type, pmd.net.mlx5raw, INFO)
}  // namespace tagwire::mlx5raw
RTE_PMD_REGISTER_VDEV(net_mlx5raw, vdev_driver);
RTE_PMD_REGISTER_PARAM_STRING(net_mlx5raw, MLX5RAW_ARG_IBDEV
                              "=<string> " MLX5RAW_ARG_PORT "=<int> " MLX5RAW_ARG_MAC
                              "=<xx:xx:xx:xx:xx:xx> " MLX5RAW_ARG_RETA_SIZE
                              "=<int> " MLX5RAW_RX_PARAMETERS " " MLX5RAW_TX_PARAMETERS);
