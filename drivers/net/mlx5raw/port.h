// SPDX-License-Identifier: BSD-3-Clause
// One ethdev port: the device, its memory, its queues and its steering.
#pragma once

#include <ethdev_driver.h>

#include <memory>
#include <string>
#include <vector>

#include "drivers/net/mlx5raw/cqe_class.h"
#include "drivers/net/mlx5raw/device.h"
#include "drivers/net/mlx5raw/flow_table.h"
#include "drivers/net/mlx5raw/hw_counters.h"
#include "drivers/net/mlx5raw/memory.h"
#include "drivers/net/mlx5raw/port_events.h"
#include "drivers/net/mlx5raw/rss.h"
#include "drivers/net/mlx5raw/rxq.h"
#include "drivers/net/mlx5raw/steering.h"
#include "drivers/net/mlx5raw/tx_mode.h"
#include "drivers/net/mlx5raw/txq.h"
#include "drivers/net/mlx5raw/vlan_filter.h"

namespace tagwire::mlx5raw {

inline constexpr uint16_t kMaxMacAddresses = 128;
inline constexpr uint16_t kMinDescriptors = 64;
inline constexpr uint16_t kMaxMtu = 9978;
// Ethernet header and two VLAN tags; the device strips the frame check sequence.
inline constexpr uint32_t kFrameOverhead = RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN;

// Counter values at the last reset; the data path never writes to them.
struct StatsBaseline {
    std::vector<RxCounters> rx;
    std::vector<TxCounters> tx;
    std::vector<uint64_t> hardware;
};

struct Port {
    explicit Port(std::unique_ptr<Device> opened, const Devargs& arguments)
        : device(std::move(opened)),
          devargs(arguments),
          memory(device->pd()),
          hw_counters(device->context()->device->ibdev_path, device->port()) {}

