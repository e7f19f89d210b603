// SPDX-License-Identifier: BSD-3-Clause
// Two ports of a DPDK driver on two softcx devices back to back, for callgrind: it
// collects only while a burst function of the driver runs, and the model is stepped
// outside of that. Each phase is a dump of its own, named by its description.
//   driver_instructions [EAL OPTIONS] -- PORT PORT [fast-free] [checksums]
// (scripts/bench-driver.sh starts it and reads the dumps.)
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>
#include <valgrind/callgrind.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "drivers/softcx/softcx.h"

namespace {

constexpr uint16_t kBurst = 32;
constexpr uint16_t kDescriptors = 512;
constexpr unsigned kPoolSize = 8191;
constexpr unsigned kPoolCache = 256;
constexpr uint32_t kWarmUp = 256, kMeasured = 1024;  // bursts: rings wrap several times

[[noreturn]] void fail(const std::string& message) {
    std::fprintf(stderr, "driver_instructions: %s\n", message.c_str());
    std::exit(1);
}

using Burst = std::array<rte_mbuf*, kBurst>;

struct Options {
    bool fast_free = false;
    bool checksums = false;  // validated by the receiver, computed by the sender
};

constexpr uint64_t kReceiveOffloads =
    RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
constexpr uint64_t kSendOffloads =
    RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
constexpr uint64_t kSendFlags =
    RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_UDP_CKSUM;
constexpr uint64_t kGoodFlags = RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;

// The calls that are measured. What the compiler inlines here belongs to the program's
// object and is left out by the script.
uint16_t receive(uint16_t port, rte_mbuf** room, uint16_t count) {
    CALLGRIND_TOGGLE_COLLECT;
    const uint16_t received = rte_eth_rx_burst(port, 0, room, count);
    CALLGRIND_TOGGLE_COLLECT;
    return received;
}

uint16_t send(uint16_t port, rte_mbuf** packets, uint16_t count) {
    CALLGRIND_TOGGLE_COLLECT;
    const uint16_t sent = rte_eth_tx_burst(port, 0, packets, count);
    CALLGRIND_TOGGLE_COLLECT;
    return sent;
}

// Everything that is on the way arrives.
void run_device() {
    while (softcx_step() != 0) {
    }
}

class Traffic {
  public:
    Traffic(rte_mempool* pool, uint16_t sender, uint16_t receiver, uint16_t length, bool checksums)
        : pool_(pool),
          sender_(sender),
          receiver_(receiver),
          length_(length),
          checksums_(checksums) {}

    void make(Burst& burst) {
        if (rte_pktmbuf_alloc_bulk(pool_, burst.data(), kBurst) != 0)
            fail("the mempool is empty");
        for (rte_mbuf* packet : burst) {
            write_headers(rte_pktmbuf_append(packet, length_));
            want_checksums(packet);
        }
    }

    void transmit_unmeasured(Burst& burst) {
        if (rte_eth_tx_burst(sender_, 0, burst.data(), kBurst) != kBurst)
            fail("the send queue is full");
        run_device();
    }

    void transmit_measured(Burst& burst) {
        ++calls_;
        if (send(sender_, burst.data(), kBurst) != kBurst)
            fail("the send queue is full");
        run_device();
    }

    void take_measured(Burst& burst) {
        for (uint16_t taken = 0; taken < kBurst;) {
            const uint16_t got = receive(receiver_, &burst[taken], kBurst - taken);
            if (got == 0)
                fail("frames are missing");
            ++calls_;
            taken += got;
        }
    }

    void take_unmeasured() {
        Burst burst;
        for (uint16_t taken = 0; taken < kBurst;) {
            const uint16_t got = rte_eth_rx_burst(receiver_, 0, burst.data(), kBurst);
            if (got == 0)
                fail("frames are missing");
            rte_pktmbuf_free_bulk(burst.data(), got);
            taken += got;
        }
    }

    // One burst through the phase.
    void rx(Burst& burst) {
        make(burst);
        transmit_unmeasured(burst);
        take_measured(burst);
        check(burst);
        rte_pktmbuf_free_bulk(burst.data(), kBurst);
    }

    void tx(Burst& burst) {
        make(burst);
        transmit_measured(burst);
        take_unmeasured();
    }

    // The same 32 frames go round: what the receiver took the sender sends, as testpmd's io
    // mode does.
    void io(Burst& burst) {
        take_measured(burst);
        check(burst);
        for (rte_mbuf* packet : burst)
            want_checksums(packet);
        transmit_measured(burst);
    }

    uint32_t take_calls() { return std::exchange(calls_, 0); }

  private:
    // UDP over IPv4, to nobody's address: the receiver is promiscuous, as testpmd's ports are.
    // The card computes the checksums, or nobody does.
    void write_headers(char* data) const {
        constexpr unsigned char kEthernet[14] = {2, 0, 0, 0, 0, 0x99, 2, 0, 0, 0, 0, 0x98, 8, 0};
        std::memcpy(data, kEthernet, sizeof(kEthernet));
        rte_ipv4_hdr ip = {};
        ip.version_ihl = 0x45;
        ip.total_length = rte_cpu_to_be_16(static_cast<uint16_t>(length_ - sizeof(kEthernet)));
        ip.time_to_live = 64;
        ip.next_proto_id = IPPROTO_UDP;
        ip.src_addr = RTE_BE32(RTE_IPV4(10, 0, 0, 1));
        ip.dst_addr = RTE_BE32(RTE_IPV4(10, 0, 0, 2));
        std::memcpy(data + sizeof(kEthernet), &ip, sizeof(ip));
        rte_udp_hdr udp = {};
        udp.src_port = udp.dst_port = RTE_BE16(4791);
        udp.dgram_len =
            rte_cpu_to_be_16(static_cast<uint16_t>(length_ - sizeof(kEthernet) - sizeof(ip)));
        std::memcpy(data + sizeof(kEthernet) + sizeof(ip), &udp, sizeof(udp));
    }

