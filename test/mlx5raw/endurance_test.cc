// SPDX-License-Identifier: BSD-3-Clause
// Ports that are started, stopped, configured, plugged and unplugged many times, with
// traffic: nothing grows.
#include <rte_dev.h>
#include <rte_malloc.h>

#include <cstdlib>

#include "drivers/net/mlx5raw/port.h"
#include "drivers/softcx/softcx.h"
#include "test/mlx5raw/port_fixture.h"

namespace tagwire::mlx5raw {
namespace {

class Endurance : public PortPair {
  protected:
    struct Use {
        size_t heap = 0;  // bytes of DPDK's heap
        unsigned descriptors = 0;
        unsigned long long objects = 0;
        bool operator==(const Use&) const = default;
        friend void PrintTo(const Use& use, std::ostream* out) {
            *out << use.heap << " bytes of heap, " << use.descriptors << " descriptors, "
                 << use.objects << " device objects";
        }
    };
    static Use in_use() {
        Use use;
        rte_malloc_socket_stats stats = {};
        rte_malloc_get_socket_stats(0, &stats);
        use.heap = stats.heap_allocsz_bytes;
        use.descriptors = open_descriptors();
        use.objects =
            softcx_objects(rdma_device(0).c_str()) + softcx_objects(rdma_device(1).c_str());
        return use;
    }

    // Another shape each time: queues, ring sizes, RSS, offloads, jumbo frames.
    static PortOptions shape(unsigned cycle) {
        PortOptions options;
        options.queues = static_cast<uint16_t>(1 + cycle % 4);
        options.descriptors = static_cast<uint16_t>(64 << cycle % 3);
        if (cycle % 5 == 0) {
            options.rss_types = 0;
            options.rx_offloads = RTE_ETH_RX_OFFLOAD_CHECKSUM;
        }
        if (cycle % 3 == 0) {
            options.mtu = 4000;
            options.rx_offloads |= RTE_ETH_RX_OFFLOAD_SCATTER;
        }
        if (cycle % 2 == 0) {
            options.rx_offloads |= RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
            options.tx_offloads = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
        }
        options.interrupts.lsc = cycle % 2;
        options.interrupts.rxq = cycle % 7 == 0;
        return options;
    }
};

TEST_F(Endurance, StartsStopsAndConfigurationsWithTraffic) {
    NEEDS_SOFTCX();
    const unsigned cycles = std::getenv("TAGWIRE_TEST_SLOW") != nullptr ? 10000 : 200;
    ASSERT_NO_FATAL_FAILURE(open(shape(0)));
    constexpr unsigned kPeriod = 420;  // of the shapes
    Use first = {};
    for (unsigned cycle = 1; cycle <= cycles; ++cycle) {
        for (int i = 0; i < 10; ++i) {
            ASSERT_EQ(exchange(ethernet_frame(60 + (cycle + i * 97) % 1400)).size(), 1u) << cycle;
        }
        // Still under way, and unread, when the ports stop.
        send(ports[0], 0, ethernet_frame(100));
        settle();
        send(ports[1], 0, ethernet_frame(100));
        for (const uint16_t port : ports) {
            ASSERT_EQ(rte_eth_dev_stop(port), 0);
        }
        ASSERT_EQ(rte_mempool_avail_count(pool), pool_before) << cycle;
        if (cycle % kPeriod == 0 || cycles < kPeriod) {
            // Stopped ports of the same shape hold the same.
            if (cycle == kPeriod) {
                first = in_use();
            } else if (cycle > kPeriod) {
                ASSERT_EQ(in_use(), first) << cycle;
            }
        }
        for (const uint16_t port : ports) {
            ASSERT_NO_FATAL_FAILURE(configure(port, shape(cycle))) << cycle;
            ASSERT_EQ(rte_eth_dev_start(port), 0) << cycle;
        }
        settle();
        receive(ports[1]);
        receive(ports[0]);
    }
    EXPECT_EQ(softcx_counter(rdma_device(0).c_str(), "client_errors"), 0u);
    EXPECT_EQ(softcx_counter(rdma_device(1).c_str(), "client_errors"), 0u);
}

// The device behind port 1 comes and goes while port 0 runs and sends.
TEST_F(Endurance, AHundredHotPlugsWhileTheOtherPortRuns) {
    NEEDS_SOFTCX();
    open();
    const std::string arguments = "ibdev=" + rdma_device(1);
    const rte_ether_addr address = mac_of(ports[1]);
    Use after_the_first = {};
    for (int cycle = 0; cycle < 100; ++cycle) {
        ASSERT_EQ(exchange(ethernet_frame(100)).size(), 1u) << cycle;
        rte_eth_dev_info info;
        ASSERT_EQ(rte_eth_dev_info_get(ports[1], &info), 0);
        // Every other time without a stop: removal is not polite.
        if (cycle % 2 == 0) {
            ASSERT_EQ(rte_eth_dev_stop(ports[1]), 0);
        }
        ASSERT_EQ(rte_dev_remove(info.device), 0) << cycle;
        EXPECT_EQ(rte_eth_dev_is_valid_port(ports[1]), 0);
        send(ports[0], 0, ethernet_frame_to(address, 100));  // to nobody
        settle();

        if (cycle == 0) {
            after_the_first = in_use();
        } else {
            ASSERT_EQ(in_use(), after_the_first) << cycle;
        }
        ASSERT_EQ(rte_eal_hotplug_add("vdev", name_of(1).c_str(), arguments.c_str()), 0) << cycle;
        ASSERT_EQ(rte_eth_dev_get_port_by_name(name_of(1).c_str(), &ports[1]), 0);
        configure(ports[1], {});
        ASSERT_EQ(rte_eth_dev_start(ports[1]), 0) << cycle;
        settle();
        receive(ports[1]);
    }
}

}  // namespace
}  // namespace tagwire::mlx5raw
