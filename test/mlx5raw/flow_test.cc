// SPDX-License-Identifier: BSD-3-Clause
// rte_flow rules: which packets they take, what happens to these, and how rules live.
#include <rte_flow.h>

#include <cerrno>
#include <set>

#include "drivers/net/mlx5raw/flow_mark.h"
#include "drivers/net/mlx5raw/port.h"
#include "test/mlx5raw/port_fixture.h"

namespace tagwire::mlx5raw {
namespace {

constexpr rte_flow_attr kIngress = {.ingress = 1};

// Items and actions with the memory that they point to.
struct Rule {
    std::vector<rte_flow_item> items;
    std::vector<rte_flow_action> actions;
    rte_flow_attr attributes = kIngress;

    Rule& item(rte_flow_item_type type, const void* spec = nullptr, const void* mask = nullptr,
               const void* last = nullptr) {
        items.push_back({.type = type, .spec = spec, .last = last, .mask = mask});
        return *this;
    }
    Rule& action(rte_flow_action_type type, const void* conf = nullptr) {
        actions.push_back({.type = type, .conf = conf});
        return *this;
    }
    Rule& priority(uint32_t value) {
        attributes.priority = value;
        return *this;
    }
};

class FlowTest : public PortPair {
  protected:
    rte_flow_error error = {};

    rte_flow* create(Rule rule) {
        finish(rule);
        return rte_flow_create(ports[1], &rule.attributes, rule.items.data(), rule.actions.data(),
                               &error);
    }
    int validate(Rule rule) {
        finish(rule);
        return rte_flow_validate(ports[1], &rule.attributes, rule.items.data(), rule.actions.data(),
                                 &error);
    }
    // Packets and bytes.
    std::pair<uint64_t, uint64_t> count_of(rte_flow* flow, bool reset = false) {
        const rte_flow_action count[] = {{.type = RTE_FLOW_ACTION_TYPE_COUNT},
                                         {.type = RTE_FLOW_ACTION_TYPE_END}};
        rte_flow_query_count values = {};
        values.reset = reset ? 1 : 0;
        EXPECT_EQ(rte_flow_query(ports[1], flow, count, &values, &error), 0) << error.message;
        EXPECT_TRUE(values.hits_set && values.bytes_set);
        return {values.hits, values.bytes};
    }
    // The queue of the frame, or -1 when it does not arrive.
    int queue_of(const Frame& frame) {
        const std::vector<Received> got = exchange(frame);
        EXPECT_LE(got.size(), 1u);
        return got.empty() ? -1 : got[0].queue;
    }

    Frame udp(uint16_t destination_port, uint16_t source_port = 100) const {
        return ip_frame(mac_of(ports[1]),
                        {{10, 0, 0, 1}, {10, 0, 0, 2}, source_port, destination_port}, IPPROTO_UDP,
                        20);
    }
    Frame tcp(uint16_t destination_port, uint16_t source_port = 100) const {
        return ip_frame(mac_of(ports[1]),
                        {{10, 0, 0, 1}, {10, 0, 0, 2}, source_port, destination_port}, IPPROTO_TCP,
                        20);
    }
    Frame udp6(uint16_t destination_port) const {
        FlowAddresses addresses{std::vector<uint8_t>(16, 0x20), std::vector<uint8_t>(16, 0x21), 100,
                                destination_port};
        return ip_frame(mac_of(ports[1]), addresses, IPPROTO_UDP, 20);
    }