    void want_checksums(rte_mbuf* packet) const {
        if (!checksums_)
            return;
        packet->ol_flags |= kSendFlags;
        packet->l2_len = sizeof(rte_ether_hdr);
        packet->l3_len = sizeof(rte_ipv4_hdr);
    }

    void check(const Burst& burst) const {
        for (const rte_mbuf* packet : burst) {
            if (packet->pkt_len != length_)
                fail("a frame has the wrong length");
            if (checksums_ && (packet->ol_flags & kGoodFlags) != kGoodFlags)
                fail("a frame's checksums are not called good");
        }
    }

    rte_mempool* pool_;
    uint16_t sender_, receiver_, length_;
    bool checksums_;
    uint32_t calls_ = 0;
};

void measure(Traffic& traffic, const char* name, uint16_t length, void (Traffic::*step)(Burst&)) {
    Burst burst;
    for (uint32_t i = 0; i < kWarmUp; ++i)
        (traffic.*step)(burst);
    traffic.take_calls();
    CALLGRIND_ZERO_STATS;
    for (uint32_t i = 0; i < kMeasured; ++i)
        (traffic.*step)(burst);
    // "row frame-size packets calls"
    const std::string row = std::string(name) + " " + std::to_string(length) + " " +
                            std::to_string(kMeasured * kBurst) + " " +
                            std::to_string(traffic.take_calls());
    CALLGRIND_DUMP_STATS_AT(row.c_str());
    std::printf("%s\n", row.c_str());
}

void run_phases(rte_mempool* pool, uint16_t sender, uint16_t receiver, bool checksums) {
    for (const uint16_t length : {uint16_t{64}, uint16_t{1500}}) {
        Traffic traffic(pool, sender, receiver, length, checksums);
        measure(traffic, "rx", length, &Traffic::rx);
        measure(traffic, "tx", length, &Traffic::tx);
        Burst burst;
        traffic.make(burst);
        traffic.transmit_unmeasured(burst);
        measure(traffic, "io", length, &Traffic::io);
        traffic.take_unmeasured();
    }
}

void need(const rte_eth_dev_info& info, uint64_t capabilities, uint64_t offloads) {
    if ((offloads & ~capabilities) != 0)
        fail(std::string(info.driver_name) + " lacks an offload that is to be measured");
}

uint16_t start_port(const char* name, rte_mempool* pool, const Options& options) {
    uint16_t port;
    if (rte_eth_dev_get_port_by_name(name, &port) != 0)
        fail(std::string("no port ") + name);
    rte_eth_dev_info info;
    if (rte_eth_dev_info_get(port, &info) != 0)
        fail(std::string("port ") + name + " does not describe itself");
    rte_eth_conf configuration = {};
    if (options.fast_free)
        configuration.txmode.offloads |= RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
    if (options.checksums) {
        configuration.txmode.offloads |= kSendOffloads;
        configuration.rxmode.offloads |= kReceiveOffloads;
    }
    need(info, info.tx_offload_capa, configuration.txmode.offloads);
    need(info, info.rx_offload_capa, configuration.rxmode.offloads);
    rte_eth_rxconf rx = info.default_rxconf;
    rx.offloads = configuration.rxmode.offloads;
    rte_eth_txconf tx = info.default_txconf;
    tx.offloads = configuration.txmode.offloads;
    if (rte_eth_dev_configure(port, 1, 1, &configuration) != 0 ||
        rte_eth_rx_queue_setup(port, 0, kDescriptors, SOCKET_ID_ANY, &rx, pool) != 0 ||
        rte_eth_tx_queue_setup(port, 0, kDescriptors, SOCKET_ID_ANY, &tx) != 0 ||
        rte_eth_promiscuous_enable(port) != 0 || rte_eth_dev_start(port) != 0)
        fail(std::string("port ") + name + " does not start");
    rte_eth_burst_mode rx_mode = {}, tx_mode = {};
    rte_eth_rx_burst_mode_get(port, 0, &rx_mode);
    rte_eth_tx_burst_mode_get(port, 0, &tx_mode);
    std::fprintf(stderr, "driver_instructions: port %s: %s, rx path %s, tx path %s\n", name,
                 info.driver_name, rx_mode.info, tx_mode.info);
    return port;
}

}  // namespace

int main(int argc, char** argv) {
    const int used = rte_eal_init(argc, argv);
    if (used < 0)
        fail("EAL does not start");
    argc -= used;
    argv += used;
    Options options;
    bool understood = argc >= 3;
    for (int i = 3; i < argc; ++i) {
        const std::string_view word = argv[i];
        options.fast_free = options.fast_free || word == "fast-free";
        options.checksums = options.checksums || word == "checksums";
        understood = understood && (word == "fast-free" || word == "checksums");
    }
    if (!understood)
        fail("usage: driver_instructions [EAL OPTIONS] -- PORT PORT [fast-free] [checksums]");
    rte_mempool* pool = rte_pktmbuf_pool_create("packets", kPoolSize, kPoolCache, 0,
                                                RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    if (pool == nullptr)
        fail("no memory for the mempool: a larger -m");
    const uint16_t sender = start_port(argv[1], pool, options);
    const uint16_t receiver = start_port(argv[2], pool, options);
    run_phases(pool, sender, receiver, options.checksums);
    for (const uint16_t port : {sender, receiver}) {
        rte_eth_dev_stop(port);
        rte_eth_dev_close(port);
    }
    if (rte_mempool_avail_count(pool) != kPoolSize)
        fail("mbufs are missing");
    rte_eal_cleanup();
    return 0;
}
