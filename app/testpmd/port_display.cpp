// SPDX-License-Identifier: BSD-3-Clause
#include "port_display.h"

#include <fmt/format.h>
#include <rte_ethdev.h>

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "app/perf/failure.h"

namespace tagwire::testpmd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kRssLine = 65;  // characters of a line of RSS types

std::string mac_of(uint16_t port) {
    rte_ether_addr mac{};
    char text[RTE_ETHER_ADDR_FMT_SIZE] = "unknown";
    if (rte_eth_macaddr_get(port, &mac) == 0) {
        rte_ether_format_addr(text, sizeof(text), &mac);
    }
    return text;
}

std::string name_of_port(uint16_t port) {
    char name[RTE_ETH_NAME_MAX_LEN] = "unknown";
    rte_eth_dev_get_name_by_port(port, name);
    return name;
}

rte_eth_dev_info describe(uint16_t port) {
    rte_eth_dev_info info{};
    if (const int error = rte_eth_dev_info_get(port, &info); error != 0) {
        throw perf::Failure(fmt::format("Error during getting device (port {}) info: {}", port,
                                        rte_strerror(-error)));
    }
    return info;
}

const char* rss_name(uint64_t type) {
    static const std::map<uint64_t, const char*> names = {
        {RTE_ETH_RSS_IPV4, "ipv4"},
        {RTE_ETH_RSS_FRAG_IPV4, "ipv4-frag"},
        {RTE_ETH_RSS_NONFRAG_IPV4_TCP, "ipv4-tcp"},
        {RTE_ETH_RSS_NONFRAG_IPV4_UDP, "ipv4-udp"},
        {RTE_ETH_RSS_NONFRAG_IPV4_SCTP, "ipv4-sctp"},
        {RTE_ETH_RSS_NONFRAG_IPV4_OTHER, "ipv4-other"},
        {RTE_ETH_RSS_IPV6, "ipv6"},
        {RTE_ETH_RSS_FRAG_IPV6, "ipv6-frag"},
        {RTE_ETH_RSS_NONFRAG_IPV6_TCP, "ipv6-tcp"},
        {RTE_ETH_RSS_NONFRAG_IPV6_UDP, "ipv6-udp"},
        {RTE_ETH_RSS_NONFRAG_IPV6_SCTP, "ipv6-sctp"},
        {RTE_ETH_RSS_NONFRAG_IPV6_OTHER, "ipv6-other"},
        {RTE_ETH_RSS_L2_PAYLOAD, "l2-payload"},
        {RTE_ETH_RSS_IPV6_EX, "ipv6-ex"},
        {RTE_ETH_RSS_IPV6_TCP_EX, "ipv6-tcp-ex"},
        {RTE_ETH_RSS_IPV6_UDP_EX, "ipv6-udp-ex"},
        {RTE_ETH_RSS_L3_SRC_ONLY, "l3-src-only"},
        {RTE_ETH_RSS_L3_DST_ONLY, "l3-dst-only"},
        {RTE_ETH_RSS_L4_SRC_ONLY, "l4-src-only"},
        {RTE_ETH_RSS_L4_DST_ONLY, "l4-dst-only"},
    };
    const auto found = names.find(type);
    return found == names.end() ? nullptr : found->second;
}

void print_rss_types(uint64_t types) {
    if (types == 0) {
        fmt::print("No RSS offload flow type is supported.\n");
        return;
    }
    fmt::print("Supported RSS offload flow types:\n");
    std::string line;
    for (unsigned bit = 0; bit < 64; ++bit) {
        const uint64_t type = types & (uint64_t{1} << bit);
        if (type == 0) {
            continue;
        }
        const char* name = rss_name(type);
        const std::string text =
            name != nullptr ? fmt::format("  {}", name) : fmt::format("  user-defined-{}", bit);
        if (line.size() + text.size() > kRssLine) {
            fmt::print("{}\n", line);
            line.clear();
        }
        line += text;
    }
    fmt::print("{}\n", line);
}

