// SPDX-License-Identifier: BSD-3-Clause
// Each command that the driver gives its device, refused in turn: what came before it is
// undone, nothing stays behind, and the next attempt works.
#include <rte_bus_vdev.h>
#include <rte_flow.h>

#include <algorithm>
#include <cerrno>

#include "drivers/net/mlx5raw/port.h"
#include "drivers/softcx/softcx.h"
#include "test/mlx5raw/port_fixture.h"

namespace tagwire::mlx5raw {
namespace {

// What must be the same before and after.
struct Belongings {
    unsigned long long objects = softcx_objects(rdma_device(1).c_str());
    unsigned descriptors = open_descriptors();
    unsigned mbufs = 0;
    uint16_t ports = rte_eth_dev_count_avail();

    // Without a pool: while ports send, some of its mbufs are under way.
    explicit Belongings(const rte_mempool* pool = nullptr)
        : mbufs(pool != nullptr ? rte_mempool_avail_count(pool) : 0) {}
    bool operator==(const Belongings&) const = default;
    friend void PrintTo(const Belongings& b, std::ostream* out) {
        *out << b.objects << " objects, " << b.descriptors << " descriptors, " << b.mbufs
             << " mbufs, " << b.ports << " ports";
    }
};

class FailingCommands : public PortPair {
  protected:
    std::string device = rdma_device(1);

    // Every feature that takes commands.
    PortOptions everything() const {
        PortOptions options;
        options.rx_offloads |= RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
        options.interrupts = {.lsc = 1, .rxq = 1, .rmv = 1};
        return options;
    }