  private:
    static void finish(Rule& rule) {
        rule.item(RTE_FLOW_ITEM_TYPE_END);
        rule.action(RTE_FLOW_ACTION_TYPE_END);
    }
};

const rte_flow_action_queue kQueue[] = {{0}, {1}, {2}, {3}};

// Every queue of the port but the last hashes; rules lead to the last.
struct OnQueueThree : Rule {
    OnQueueThree() { action(RTE_FLOW_ACTION_TYPE_QUEUE, &kQueue[3]); }
};

class MatchTest : public FlowTest {
  protected:
    void SetUp() override {
        FlowTest::SetUp();
        open({.queues = 4});
        rte_eth_rss_reta_entry64 entries[2] = {};
        entries[0].mask = entries[1].mask = ~uint64_t{0};
        for (unsigned i = 0; i < 128; ++i) {
            entries[i / 64].reta[i % 64] = static_cast<uint16_t>(i % 3);
        }
        ASSERT_EQ(rte_eth_dev_rss_reta_update(ports[1], entries, 128), 0);
    }
    // Takes exactly the frames of the first list.
    void expect_takes(const Rule& rule, const std::vector<Frame>& taken,
                      const std::vector<Frame>& others) {
        ASSERT_EQ(validate(rule), 0) << error.message;
        rte_flow* const flow = create(rule);
        ASSERT_NE(flow, nullptr) << error.message;
        for (const Frame& frame : taken) {
            EXPECT_EQ(queue_of(frame), 3);
        }
        for (const Frame& frame : others) {
            EXPECT_LT(queue_of(frame), 3);
        }
        ASSERT_EQ(rte_flow_destroy(ports[1], flow, &error), 0);
        for (const Frame& frame : taken) {
            EXPECT_LT(queue_of(frame), 3);
        }
    }
};

TEST_F(MatchTest, EthernetAddressesAndType) {
    rte_flow_item_eth spec = {}, mask = {};
    spec.hdr.ether_type = RTE_BE16(0x88b6);
    mask.hdr.ether_type = RTE_BE16(0xffff);
    OnQueueThree by_type;
    by_type.item(RTE_FLOW_ITEM_TYPE_ETH, &spec, &mask);
    expect_takes(by_type, {ethernet_frame(100, 0x88b6)}, {ethernet_frame(100), udp(1)});

    rte_flow_item_eth source = {}, source_mask = {};
    source.hdr.src_addr = mac_of(ports[0]);
    memset(&source_mask.hdr.src_addr, 0xff, 6);
    OnQueueThree by_source;
    by_source.item(RTE_FLOW_ITEM_TYPE_ETH, &source, &source_mask);
    expect_takes(by_source, {ethernet_frame(100)}, {udp(1), tcp(1)});
}

TEST_F(MatchTest, AnAddressThatThePortDoesNotListenTo) {
    rte_flow_item_eth spec = {}, mask = {};
    spec.hdr.dst_addr = {{2, 0, 0, 0, 7, 7}};
    memset(&mask.hdr.dst_addr, 0xff, 6);
    OnQueueThree rule;
    rule.item(RTE_FLOW_ITEM_TYPE_ETH, &spec, &mask);
    EXPECT_EQ(queue_of(ethernet_frame_to(spec.hdr.dst_addr, 100)), -1);
    rte_flow* const flow = create(rule);
    ASSERT_NE(flow, nullptr);
    EXPECT_EQ(queue_of(ethernet_frame_to(spec.hdr.dst_addr, 100)), 3);
    EXPECT_EQ(rte_flow_destroy(ports[1], flow, &error), 0);
    EXPECT_EQ(queue_of(ethernet_frame_to(spec.hdr.dst_addr, 100)), -1);
}

TEST_F(MatchTest, Ipv4AddressesUnderMasksAndProtocol) {
    rte_flow_item_ipv4 spec = {}, mask = {};
    spec.hdr.dst_addr = RTE_BE32(0x0a000002);
    mask.hdr.dst_addr = RTE_BE32(0xffffff00);
    OnQueueThree rule;
    rule.item(RTE_FLOW_ITEM_TYPE_ETH).item(RTE_FLOW_ITEM_TYPE_IPV4, &spec, &mask);
    const Frame elsewhere =
        ip_frame(mac_of(ports[1]), {{10, 0, 0, 1}, {10, 0, 1, 2}, 1, 2}, IPPROTO_UDP, 20);
    expect_takes(rule, {udp(1), tcp(1), udp(2, 3)}, {elsewhere, udp6(1), ethernet_frame(100)});

    rte_flow_item_ipv4 protocol = {}, protocol_mask = {};
    protocol.hdr.next_proto_id = IPPROTO_TCP;
    protocol_mask.hdr.next_proto_id = 0xff;
    OnQueueThree by_protocol;
    by_protocol.item(RTE_FLOW_ITEM_TYPE_ETH)
        .item(RTE_FLOW_ITEM_TYPE_IPV4, &protocol, &protocol_mask);
    expect_takes(by_protocol, {tcp(1), tcp(2)}, {udp(1), udp6(1)});
}

TEST_F(MatchTest, Ipv6Addresses) {
    rte_flow_item_ipv6 spec = {}, mask = {};
    memset(&spec.hdr.src_addr, 0x20, 16);
    memset(&mask.hdr.src_addr, 0xff, 16);
    OnQueueThree rule;
    rule.item(RTE_FLOW_ITEM_TYPE_ETH).item(RTE_FLOW_ITEM_TYPE_IPV6, &spec, &mask);
    expect_takes(rule, {udp6(1), udp6(2)}, {udp(1), tcp(1)});
}

TEST_F(MatchTest, PortsOfUdpAndTcp) {
    rte_flow_item_udp spec = {};
    rte_flow_item_udp mask = {};
    spec.hdr.dst_port = RTE_BE16(4000);
    mask.hdr.dst_port = RTE_BE16(0xffff);
    OnQueueThree udp_rule;
    udp_rule.item(RTE_FLOW_ITEM_TYPE_ETH)
        .item(RTE_FLOW_ITEM_TYPE_IPV4)
        .item(RTE_FLOW_ITEM_TYPE_UDP, &spec, &mask);
    expect_takes(udp_rule, {udp(4000), udp(4000, 7)}, {udp(4001), tcp(4000), udp6(4000)});

    // Without an IP item, of either version.
    OnQueueThree any_ip;
    any_ip.item(RTE_FLOW_ITEM_TYPE_ETH).item(RTE_FLOW_ITEM_TYPE_UDP, &spec, &mask);
    expect_takes(any_ip, {udp(4000), udp6(4000)}, {udp(4001), tcp(4000)});

    rte_flow_item_tcp tcp_spec = {};
    rte_flow_item_tcp tcp_mask = {};
    tcp_spec.hdr.src_port = RTE_BE16(0x1200);
    tcp_mask.hdr.src_port = RTE_BE16(0xff00);
    OnQueueThree tcp_rule;
    tcp_rule.item(RTE_FLOW_ITEM_TYPE_ETH)
        .item(RTE_FLOW_ITEM_TYPE_IPV4)
        .item(RTE_FLOW_ITEM_TYPE_TCP, &tcp_spec, &tcp_mask);
    expect_takes(tcp_rule, {tcp(1, 0x1201), tcp(1, 0x12ff)}, {tcp(1, 0x1301), udp(1, 0x1201)});
}

TEST_F(MatchTest, VlanIdentifierAndAnyVlan) {
    rte_flow_item_vlan spec = {};
    spec.hdr.vlan_tci = RTE_BE16(5);
    OnQueueThree one;
    one.item(RTE_FLOW_ITEM_TYPE_ETH).item(RTE_FLOW_ITEM_TYPE_VLAN, &spec);
    // The default mask leaves the priority bits out.
    expect_takes(
        one, {vlan_frame(udp(1), 5), vlan_frame(udp(1), 0xe005), vlan_frame(ethernet_frame(80), 5)},
        {udp(1), vlan_frame(udp(1), 6)});

    OnQueueThree any;
    any.item(RTE_FLOW_ITEM_TYPE_ETH).item(RTE_FLOW_ITEM_TYPE_VLAN);
    expect_takes(any, {vlan_frame(udp(1), 5), vlan_frame(udp(1), 4094), vlan_frame(tcp(1), 0)},
                 {udp(1), ethernet_frame(80)});

    OnQueueThree above;
    above.item(RTE_FLOW_ITEM_TYPE_ETH)
        .item(RTE_FLOW_ITEM_TYPE_VLAN, &spec)
        .item(RTE_FLOW_ITEM_TYPE_IPV4)
        .item(RTE_FLOW_ITEM_TYPE_UDP);
    expect_takes(above, {vlan_frame(udp(1), 5)},
                 {udp(1), vlan_frame(tcp(1), 5), vlan_frame(udp(1), 4)});
}

TEST_F(MatchTest, ALowerPriorityNumberWins) {
    OnQueueThree narrow;
    narrow.priority(1).item(RTE_FLOW_ITEM_TYPE_ETH).item(RTE_FLOW_ITEM_TYPE_IPV4);
    Rule drop;
    drop.priority(2).item(RTE_FLOW_ITEM_TYPE_ETH).action(RTE_FLOW_ACTION_TYPE_DROP);
    Rule first;
    first.priority(0)
        .item(RTE_FLOW_ITEM_TYPE_ETH)
        .item(RTE_FLOW_ITEM_TYPE_IPV4)
        .item(RTE_FLOW_ITEM_TYPE_UDP)
        .action(RTE_FLOW_ACTION_TYPE_QUEUE, &kQueue[2]);
    ASSERT_NE(create(drop), nullptr) << error.message;
    ASSERT_NE(create(narrow), nullptr) << error.message;
    ASSERT_NE(create(first), nullptr) << error.message;
    EXPECT_EQ(queue_of(udp(9)), 2);
    EXPECT_EQ(queue_of(tcp(9)), 3);
    EXPECT_EQ(queue_of(udp6(9)), -1);
    EXPECT_EQ(queue_of(ethernet_frame(90)), -1);
    ASSERT_EQ(rte_flow_flush(ports[1], &error), 0);
    EXPECT_GE(queue_of(ethernet_frame(90)), 0);
}

TEST_F(MatchTest, RssOverTheQueuesOfTheRule) {
    const uint16_t queues[] = {1, 3};
    rte_flow_action_rss rss = {};
    rss.types = RTE_ETH_RSS_NONFRAG_IPV4_UDP;
    rss.queue_num = 2;
    rss.queue = queues;
    Rule rule;
    rule.item(RTE_FLOW_ITEM_TYPE_ETH)
        .item(RTE_FLOW_ITEM_TYPE_IPV4)
        .action(RTE_FLOW_ACTION_TYPE_RSS, &rss);
    ASSERT_NE(create(rule), nullptr) << error.message;
    std::set<int> seen;
    for (uint16_t port = 0; port < 40; ++port) {
        const std::vector<Received> got = exchange(udp(port));
        ASSERT_EQ(got.size(), 1u);
        EXPECT_EQ(got[0].queue, queues[got[0].hash % 2]);
        seen.insert(got[0].queue);
    }
    EXPECT_EQ(seen, (std::set<int>{1, 3}));
    // TCP has no type of its own in the rule: not hashed, first queue.
    EXPECT_EQ(queue_of(tcp(1)), 1);
}

TEST_F(MatchTest, RssOverThreeQueuesWithAKeyOfItsOwn) {
    const uint16_t queues[] = {0, 2, 3};
    RssKey key;
    key.fill(0x3c);
    rte_flow_action_rss rss = {};
    rss.types = RTE_ETH_RSS_NONFRAG_IPV4_UDP;
    rss.key = key.data();
    rss.key_len = static_cast<uint32_t>(key.size());
    rss.queue_num = 3;
    rss.queue = queues;
    Rule rule;
    rule.item(RTE_FLOW_ITEM_TYPE_ETH).action(RTE_FLOW_ACTION_TYPE_RSS, &rss);
    ASSERT_NE(create(rule), nullptr) << error.message;
    std::set<int> seen;
    for (uint16_t port = 0; port < 60; ++port) {
        const std::vector<Received> got = exchange(udp(7, port));
        const std::vector<uint8_t> input = {10, 0, 0, 1, 10, 0, 0, 2, 0, static_cast<uint8_t>(port),
                                            0,  7};
        ASSERT_EQ(got.size(), 1u);
        EXPECT_EQ(got[0].hash, toeplitz(key, input));
        EXPECT_EQ(got[0].queue, queues[got[0].hash % 128 % 3]);
        seen.insert(got[0].queue);
    }
    EXPECT_EQ(seen.size(), 3u);
}

TEST_F(MatchTest, MarkAndFlagReachTheMbuf) {
    const rte_flow_action_mark mark = {.id = 0}, largest = {.id = kMaxFlowMark};
    Rule first, second, third;
    first.item(RTE_FLOW_ITEM_TYPE_ETH)
        .item(RTE_FLOW_ITEM_TYPE_IPV4)
        .item(RTE_FLOW_ITEM_TYPE_UDP)
        .action(RTE_FLOW_ACTION_TYPE_MARK, &mark)
        .action(RTE_FLOW_ACTION_TYPE_QUEUE, &kQueue[1]);
    second.item(RTE_FLOW_ITEM_TYPE_ETH)
        .item(RTE_FLOW_ITEM_TYPE_IPV4)
        .item(RTE_FLOW_ITEM_TYPE_TCP)
        .action(RTE_FLOW_ACTION_TYPE_MARK, &largest)
        .action(RTE_FLOW_ACTION_TYPE_QUEUE, &kQueue[1]);
    third.item(RTE_FLOW_ITEM_TYPE_ETH)
        .item(RTE_FLOW_ITEM_TYPE_IPV6)
        .action(RTE_FLOW_ACTION_TYPE_FLAG)
        .action(RTE_FLOW_ACTION_TYPE_QUEUE, &kQueue[1]);
    ASSERT_NE(create(first), nullptr) << error.message;
    ASSERT_NE(create(second), nullptr) << error.message;
    ASSERT_NE(create(third), nullptr) << error.message;
    constexpr uint64_t kBoth = RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID;
    const Received by_udp = exchange(udp(1)).at(0);
    EXPECT_EQ(by_udp.flags & kBoth, kBoth);
    EXPECT_EQ(by_udp.mark, 0u);
    EXPECT_TRUE(by_udp.flags & RTE_MBUF_F_RX_RSS_HASH);
    EXPECT_NE(by_udp.hash, 0u);
    const Received by_tcp = exchange(tcp(1)).at(0);
    EXPECT_EQ(by_tcp.flags & kBoth, kBoth);
    EXPECT_EQ(by_tcp.mark, kMaxFlowMark);
    EXPECT_EQ(exchange(udp6(1)).at(0).flags & kBoth, uint64_t{RTE_MBUF_F_RX_FDIR});
    EXPECT_EQ(exchange(ethernet_frame(80)).at(0).flags & kBoth, 0u);
    ASSERT_EQ(rte_flow_flush(ports[1], &error), 0);
    EXPECT_EQ(exchange(udp(1)).at(0).flags & kBoth, 0u);
}

TEST_F(MatchTest, CountsPacketsAndBytesOfEveryKind) {
    Rule rule;
    rule.item(RTE_FLOW_ITEM_TYPE_ETH)
        .action(RTE_FLOW_ACTION_TYPE_COUNT)
        .action(RTE_FLOW_ACTION_TYPE_QUEUE, &kQueue[3]);
    rte_flow* const flow = create(rule);
    ASSERT_NE(flow, nullptr) << error.message;
    // Each is taken by another verbs rule of the same flow.
    uint64_t bytes = 0;
    for (const Frame& frame : {udp(1), tcp(1), udp6(1), ethernet_frame(100)}) {
        EXPECT_EQ(queue_of(frame), 3);
        bytes += frame.size();
    }
    EXPECT_EQ(count_of(flow), (std::pair<uint64_t, uint64_t>{4, bytes}));
    // Over a stop, which destroys the device's counters.
    ASSERT_EQ(rte_eth_dev_stop(ports[1]), 0);
    EXPECT_EQ(count_of(flow), (std::pair<uint64_t, uint64_t>{4, bytes}));
    ASSERT_EQ(rte_eth_dev_start(ports[1]), 0);
    EXPECT_EQ(queue_of(udp(2)), 3);
    EXPECT_EQ(count_of(flow, true), (std::pair<uint64_t, uint64_t>{5, bytes + udp(2).size()}));
    EXPECT_EQ(count_of(flow), (std::pair<uint64_t, uint64_t>{0, 0}));
    EXPECT_EQ(queue_of(udp(3)), 3);
    EXPECT_EQ(count_of(flow).first, 1u);
}

TEST_F(MatchTest, CountsWhatItDrops) {
    Rule rule;
    rule.item(RTE_FLOW_ITEM_TYPE_ETH)
        .item(RTE_FLOW_ITEM_TYPE_IPV6)
        .action(RTE_FLOW_ACTION_TYPE_DROP)
        .action(RTE_FLOW_ACTION_TYPE_COUNT);
    rte_flow* const flow = create(rule);
    ASSERT_NE(flow, nullptr) << error.message;
    EXPECT_EQ(queue_of(udp6(1)), -1);
    EXPECT_GE(queue_of(udp(1)), 0);
    EXPECT_EQ(count_of(flow).first, 1u);
}

TEST_F(MatchTest, OnlyACountCanBeAskedFor) {
    OnQueueThree rule;
    rule.item(RTE_FLOW_ITEM_TYPE_ETH);
    rte_flow* const flow = create(rule);
    ASSERT_NE(flow, nullptr) << error.message;
    const rte_flow_action count[] = {{.type = RTE_FLOW_ACTION_TYPE_COUNT},
                                     {.type = RTE_FLOW_ACTION_TYPE_END}};
    rte_flow_query_count values = {};
    EXPECT_EQ(rte_flow_query(ports[1], flow, count, &values, &error), -ENOTSUP);
    EXPECT_EQ(error.type, RTE_FLOW_ERROR_TYPE_ACTION);
}

TEST_F(MatchTest, RulesStayOverStopAndStart) {
    OnQueueThree rule;
    rule.item(RTE_FLOW_ITEM_TYPE_ETH).item(RTE_FLOW_ITEM_TYPE_IPV4);
    ASSERT_NE(create(rule), nullptr) << error.message;
    ASSERT_EQ(rte_eth_dev_stop(ports[1]), 0);
    // A rule of a stopped port waits for the start.
    Rule drop;
    drop.item(RTE_FLOW_ITEM_TYPE_ETH)
        .item(RTE_FLOW_ITEM_TYPE_IPV6)
        .action(RTE_FLOW_ACTION_TYPE_DROP);
    ASSERT_NE(create(drop), nullptr) << error.message;
    ASSERT_EQ(rte_eth_dev_start(ports[1]), 0);
    EXPECT_EQ(queue_of(udp(1)), 3);
    EXPECT_EQ(queue_of(udp6(1)), -1);
}

TEST_F(MatchTest, AStartWithFewerQueuesNamesTheRuleThatMissesIts) {
    OnQueueThree rule;
    rule.item(RTE_FLOW_ITEM_TYPE_ETH).item(RTE_FLOW_ITEM_TYPE_IPV4);
    rte_flow* const flow = create(rule);
    ASSERT_NE(flow, nullptr) << error.message;
    ASSERT_EQ(rte_eth_dev_stop(ports[1]), 0);
    configure(ports[1], {.queues = 2});
    EXPECT_EQ(rte_eth_dev_start(ports[1]), -EINVAL);
    ASSERT_EQ(rte_flow_destroy(ports[1], flow, &error), 0);
    ASSERT_EQ(rte_eth_dev_start(ports[1]), 0);
    EXPECT_GE(queue_of(udp(1)), 0);
}

TEST_F(MatchTest, RulesOutliveATableChangeUnderTraffic) {
    OnQueueThree rule;
    rule.item(RTE_FLOW_ITEM_TYPE_ETH).item(RTE_FLOW_ITEM_TYPE_IPV4);
    ASSERT_NE(create(rule), nullptr) << error.message;
    rte_eth_rss_reta_entry64 entries[2] = {};
    entries[0].mask = entries[1].mask = ~uint64_t{0};
    for (int round = 0; round < 5; ++round) {
        for (unsigned i = 0; i < 128; ++i) {
            entries[i / 64].reta[i % 64] = static_cast<uint16_t>((i + round) % 3);
        }
        ASSERT_EQ(rte_eth_dev_rss_reta_update(ports[1], entries, 128), 0);
        EXPECT_EQ(queue_of(udp(1)), 3);
        EXPECT_LT(queue_of(udp6(1)), 3);
    }
}

TEST_F(MatchTest, IsolatedOnlyRulesBringPackets) {
    OnQueueThree rule;
    rule.item(RTE_FLOW_ITEM_TYPE_ETH).item(RTE_FLOW_ITEM_TYPE_IPV4);
    ASSERT_NE(create(rule), nullptr) << error.message;
    ASSERT_EQ(rte_flow_isolate(ports[1], 1, &error), 0);
    EXPECT_EQ(queue_of(udp(1)), 3);
    EXPECT_EQ(queue_of(udp6(1)), -1);
    EXPECT_EQ(queue_of(ethernet_frame(80)), -1);
    // Also after a start, and whatever the port is told to listen to.
    ASSERT_EQ(rte_eth_dev_stop(ports[1]), 0);
    ASSERT_EQ(rte_eth_dev_start(ports[1]), 0);
    rte_eth_promiscuous_enable(ports[1]);
    EXPECT_EQ(queue_of(udp(1)), 3);
    EXPECT_EQ(queue_of(udp6(1)), -1);
    rte_eth_promiscuous_disable(ports[1]);
    ASSERT_EQ(rte_flow_isolate(ports[1], 0, &error), 0);
    EXPECT_EQ(queue_of(udp(1)), 3);
    EXPECT_LT(queue_of(udp6(1)), 3);
    EXPECT_GE(queue_of(udp6(1)), 0);
}

// What is refused, with the part that is meant.
TEST_F(MatchTest, WhatCannotBeIsRefusedPrecisely) {
    rte_flow_item_ipv4 fragment = {};
    fragment.hdr.fragment_offset = RTE_BE16(0x2000);
    rte_flow_item_tcp flags = {};
    flags.hdr.tcp_flags = 1;
    rte_flow_item_eth untagged = {}, tag_mask = {};
    tag_mask.has_vlan = 1;
    rte_flow_item_udp low = {}, high = {};
    high.hdr.dst_port = RTE_BE16(10);
    rte_flow_item_eth arp = {}, type_mask = {};
    arp.hdr.ether_type = RTE_BE16(0x0806);
    type_mask.hdr.ether_type = RTE_BE16(0xffff);
    const rte_flow_action_queue far_queue = {.index = 4};
    const rte_flow_action_mark far_mark = {.id = kMaxFlowMark + 1};
    const uint16_t one_queue = 0;
    rte_flow_action_rss inner = {};
    inner.level = 2;
    inner.queue_num = 1;
    inner.queue = &one_queue;
    rte_flow_action_rss short_key = inner;
    short_key.level = 0;
    short_key.key = reinterpret_cast<const uint8_t*>("12345678");
    short_key.key_len = 8;
    rte_flow_action_rss no_queues = {};

    const struct {
        Rule rule;
        rte_flow_error_type type;
        int code;
    } kCases[] = {
        {OnQueueThree().item(RTE_FLOW_ITEM_TYPE_VXLAN), RTE_FLOW_ERROR_TYPE_ITEM, ENOTSUP},
        {OnQueueThree().item(RTE_FLOW_ITEM_TYPE_IPV4).item(RTE_FLOW_ITEM_TYPE_ETH),
         RTE_FLOW_ERROR_TYPE_ITEM, EINVAL},
        {OnQueueThree().item(RTE_FLOW_ITEM_TYPE_VLAN).item(RTE_FLOW_ITEM_TYPE_VLAN),
         RTE_FLOW_ERROR_TYPE_ITEM, EINVAL},
        {OnQueueThree().item(RTE_FLOW_ITEM_TYPE_IPV4, &fragment, &fragment),
         RTE_FLOW_ERROR_TYPE_ITEM_MASK, ENOTSUP},
        {OnQueueThree().item(RTE_FLOW_ITEM_TYPE_TCP, &flags, &flags), RTE_FLOW_ERROR_TYPE_ITEM_MASK,
         ENOTSUP},
        {OnQueueThree().item(RTE_FLOW_ITEM_TYPE_ETH, &untagged, &tag_mask),
         RTE_FLOW_ERROR_TYPE_ITEM_MASK, ENOTSUP},
        {OnQueueThree().item(RTE_FLOW_ITEM_TYPE_UDP, &low, nullptr, &high),
         RTE_FLOW_ERROR_TYPE_ITEM_LAST, ENOTSUP},
        {OnQueueThree().item(RTE_FLOW_ITEM_TYPE_UDP, nullptr, &high), RTE_FLOW_ERROR_TYPE_ITEM_SPEC,
         EINVAL},
        {OnQueueThree()
             .item(RTE_FLOW_ITEM_TYPE_ETH, &arp, &type_mask)
             .item(RTE_FLOW_ITEM_TYPE_IPV4),
         RTE_FLOW_ERROR_TYPE_ITEM, EINVAL},
        {Rule().action(RTE_FLOW_ACTION_TYPE_QUEUE, &far_queue), RTE_FLOW_ERROR_TYPE_ACTION_CONF,
         EINVAL},
        {OnQueueThree().action(RTE_FLOW_ACTION_TYPE_MARK, &far_mark),
         RTE_FLOW_ERROR_TYPE_ACTION_CONF, EINVAL},
        {OnQueueThree().action(RTE_FLOW_ACTION_TYPE_DROP), RTE_FLOW_ERROR_TYPE_ACTION, EINVAL},
        {OnQueueThree().action(RTE_FLOW_ACTION_TYPE_OF_POP_VLAN), RTE_FLOW_ERROR_TYPE_ACTION,
         ENOTSUP},
        {Rule().action(RTE_FLOW_ACTION_TYPE_FLAG), RTE_FLOW_ERROR_TYPE_ACTION, EINVAL},
        {Rule().action(RTE_FLOW_ACTION_TYPE_FLAG).action(RTE_FLOW_ACTION_TYPE_DROP),
         RTE_FLOW_ERROR_TYPE_ACTION, EINVAL},
        {Rule().action(RTE_FLOW_ACTION_TYPE_RSS, &inner), RTE_FLOW_ERROR_TYPE_ACTION_CONF, ENOTSUP},
        {Rule().action(RTE_FLOW_ACTION_TYPE_RSS, &short_key), RTE_FLOW_ERROR_TYPE_ACTION_CONF,
         EINVAL},
        {Rule().action(RTE_FLOW_ACTION_TYPE_RSS, &no_queues), RTE_FLOW_ERROR_TYPE_ACTION_CONF,
         EINVAL},
        {OnQueueThree().priority(3), RTE_FLOW_ERROR_TYPE_ATTR_PRIORITY, ENOTSUP},
    };
    for (const auto& refused : kCases) {
        const auto index = &refused - kCases;
        error = {};
        EXPECT_EQ(validate(refused.rule), -refused.code) << index;
        EXPECT_EQ(error.type, refused.type) << index;
        ASSERT_NE(error.message, nullptr) << index;
        EXPECT_GT(strlen(error.message), 10u) << index;
        EXPECT_EQ(create(refused.rule), nullptr) << index;
    }
    OnQueueThree egress;
    egress.attributes = {.egress = 1};
    EXPECT_EQ(validate(egress), -ENOTSUP);
    EXPECT_EQ(error.type, RTE_FLOW_ERROR_TYPE_ATTR_EGRESS);
    EXPECT_EQ(port_of(&rte_eth_devices[ports[1]]).flows.size(), 0u);
}

TEST_F(MatchTest, TheSameRuleTwiceIsRefused) {
    OnQueueThree rule;
    rule.item(RTE_FLOW_ITEM_TYPE_ETH).item(RTE_FLOW_ITEM_TYPE_IPV4);
    rte_flow* const flow = create(rule);
    ASSERT_NE(flow, nullptr);
    EXPECT_EQ(create(rule), nullptr);
    EXPECT_EQ(rte_errno, EEXIST);
    EXPECT_EQ(rte_flow_destroy(ports[1], flow, &error), 0);
    EXPECT_EQ(rte_flow_destroy(ports[1], flow, &error), -ENOENT);
}

}  // namespace
}  // namespace tagwire::mlx5raw