// What the driver does not tell is nullopt.
std::optional<rte_eth_link> link_of(uint16_t port) {
    rte_eth_link link{};
    return rte_eth_link_get_nowait(port, &link) == 0 ? std::optional(link) : std::nullopt;
}

void print_link(uint16_t port) {
    const std::optional<rte_eth_link> link = link_of(port);
    if (!link) {
        fmt::print("Link status: unknown\n");
        return;
    }
    fmt::print("Link status: {}\nLink speed: {}\nLink duplex: {}\nAutoneg status: {}\n",
               link->link_status != 0 ? "up" : "down", rte_eth_link_speed_to_str(link->link_speed),
               link->link_duplex != 0 ? "full-duplex" : "half-duplex",
               link->link_autoneg != 0 ? "On" : "Off");
}

void print_limits(const rte_eth_dev_info& info) {
    if (info.hash_key_size > 0) {
        fmt::print("Hash key size in bytes: {}\n", info.hash_key_size);
    }
    if (info.reta_size > 0) {
        fmt::print("Redirection table size: {}\n", info.reta_size);
    }
    print_rss_types(info.flow_type_rss_offloads);
    fmt::print("Minimum size of RX buffer: {}\n", info.min_rx_bufsize);
    fmt::print("Maximum configurable length of RX packet: {}\n", info.max_rx_pktlen);
    fmt::print("Current number of RX queues: {}\nMax possible RX queues: {}\n", info.nb_rx_queues,
               info.max_rx_queues);
    fmt::print(
        "Max possible number of RXDs per queue: {}\nMin possible number of RXDs per queue: {}\n"
        "RXDs number alignment: {}\n",
        info.rx_desc_lim.nb_max, info.rx_desc_lim.nb_min, info.rx_desc_lim.nb_align);
    fmt::print("Current number of TX queues: {}\nMax possible TX queues: {}\n", info.nb_tx_queues,
               info.max_tx_queues);
    fmt::print(
        "Max possible number of TXDs per queue: {}\nMin possible number of TXDs per queue: {}\n"
        "TXDs number alignment: {}\n",
        info.tx_desc_lim.nb_max, info.tx_desc_lim.nb_min, info.tx_desc_lim.nb_align);
    fmt::print("Max segment number per packet: {}\nMax segment number per MTU/TSO: {}\n",
               info.tx_desc_lim.nb_seg_max, info.tx_desc_lim.nb_mtu_seg_max);
}

// Rates are those since the last time.
struct Shown {
    rte_eth_stats stats{};
    Clock::time_point at{};
};

uint64_t rate(uint64_t now, uint64_t before, double seconds) {
    return now > before && seconds > 0
               ? static_cast<uint64_t>(static_cast<double>(now - before) / seconds)
               : 0;
}

}  // namespace

void show_port_info(uint16_t port) {
    const rte_eth_dev_info info = describe(port);
    fmt::print("\n********************* Infos for port {:<2} *********************\n", port);
    fmt::print("MAC address: {}\nDevice name: {}\nDriver name: {}\n", mac_of(port),
               name_of_port(port), info.driver_name);
    char firmware[64] = "not available";
    if (rte_eth_dev_fw_version_get(port, firmware, sizeof(firmware)) != 0) {
        fmt::format_to_n(firmware, sizeof(firmware), "not available{}", '\0');
    }
    fmt::print("Firmware-version: {}\n", firmware);
    const rte_devargs* devargs = rte_dev_devargs(info.device);
    if (devargs != nullptr && devargs->args != nullptr) {
        fmt::print("Devargs: {}\n", devargs->args);
    }
    fmt::print("Connect to socket: {}\n", rte_eth_dev_socket_id(port));
    print_link(port);
    uint16_t mtu = 0;
    if (rte_eth_dev_get_mtu(port, &mtu) == 0) {
        fmt::print("MTU: {}\n", mtu);
    }
    fmt::print("Promiscuous mode: {}\n",
               rte_eth_promiscuous_get(port) != 0 ? "enabled" : "disabled");
    fmt::print("Allmulticast mode: {}\n",
               rte_eth_allmulticast_get(port) != 0 ? "enabled" : "disabled");
    fmt::print("Maximum number of MAC addresses: {}\n", info.max_mac_addrs);
    print_limits(info);
}