    // Calls attempt() with the first command refused, then the second, and so on until no
    // command is left to refuse; `check` is called after each that met a refusal. Returns how
    // many there were.
    template <typename Attempt, typename Check>
    int refuse_each(Attempt attempt, Check check) {
        for (int step = 0;; ++step) {
            EXPECT_EQ(softcx_refuse_command(device.c_str(), step, ENOSPC), 0);
            const int result = attempt();
            if (softcx_refuse_command(device.c_str(), -1, 0) != 0) {
                EXPECT_EQ(result, 0);
                return step;
            }
            check(step, result);
            if (testing::Test::HasFailure()) {
                ADD_FAILURE() << "at step " << step;
                return step;
            }
        }
    }
};

int probe_one(const std::string& name, const std::string& device) {
    return rte_vdev_init(name.c_str(), ("ibdev=" + device).c_str());
}

TEST_F(FailingCommands, AProbeThatFailsLeavesNothing) {
    NEEDS_SOFTCX();
    // What libibverbs and EAL keep for good.
    ASSERT_EQ(probe_one(name_of(1), device), 0);
    ASSERT_EQ(rte_vdev_uninit(name_of(1).c_str()), 0);
    const Belongings before(pool);
    const int steps = refuse_each([&] { return probe_one(name_of(1), device); },
                                  [&](int step, int result) {
                                      // libmlx5 does without some answers.
                                      if (result == 0) {
                                          EXPECT_EQ(rte_vdev_uninit(name_of(1).c_str()), 0) << step;
                                      }
                                      EXPECT_EQ(Belongings(pool), before) << step;
                                  });
    EXPECT_GT(steps, 5);
    ASSERT_EQ(rte_vdev_uninit(name_of(1).c_str()), 0);
    EXPECT_EQ(Belongings(pool), before);
}

TEST_F(FailingCommands, AStartThatFailsLeavesNothing) {
    NEEDS_SOFTCX();
    PortOptions options = everything();
    options.start = false;
    open(options);
    ASSERT_EQ(rte_eth_dev_vlan_filter(ports[1], 100, 1), 0);
    rte_flow_error error = {};
    const rte_flow_attr ingress = {.ingress = 1};
    const rte_flow_item pattern[] = {{.type = RTE_FLOW_ITEM_TYPE_ETH},
                                     {.type = RTE_FLOW_ITEM_TYPE_IPV6},
                                     {.type = RTE_FLOW_ITEM_TYPE_END}};
    const rte_flow_action_queue queue = {.index = 1};
    const rte_flow_action actions[] = {{.type = RTE_FLOW_ACTION_TYPE_FLAG},
                                       {.type = RTE_FLOW_ACTION_TYPE_COUNT},
                                       {.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue},
                                       {.type = RTE_FLOW_ACTION_TYPE_END}};
    ASSERT_NE(rte_flow_create(ports[1], &ingress, pattern, actions, &error), nullptr);
    ASSERT_EQ(rte_eth_dev_start(ports[0]), 0);
    // Memory regions stay with the port: they are made by the first start that gets there.
    ASSERT_EQ(rte_eth_dev_start(ports[1]), 0);
    ASSERT_EQ(rte_eth_dev_stop(ports[1]), 0);

    const Belongings before(pool);
    int started = 0;
    const int steps = refuse_each([&] { return rte_eth_dev_start(ports[1]); },
                                  [&](int step, int result) {
                                      // The link's state may stay unknown.
                                      if (result == 0) {
                                          EXPECT_EQ(rte_eth_dev_stop(ports[1]), 0);
                                          ++started;
                                      }
                                      EXPECT_EQ(Belongings(pool), before) << step;
                                  });
    EXPECT_LE(started, 1);
    // Two queues of each kind, 7 hash QPs, 8 rules to listen, 12 or more of the filter ...
    EXPECT_GT(steps, 50);
    EXPECT_EQ(exchange(ethernet_frame(100)).size(), 1u);
    EXPECT_TRUE(exchange(vlan_frame(ethernet_frame(100), 99)).empty());
    ASSERT_EQ(rte_eth_dev_stop(ports[1]), 0);
    EXPECT_EQ(Belongings().objects, before.objects);
}

// From nothing to a port that runs, including the first registration of memory.
TEST_F(FailingCommands, AWholeSetUpThatFailsLeavesNothing) {
    NEEDS_SOFTCX();
    ASSERT_EQ(probe_one(name_of(1), device), 0);
    ASSERT_EQ(rte_vdev_uninit(name_of(1).c_str()), 0);
    const Belongings before(pool);
    const auto close_port = [&] { EXPECT_EQ(rte_vdev_uninit(name_of(1).c_str()), 0); };
    const int steps = refuse_each(
        [&] {
            int result = probe_one(name_of(1), device);
            if (result == 0) {
                EXPECT_EQ(rte_eth_dev_get_port_by_name(name_of(1).c_str(), &ports[1]), 0);
                configure(ports[1], {});
                result = rte_eth_dev_start(ports[1]);
                if (result != 0) {
                    close_port();
                }
            }
            return result;
        },
        [&](int step, int result) {
            if (result == 0) {
                EXPECT_EQ(rte_eth_dev_stop(ports[1]), 0);
                close_port();
            }
            EXPECT_EQ(Belongings(pool), before) << step;
        });
    EXPECT_GT(steps, 40);
    EXPECT_EQ(rte_eth_dev_stop(ports[1]), 0);
    close_port();
    EXPECT_EQ(Belongings(pool), before);
}

// A change of the running port: refused, it changes nothing.
TEST_F(FailingCommands, AChangeThatFailsLeavesThePortAsItWas) {
    NEEDS_SOFTCX();
    open(everything());
    rte_eth_rss_reta_entry64 entries[2] = {};
    entries[0].mask = 3;
    entries[0].reta[0] = 1;
    rte_ether_addr address = {{2, 0, 0, 0, 1, 2}};
    rte_ether_addr group = {{1, 0, 0x5e, 0, 0, 9}};
    rte_eth_rss_conf rss = {};
    rss.rss_hf = RTE_ETH_RSS_IPV4;
    const rte_flow_attr ingress = {.ingress = 1};
    const rte_flow_item pattern[] = {{.type = RTE_FLOW_ITEM_TYPE_ETH},
                                     {.type = RTE_FLOW_ITEM_TYPE_VLAN},
                                     {.type = RTE_FLOW_ITEM_TYPE_END}};
    const rte_flow_action actions[] = {{.type = RTE_FLOW_ACTION_TYPE_DROP},
                                       {.type = RTE_FLOW_ACTION_TYPE_END}};
    rte_flow_error error = {};
    const std::pair<const char*, std::function<int()>> changes[] = {
        {"table", [&] { return rte_eth_dev_rss_reta_update(ports[1], entries, 128); }},
        {"hash", [&] { return rte_eth_dev_rss_hash_update(ports[1], &rss); }},
        {"address", [&] { return rte_eth_dev_mac_addr_add(ports[1], &address, 0); }},
        {"groups", [&] { return rte_eth_dev_set_mc_addr_list(ports[1], &group, 1); }},
        {"all groups", [&] { return rte_eth_allmulticast_enable(ports[1]); }},
        {"VLAN", [&] { return rte_eth_dev_vlan_filter(ports[1], 77, 1); }},
        {"rule",
         [&] {
             return rte_flow_create(ports[1], &ingress, pattern, actions, &error) != nullptr
                        ? 0
                        : -rte_errno;
         }},
        {"promiscuous", [&] { return rte_eth_promiscuous_enable(ports[1]); }},
        {"not promiscuous", [&] { return rte_eth_promiscuous_disable(ports[1]); }},
    };
    for (const auto& [name, change] : changes) {
        SCOPED_TRACE(name);
        const Belongings before;
        const int steps = refuse_each(change, [&](int step, int result) {
            EXPECT_EQ(result, -ENOSPC) << step;
            EXPECT_EQ(Belongings(), before) << step;
            EXPECT_EQ(exchange(ethernet_frame(100)).size(), 1u) << step;
        });
        EXPECT_GT(steps, 0);
        EXPECT_EQ(exchange(ethernet_frame(100)).size(), 1u);
    }
}

}  // namespace
}  // namespace tagwire::mlx5raw