    std::unique_ptr<Device> device;
    Devargs devargs;
    MemoryTable memory;
    HardwareCounters hw_counters;
    RssConfig rss;
    alignas(RTE_CACHE_LINE_SIZE) CqeClassTable cqe_classes = {};
    std::vector<rte_ether_addr> multicast;
    bool isolated = false;  // rte_flow_isolate: only rte_flow rules bring packets
    Steering steering;
    VlanFilter vlan_filter;
    FlowTable flows;
    StatsBaseline baseline;
    RxTimestamp rx_timestamp;
    TxMode tx_mode;  // since the last start
    InterruptHandle rx_vectors;  // dev->intr_handle: a vector per RX queue
    PortEvents events;           // last: stopped before anything that its handler looks at
};

// dev_private holds only this: ethdev frees that memory itself, without destructors.
struct PortHandle {
    Port* port;
};

inline Port& port_of(const rte_eth_dev* dev) {
    return *static_cast<PortHandle*>(dev->data->dev_private)->port;
}
inline RxQueue* rx_queue(const rte_eth_dev* dev, uint16_t queue) {
    return static_cast<RxQueue*>(dev->data->rx_queues[queue]);
}
inline TxQueue* tx_queue(const rte_eth_dev* dev, uint16_t queue) {
    return static_cast<TxQueue*>(dev->data->tx_queues[queue]);
}

// What the port should listen to now, from the state that ethdev keeps.
Listening listening_of(const rte_eth_dev* dev);

// Builds the steering of the started port, or replaces it; none when it is isolated.
Status apply_steering(rte_eth_dev* dev);
// The same for the VLAN filter, which a promiscuous port does without.
Status apply_vlan_filter(rte_eth_dev* dev, bool promiscuous);

extern const eth_dev_ops kDevOps;

// ethdev operations, by file.
// ops_lifecycle.cc
int dev_configure(rte_eth_dev* dev);
int dev_start(rte_eth_dev* dev);
int dev_stop(rte_eth_dev* dev);
int dev_close(rte_eth_dev* dev);
int dev_reset(rte_eth_dev* dev);
// ops_queue.cc
int rx_queue_setup(rte_eth_dev* dev, uint16_t queue, uint16_t descriptors, unsigned socket,
                   const rte_eth_rxconf* config, rte_mempool* pool);
int tx_queue_setup(rte_eth_dev* dev, uint16_t queue, uint16_t descriptors, unsigned socket,
                   const rte_eth_txconf* config);
void rx_queue_release(rte_eth_dev* dev, uint16_t queue);
void tx_queue_release(rte_eth_dev* dev, uint16_t queue);
int rx_queue_start(rte_eth_dev* dev, uint16_t queue);
int rx_queue_stop(rte_eth_dev* dev, uint16_t queue);
int tx_queue_start(rte_eth_dev* dev, uint16_t queue);
int tx_queue_stop(rte_eth_dev* dev, uint16_t queue);
int tx_done_cleanup(void* queue, uint32_t count);
uint32_t rx_queue_count(void* queue);
int rx_descriptor_status(void* queue, uint16_t offset);
int tx_descriptor_status(void* queue, uint16_t offset);
// ops_info.cc
int dev_infos_get(rte_eth_dev* dev, rte_eth_dev_info* info);
// DPDK 22.11 wants the first, with RTE_PTYPE_UNKNOWN at the end of the list, 24.11 the second.
const uint32_t* supported_ptypes_get(rte_eth_dev* dev);
const uint32_t* supported_ptypes_get(rte_eth_dev* dev, size_t* count);
int fw_version_get(rte_eth_dev* dev, char* text, size_t size);
void rxq_info_get(rte_eth_dev* dev, uint16_t queue, rte_eth_rxq_info* info);
void txq_info_get(rte_eth_dev* dev, uint16_t queue, rte_eth_txq_info* info);
int rx_burst_mode_get(rte_eth_dev* dev, uint16_t queue, rte_eth_burst_mode* mode);
int tx_burst_mode_get(rte_eth_dev* dev, uint16_t queue, rte_eth_burst_mode* mode);
int link_update(rte_eth_dev* dev, int wait);  // 0: changed, -1: not
int is_removed(rte_eth_dev* dev);
int priv_dump(rte_eth_dev* dev, FILE* file);
uint64_t rx_offloads(const Capabilities& caps);
uint64_t tx_offloads(const Capabilities& caps);
// ops_filter.cc
int promiscuous_enable(rte_eth_dev* dev);
int promiscuous_disable(rte_eth_dev* dev);
int allmulticast_enable(rte_eth_dev* dev);
int allmulticast_disable(rte_eth_dev* dev);
int mac_addr_set(rte_eth_dev* dev, rte_ether_addr* address);
int mac_addr_add(rte_eth_dev* dev, rte_ether_addr* address, uint32_t index, uint32_t pool);
void mac_addr_remove(rte_eth_dev* dev, uint32_t index);
int set_mc_addr_list(rte_eth_dev* dev, rte_ether_addr* list, uint32_t count);
int mtu_set(rte_eth_dev* dev, uint16_t mtu);
// ops_rx_mode.cc
int configure_rx(rte_eth_dev* dev);
Status apply_vlan_strip(rte_eth_dev* dev);  // what the port's offloads say, to every queue
void vlan_strip_queue_set(rte_eth_dev* dev, uint16_t queue, int on);
int read_clock(rte_eth_dev* dev, uint64_t* time);
CqeClassOptions cqe_class_options(const rte_eth_dev* dev);
std::string rx_path_name(const rte_eth_dev* dev);  // of the queues
// ops_flow.cc
int flow_ops_get(rte_eth_dev* dev, const rte_flow_ops** out);
void report_flow_marks(rte_eth_dev* dev, bool on);
// ops_vlan.cc
int vlan_filter_set(rte_eth_dev* dev, uint16_t vlan, int on);
int vlan_offload_set(rte_eth_dev* dev, int mask);
// ops_interrupt.cc
Status open_rx_interrupts(rte_eth_dev* dev);
void close_rx_interrupts(rte_eth_dev* dev);
int rx_queue_intr_enable(rte_eth_dev* dev, uint16_t queue);
int rx_queue_intr_disable(rte_eth_dev* dev, uint16_t queue);
// ops_rss.cc
std::vector<ibv_wq*> work_queues(const rte_eth_dev* dev);
int configure_rss(rte_eth_dev* dev);
int reta_update(rte_eth_dev* dev, rte_eth_rss_reta_entry64* entries, uint16_t size);
int reta_query(rte_eth_dev* dev, rte_eth_rss_reta_entry64* entries, uint16_t size);
int rss_hash_update(rte_eth_dev* dev, rte_eth_rss_conf* config);
int rss_hash_conf_get(rte_eth_dev* dev, rte_eth_rss_conf* config);
// ops_stats.cc
int stats_get(rte_eth_dev* dev, rte_eth_stats* stats);
int stats_reset(rte_eth_dev* dev);
int xstats_get(rte_eth_dev* dev, rte_eth_xstat* values, unsigned count);
int xstats_get_names(rte_eth_dev* dev, rte_eth_xstat_name* names, unsigned count);

}  // namespace tagwire::mlx5raw
