// SPDX-License-Identifier: BSD-3-Clause
// Two ports of net_mlx5raw in one process, back to back on softcx. Nothing runs the
// device but the test itself, so each test is deterministic. The same tests run on two ports
// of a real card: see test/hw.
#pragma once

#include <gtest/gtest.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tagwire::mlx5raw {

// For a test that makes the device fail, or looks into it.
#define NEEDS_SOFTCX()                                                                \
    if (!tagwire::mlx5raw::on_softcx()) {                                             \
        GTEST_SKIP() << "a real card does not fail on demand; softcx runs this test"; \
    }                                                                                 \
    static_assert(true, "wants a semicolon")
bool on_softcx();
// RDMA devices whose ports are connected: mlx5_0 and mlx5_1, or TAGWIRE_HW_DEVICES.
std::string rdma_device(unsigned index);

using Frame = std::vector<uint8_t>;

// Files of this process, but for epoll's: EAL's interrupt thread closes and reopens its own.
unsigned open_descriptors();

struct PortOptions {
    std::string devargs;  // in addition to ibdev
    uint16_t queues = 2;
    uint16_t descriptors = 256;
    uint16_t tx_descriptors = 0;  // zero: as many
    uint16_t mtu = RTE_ETHER_MTU;
    uint64_t rss_types = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP;
    uint64_t rx_offloads = RTE_ETH_RX_OFFLOAD_CHECKSUM | RTE_ETH_RX_OFFLOAD_RSS_HASH;
    uint64_t tx_offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM |
                           RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
    rte_eth_intr_conf interrupts = {};
    bool start = true;
};

// A received frame and what the driver said about it.
struct Received {
    Frame bytes;
    uint16_t queue = 0;
    uint16_t segments = 0;
    uint64_t flags = 0;
    uint32_t packet_type = 0;
    uint32_t hash = 0;
    uint32_t mark = 0;  // with RTE_MBUF_F_RX_FDIR_ID
};

class PortPair : public testing::Test {
  protected:
    static constexpr uint32_t kPoolSize = 8191;

    void SetUp() override;
    // Closes what open() opened, and checks that every mbuf is back.
    void TearDown() override;

    void open(const PortOptions& options = {});
    void close();
    void configure(uint16_t port, const PortOptions& options);
    static std::string name_of(unsigned index) { return "net_mlx5raw" + std::to_string(index); }

    // An mbuf with the frame in it, cut where `cuts` says (offsets, ascending).
    rte_mbuf* make_mbuf(const Frame& frame, const std::vector<size_t>& cuts = {});
    void send(uint16_t port, uint16_t queue, const std::vector<rte_mbuf*>& packets);
    void send(uint16_t port, uint16_t queue, const Frame& frame) {
        send(port, queue, {make_mbuf(frame)});
    }

    // Runs both devices until nothing moves.
    static void settle();
    // Everything that has arrived on any queue of the port.
    std::vector<Received> receive(uint16_t port);
    // send, settle, receive on the other port.
    std::vector<Received> exchange(const Frame& frame, const std::vector<size_t>& cuts = {});

    rte_ether_addr mac_of(uint16_t port) const;
    rte_eth_stats stats_of(uint16_t port) const;
    std::map<std::string, uint64_t> xstats_of(uint16_t port) const;

    // To port 1, from port 0.
    Frame ethernet_frame(size_t size, uint16_t ether_type = 0x88b5) const;
    Frame ethernet_frame_to(const rte_ether_addr& destination, size_t size) const;

    static rte_mempool* pool;
    uint16_t ports[2] = {RTE_MAX_ETHPORTS, RTE_MAX_ETHPORTS};
    unsigned opened = 0;
    unsigned pool_before = 0;
};

// One test of this program in a process of its own, with the environment as it is now;
// returns its exit code.
int run_alone(const std::string& test);

// The frame with an 802.1Q tag.
Frame vlan_frame(const Frame& frame, uint16_t tci);

// Ethernet, IPv4 or IPv6, UDP or TCP; addresses in network order. Checksums are right
// unless `broken`.
struct FlowAddresses {
    std::vector<uint8_t> source, destination;  // 4 or 16 bytes
    uint16_t source_port = 0, destination_port = 0;
};
enum class Broken { kNothing, kIp, kL4 };
Frame ip_frame(const rte_ether_addr& to, const FlowAddresses& flow, uint8_t protocol,
               size_t payload, Broken broken = Broken::kNothing);

}  // namespace tagwire::mlx5raw
