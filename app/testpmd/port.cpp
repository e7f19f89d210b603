// SPDX-License-Identifier: BSD-3-Clause
#include "port.h"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

#include <algorithm>

#include "app/perf/failure.h"

namespace tagwire::testpmd {

using perf::Failure;

namespace {

void check(int result, const std::string& what, const std::string& remedy = {}) {
    if (result < 0) {
        throw Failure(fmt::format("{}: {}", what, rte_strerror(-result)), remedy);
    }
}

std::string name_of_port(uint16_t port) {
    char name[RTE_ETH_NAME_MAX_LEN] = {};
    rte_eth_dev_get_name_by_port(port, name);
    return name;
}

uint16_t largest_mtu(const Options& options, const std::vector<uint16_t>& ports) {
    uint16_t largest = std::max<uint16_t>(options.mtu, RTE_ETHER_MTU);
    for (const uint16_t port : ports) {
        uint16_t mtu = 0;
        if (options.mtu == 0 && rte_eth_dev_get_mtu(port, &mtu) == 0) {
            largest = std::max(largest, mtu);
        }
    }
    return largest;
}

// What the rings and caches can hold at once, and half as much again: unexpected messages hold
// frames, a third of the pool at most.
uint32_t mbufs_needed(const Options& options, size_t ports, uint32_t lcores) {
    const uint64_t rings = uint64_t{options.rx_queues} * options.rx_descriptors +
                           uint64_t{options.tx_queues} * options.tx_descriptors;
    const uint64_t hands = options.mbuf_cache * 3 / 2 + kMaxBurst;
    return static_cast<uint32_t>((ports * rings + (lcores + 1) * hands) * 3 / 2);
}

}  // namespace

MbufPool create_mbuf_pool(const Options& options, const std::vector<uint16_t>& ports,
                          uint32_t lcores) {
    const uint32_t count =
        options.mbufs != 0 ? options.mbufs : mbufs_needed(options, ports.size(), lcores);
    const uint32_t frame =
        RTE_PKTMBUF_HEADROOM + largest_mtu(options, ports) + RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN;
    const uint32_t size = options.mbuf_size != 0
                              ? options.mbuf_size
                              : std::max<uint32_t>(RTE_MBUF_DEFAULT_BUF_SIZE,
                                                   RTE_ALIGN_CEIL(frame, RTE_CACHE_LINE_SIZE));
    fmt::print("testpmd: create a new mbuf pool <mb_pool_0>: n={}, size={}, socket={}\n", count,
               size, rte_socket_id());
    MbufPool pool(
        rte_pktmbuf_pool_create("mb_pool_0", count, options.mbuf_cache, 0,
                                static_cast<uint16_t>(size), static_cast<int>(rte_socket_id())),
        &rte_mempool_free);
    if (!pool) {
        throw Failure(
            fmt::format("no memory for {} mbufs of {} B: {}", count, size, rte_strerror(rte_errno)),
            "give the EAL more with -m MEGABYTES, reserve hugepages, or ask for fewer with "
            "--total-num-mbufs");
    }
    return pool;
}

void check_queues(uint16_t port, const Options& options) {
    rte_eth_dev_info info{};
    check(rte_eth_dev_info_get(port, &info), fmt::format("port {} does not describe itself", port));
    const auto check_kind = [&](const char* kind, uint16_t wanted, uint16_t most) {
        if (wanted > most) {
            throw Failure(fmt::format("port {} ({}) has at most {} {} queues, not {}", port,
                                      name_of_port(port), most, kind, wanted),
                          fmt::format("give --rxq={0} --txq={0} at most, or the device more queues",
                                      std::min(info.max_rx_queues, info.max_tx_queues)));
        }
    };
    check_kind("RX", options.rx_queues, info.max_rx_queues);
    check_kind("TX", options.tx_queues, info.max_tx_queues);
}

Port::Port(uint16_t id, const Options& options, rte_mempool* pool)
    : id_(id), rx_descriptors_(options.rx_descriptors), tx_descriptors_(options.tx_descriptors) {
    fmt::print("Configuring Port {} (socket {})\n", id_, rte_eth_dev_socket_id(id_));
    configure(options);
    set_up_queues(options, pool);
}

void Port::configure(const Options& options) {
    rte_eth_dev_info info{};
    check(rte_eth_dev_info_get(id_, &info), fmt::format("port {} does not describe itself", id_));
    conf_.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    if (options.rss && options.rx_queues > 1) {
        conf_.rx_adv_conf.rss_conf.rss_hf = options.rss_types & info.flow_type_rss_offloads;
        conf_.rxmode.mq_mode =
            conf_.rx_adv_conf.rss_conf.rss_hf != 0 ? RTE_ETH_MQ_RX_RSS : RTE_ETH_MQ_RX_NONE;
    }
    if (options.mtu != 0) {
        conf_.rxmode.mtu = options.mtu;
    }
    check(rte_eth_dev_configure(id_, options.rx_queues, options.tx_queues, &conf_),
          fmt::format("Fail to configure port {} ({})", id_, name_of_port(id_)),
          fmt::format("MTU between {} and {}", info.min_mtu, info.max_mtu));
    if (options.mtu != 0) {
        check(rte_eth_dev_set_mtu(id_, options.mtu),
              fmt::format("port {} refuses MTU {}", id_, options.mtu),
              fmt::format("--max-pkt-len takes {} to {}", info.min_mtu + 18, info.max_mtu + 18));
    }
    check(rte_eth_dev_get_mtu(id_, &mtu_), fmt::format("port {} has no MTU", id_));
    check(rte_eth_macaddr_get(id_, &mac_), fmt::format("port {} has no MAC address", id_));
}

void Port::set_up_queues(const Options& options, rte_mempool* pool) {
    check(rte_eth_dev_adjust_nb_rx_tx_desc(id_, &rx_descriptors_, &tx_descriptors_),
          fmt::format("port {} has no usable ring size", id_));
    const auto socket = static_cast<unsigned>(std::max(0, rte_eth_dev_socket_id(id_)));
    for (uint16_t queue = 0; queue < options.tx_queues; ++queue) {
        check(rte_eth_tx_queue_setup(id_, queue, tx_descriptors_, socket, nullptr),
              fmt::format("Fail to configure port {} TX queue {}", id_, queue));
    }
    for (uint16_t queue = 0; queue < options.rx_queues; ++queue) {
        check(rte_eth_rx_queue_setup(id_, queue, rx_descriptors_, socket, nullptr, pool),
              fmt::format("Fail to configure port {} RX queue {}", id_, queue));
    }
}

void Port::start() {
    check(rte_eth_dev_start(id_), fmt::format("Fail to start port {}", id_));
    started_ = true;
    rte_eth_macaddr_get(id_, &mac_);
    char mac[RTE_ETHER_ADDR_FMT_SIZE] = {};
    rte_ether_format_addr(mac, sizeof(mac), &mac_);
    fmt::print("Port {}: {}\n", id_, mac);
    if (const int error = rte_eth_promiscuous_enable(id_); error != 0) {
        fmt::print(stderr, "Error during enabling promiscuous mode for port {}: {} - ignore\n", id_,
                   rte_strerror(-error));
    }
}

void Port::stop() {
    if (started_) {
        check(rte_eth_dev_stop(id_), fmt::format("rte_eth_dev_stop failed for port {}", id_));
        started_ = false;
    }
}

void Port::close() {
    rte_eth_dev_close(id_);
}

bool Port::link_is_up() const {
    rte_eth_link link{};
    return rte_eth_link_get_nowait(id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

rte_eth_stats Port::statistics() const {
    rte_eth_stats now{};
    if (rte_eth_stats_get(id_, &now) == 0) {
        now.ipackets -= noted_.ipackets;
        now.opackets -= noted_.opackets;
        now.imissed -= noted_.imissed;
        now.ierrors -= noted_.ierrors;
        now.oerrors -= noted_.oerrors;
        now.rx_nombuf -= noted_.rx_nombuf;
    }
    return now;
}

void Port::note_statistics() {
    noted_ = {};
    rte_eth_stats_get(id_, &noted_);
}

}  // namespace tagwire::testpmd