void show_port_stats(uint16_t port) {
    static std::map<uint16_t, Shown> shown;
    rte_eth_stats stats{};
    if (const int error = rte_eth_stats_get(port, &stats); error != 0) {
        throw perf::Failure(
            fmt::format("failed to get stats (port {}): {}", port, rte_strerror(-error)));
    }
    constexpr const char* kBorder = "########################";
    fmt::print("\n  {} NIC statistics for port {:<2} {}\n", kBorder, port, kBorder);
    fmt::print("  RX-packets: {:<10} RX-missed: {:<10} RX-bytes:  {}\n", stats.ipackets,
               stats.imissed, stats.ibytes);
    fmt::print("  RX-errors: {}\n", stats.ierrors);
    fmt::print("  RX-nombuf:  {:<10}\n", stats.rx_nombuf);
    fmt::print("  TX-packets: {:<10} TX-errors: {:<10} TX-bytes:  {}\n", stats.opackets,
               stats.oerrors, stats.obytes);
    Shown& before = shown[port];
    const Clock::time_point now = Clock::now();
    const double seconds = before.at == Clock::time_point{}
                               ? 0
                               : std::chrono::duration<double>(now - before.at).count();
    fmt::print("\n  Throughput (since last show)\n");
    fmt::print("  Rx-pps: {:>12}          Rx-bps: {:>12}\n",
               rate(stats.ipackets, before.stats.ipackets, seconds),
               8 * rate(stats.ibytes, before.stats.ibytes, seconds));
    fmt::print("  Tx-pps: {:>12}          Tx-bps: {:>12}\n",
               rate(stats.opackets, before.stats.opackets, seconds),
               8 * rate(stats.obytes, before.stats.obytes, seconds));
    fmt::print("  {}############################{}\n", kBorder, kBorder);
    before = {stats, now};
}

void show_port_xstats(uint16_t port) {
    fmt::print("###### NIC extended statistics for port {:<2}\n", port);
    const int count = rte_eth_xstats_get_names(port, nullptr, 0);
    if (count < 0) {
        throw perf::Failure("Cannot get count of xstats");
    }
    std::vector<rte_eth_xstat_name> names(static_cast<size_t>(count));
    std::vector<rte_eth_xstat> values(static_cast<size_t>(count));
    if (rte_eth_xstats_get_names(port, names.data(), static_cast<unsigned>(count)) != count ||
        rte_eth_xstats_get(port, values.data(), static_cast<unsigned>(count)) != count) {
        throw perf::Failure("Unable to get xstats");
    }
    for (const rte_eth_xstat& value : values) {
        fmt::print("{}: {}\n", names.at(value.id).name, value.value);
    }
}

void show_port_summary_header() {
    fmt::print("Number of available ports: {}\n", rte_eth_dev_count_avail());
    fmt::print("{:<4} {:<17} {:<12} {:<14} {:<8} {}\n", "Port", "MAC Address", "Name", "Driver",
               "Status", "Link");
}

void show_port_summary(uint16_t port) {
    const rte_eth_dev_info info = describe(port);
    const std::optional<rte_eth_link> link = link_of(port);
    fmt::print("{:<4} {} {:<12} {:<14} {:<8} {}\n", port, mac_of(port), name_of_port(port),
               info.driver_name,
               !link                    ? "unknown"
               : link->link_status != 0 ? "up"
                                        : "down",
               rte_eth_link_speed_to_str(link ? link->link_speed : RTE_ETH_SPEED_NUM_UNKNOWN));
}

}  // namespace tagwire::testpmd
