// SPDX-License-Identifier: BSD-3-Clause
#include "lib/port/port.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <unistd.h>

#include <algorithm>

#include "lib/port/failure.h"

namespace tagwire::port {
namespace {

constexpr uint16_t kRxDescriptors = 1024;
constexpr uint16_t kTxDescriptors = 1024;
// Frames that the runtime holds on to while it works on them.
constexpr uint32_t kFramesInHand = 1024;
constexpr uint32_t kPoolCache = 256;
constexpr int kLinkWaitMs = 5000;

void check(int result, const char* what, const std::string& remedy = {}) {
    if (result < 0) {
        throw Failure(fmt::format("{}: {}", what, rte_strerror(-result)), remedy);
    }
}

std::string list_ports() {
    std::string list;
    uint16_t port_id = 0;
    RTE_ETH_FOREACH_DEV(port_id) {
        char name[RTE_ETH_NAME_MAX_LEN] = {};
        rte_eth_dev_get_name_by_port(port_id, name);
        list += fmt::format("{}{} {}", list.empty() ? "" : ", ", port_id, name);
    }
    return list;
}

std::string megabytes(uint64_t bytes) {
    return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string softcx_description() {
    using Describe = const char* (*)();
    const auto describe = reinterpret_cast<Describe>(dlsym(RTLD_DEFAULT, "softcx_describe"));
    return describe != nullptr ? describe() : std::string{};
}

std::string ibdev_of(const std::string& devargs) {
    const std::string key = "ibdev=";
    const size_t start = devargs.find(key);
    if (start == std::string::npos) {
        return {};
    }
    return devargs.substr(start + key.size(), devargs.find(',', start) - start - key.size());
}

}  // namespace

Port::Port(uint16_t port_id, const PortOptions& options)
    : port_id_(port_id), rx_pool_(nullptr, &rte_mempool_free) {
    if (rte_eth_dev_count_avail() == 0) {
        throw Failure("no port: DPDK found no Ethernet device",
                      "give one with EAL arguments before '--', as in --vdev "
                      "net_mlx5raw0,ibdev=mlx5_0; without a card, start under softcx-run");
    }
    if (!rte_eth_dev_is_valid_port(port_id)) {
        throw Failure(fmt::format("there is no port {}", port_id),
                      "--port takes one of: " + list_ports());
    }
    configure(options.mtu);
    set_up_queues(options.held_frames);
    start();
    describe();
}

Port::~Port() {
    if (started_) {
        rte_eth_dev_stop(port_id_);
    }
    rte_eth_dev_close(port_id_);
}

void Port::configure(uint16_t wanted_mtu) {
    rte_eth_conf conf{};
    conf.txmode.offloads = 0;
    rte_eth_dev_info info{};
    check(rte_eth_dev_info_get(port_id_, &info), "the port does not describe itself");
    conf.txmode.offloads |= info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    if (wanted_mtu != 0) {
        conf.rxmode.mtu = wanted_mtu;
    }
    check(rte_eth_dev_configure(port_id_, 1, 1, &conf), "the port refuses its configuration",
          fmt::format("MTU between {} and {}", info.min_mtu, info.max_mtu));
    if (wanted_mtu != 0) {
        check(rte_eth_dev_set_mtu(port_id_, wanted_mtu), "the port refuses the MTU",
              fmt::format("it takes {} to {}, asked for is {}", info.min_mtu, info.max_mtu,
                          wanted_mtu));
    }
    check(rte_eth_dev_get_mtu(port_id_, &mtu_), "the port has no MTU");
    check(rte_eth_macaddr_get(port_id_, &mac_), "the port has no MAC address");
}

void Port::set_up_queues(uint32_t held_frames) {
    uint16_t rx = kRxDescriptors;
    uint16_t tx = kTxDescriptors;
    check(rte_eth_dev_adjust_nb_rx_tx_desc(port_id_, &rx, &tx), "no usable ring size");

    const uint32_t frames = rx + kFramesInHand + 2 * kPoolCache + held_frames;
    const uint32_t room = RTE_ALIGN_CEIL(
        std::max<uint32_t>(RTE_MBUF_DEFAULT_DATAROOM, mtu_ + RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN),
        RTE_CACHE_LINE_SIZE);
    const auto data_room = static_cast<uint16_t>(room + RTE_PKTMBUF_HEADROOM);
    const int socket = rte_eth_dev_socket_id(port_id_);
    const std::string name = fmt::format("tagwire_rx_{}", port_id_);
    rx_pool_.reset(rte_pktmbuf_pool_create(name.c_str(), frames, kPoolCache, 0, data_room, socket));
    if (!rx_pool_) {
        throw Failure(
            fmt::format("no memory for {} receive frames: {}", frames, rte_strerror(rte_errno)),
            "give the EAL more with -m MEGABYTES, or reserve hugepages");
    }
    sizes_ = {
        fmt::format("rings: {} RX and {} TX descriptors, one queue each", rx, tx),
        fmt::format(
            "receive pool: {} frames of {} B = {}", frames, data_room,
            megabytes(uint64_t{frames} *
                      rte_mempool_calc_obj_size(rx_pool_->elt_size, rx_pool_->flags, nullptr))),
    };
    check(rte_eth_rx_queue_setup(port_id_, 0, rx, socket, nullptr, rx_pool_.get()),
          "the port refuses its RX queue");
    check(rte_eth_tx_queue_setup(port_id_, 0, tx, socket, nullptr),
          "the port refuses its TX queue");
}

void Port::start() {
    check(rte_eth_dev_start(port_id_), "the port does not start");
    started_ = true;
    rte_eth_link link{};
    for (int waited = 0; waited < kLinkWaitMs; waited += 10) {
        // A polled device is one that runs: softcx lets this thread step it from now on.
        rte_mbuf* early[1];
        if (rte_eth_rx_burst(port_id_, 0, early, 1) == 1) {
            rte_pktmbuf_free(early[0]);
        }
        check(rte_eth_link_get_nowait(port_id_, &link), "the port does not tell its link");
        if (link.link_status == RTE_ETH_LINK_UP) {
            path_.link = link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN
                             ? "up"
                             : fmt::format("up, {} Gbit/s", link.link_speed / 1000.0);
            return;
        }
        usleep(10000);
    }
    throw Failure(fmt::format("the link of port {} is down", port_id_),
                  "check the cable, or the other end (memif and switch ports need their peer)");
}

void Port::describe() {
    rte_eth_dev_info info{};
    check(rte_eth_dev_info_get(port_id_, &info), "the port does not describe itself");
    char name[RTE_ETH_NAME_MAX_LEN] = {};
    rte_eth_dev_get_name_by_port(port_id_, name);
    char mac[RTE_ETHER_ADDR_FMT_SIZE] = {};
    rte_ether_format_addr(mac, sizeof(mac), &mac_);

    const std::string softcx = softcx_description();
    const rte_devargs* devargs = rte_dev_devargs(info.device);
    const std::string ibdev =
        devargs != nullptr && devargs->args != nullptr ? ibdev_of(devargs->args) : "";
    path_.driver = info.driver_name;
    path_.port = name;
    path_.device = ibdev.empty() ? name : ibdev;
    if (!ibdev.empty()) {
        path_.device += softcx.empty() ? " (RDMA device)" : " (software device)";
    }
    path_.wire = ibdev.empty() || softcx.empty() ? "the port's own" : softcx;
    path_.memory = rte_eal_has_hugepages() != 0 ? "hugepages" : "no hugepages (--no-huge)";
    path_.mac = mac;
    path_.mtu = mtu_;
}

}  // namespace tagwire::port
