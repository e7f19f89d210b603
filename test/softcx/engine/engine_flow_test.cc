// SPDX-License-Identifier: BSD-3-Clause
// Steering: which rule takes a frame.
#include <functional>

#include "test/softcx/engine/receive_fixture.h"

namespace softcx::test {
namespace {

class EngineFlow : public ReceiveFixture {
  protected:
    struct Receiver {
        std::unique_ptr<ClientCq> cq;
        std::unique_ptr<ClientWq> wq;
        QueuePair* qp;

        // Frames that arrived since the last look.
        int count() {
            int frames = 0;
            while (cq->poll().has_value())
                ++frames;
            return frames;
        }
    };

    Receiver make_receiver() {
        Receiver receiver{rig.make_cq(), nullptr, nullptr};
        receiver.wq = rig.make_wq(*receiver.cq, 64);
        for (uint32_t i = 0; i < 64; ++i)
            receiver.wq->post({buffer(i)});
        receiver.qp = rig.make_rss_qp({receiver.wq->wq});
        return receiver;
    }

    Flow* make_rule(const Receiver& receiver, const std::function<void(FlowMatch&)>& fill,
                    uint16_t priority = 0) {
        Flow* flow = rig.make_flow(receiver.qp, FlowType::kNormal);
        flow->priority = priority;
        fill(flow->match);
        rig.changed();
        return flow;
    }

    void deliver(const Bytes& frame) {
        arrive(frame);
        rig.step();
    }

    static void match_mac(FlowMatch& match, const MacAddress& mac) {
        match.has_ethernet = true;
        match.dst_mac = mac;
        match.dst_mac_mask.fill(0xff);
    }

    Receiver a = make_receiver();
    Receiver b = make_receiver();
};

constexpr MacAddress kStation{0x02, 0, 0, 0, 0xdd, 1};
constexpr MacAddress kGroup{0x01, 0, 0x5e, 0, 0, 7};

TEST_F(EngineFlow, AFrameThatNoRuleTakesIsCounted) {
    make_rule(a, [](FlowMatch& match) { match_mac(match, {0x02, 9, 9, 9, 9, 9}); });
    deliver(make_packet({}));
    EXPECT_EQ(a.count(), 0);
    EXPECT_EQ(rig.counters().rx_no_flow, 1u);
}

TEST_F(EngineFlow, TheMacDecides) {
    make_rule(a, [](FlowMatch& match) { match_mac(match, kStation); });
    make_rule(b, [](FlowMatch& match) { match_mac(match, {0x02, 0, 0, 0, 0xdd, 9}); });
    deliver(make_packet({}));
    EXPECT_EQ(a.count(), 1);
    EXPECT_EQ(b.count(), 0);
    deliver(make_packet({.dst = {0x02, 0, 0, 0, 0xdd, 9}}));
    EXPECT_EQ(a.count(), 0);
    EXPECT_EQ(b.count(), 1);
}

TEST_F(EngineFlow, MacBitsOutsideTheMaskDontCount) {
    make_rule(a, [](FlowMatch& match) {
        match.has_ethernet = true;
        match.dst_mac = {0xff, 0, 0, 0, 0xdd, 0xff};
        match.dst_mac_mask = {0, 0xff, 0xff, 0xff, 0xff, 0};
    });
    deliver(make_packet({}));
    EXPECT_EQ(a.count(), 1);
}

TEST_F(EngineFlow, TheLowerPriorityNumberWins) {
    make_rule(
        a, [](FlowMatch& match) { match_mac(match, kStation); }, 5);
    make_rule(
        b, [](FlowMatch& match) { match_mac(match, kStation); }, 2);
    deliver(make_packet({}));
    EXPECT_EQ(a.count(), 0);
    EXPECT_EQ(b.count(), 1);
}

TEST_F(EngineFlow, OfOverlappingRulesTheFirstTakesUnicast) {
    make_rule(a, [](FlowMatch& match) { match_mac(match, kStation); });
    make_rule(b, [](FlowMatch& match) {
        match_mac(match, kStation);
        match.has_ipv4 = true;
    });
    deliver(make_packet({}));
    EXPECT_EQ(a.count(), 1);
    EXPECT_EQ(b.count(), 0);
}

TEST_F(EngineFlow, RulesThatMatchTheSameShareUnicast) {
    const auto fill = [](FlowMatch& match) {
        match_mac(match, kStation);
        match.has_udp = true;
    };
    make_rule(a, fill)->tag = 5;
    rig.device.flows.begin()->second->has_tag = true;
    make_rule(b, [](FlowMatch& match) { match_mac(match, kGroup); });
    make_rule(b, fill);
    deliver(make_packet({}));
    EXPECT_EQ(a.count(), 1);
    const std::optional<Cqe> copy = b.cq->poll();
    ASSERT_TRUE(copy.has_value());
    EXPECT_EQ(copy->sop_drop_qpn.get(), 5u);  // they share an entry, and so its tag
    EXPECT_EQ(b.count(), 0);
}

TEST_F(EngineFlow, SoDoDefaultRules) {
    rig.make_flow(a.qp, FlowType::kAllDefault);
    rig.make_flow(b.qp, FlowType::kAllDefault);
    deliver(make_packet({}));
    EXPECT_EQ(a.count(), 1);
    EXPECT_EQ(b.count(), 1);
}

TEST_F(EngineFlow, TheFlowLabelDecides) {
    make_rule(a, [](FlowMatch& match) {
        match.has_ipv6 = true;
        match.flow_label = 0x12345;
        match.flow_label_mask = 0xfffff;
    });
    Bytes frame = make_packet({.ipv6 = true, .src_ip = "fe80::1", .dst_ip = "fe80::2"});
    deliver(frame);
    EXPECT_EQ(a.count(), 0);
    store_be32(frame.data() + 14, 0x60012345);
    deliver(frame);
    EXPECT_EQ(a.count(), 1);
}

TEST_F(EngineFlow, NormalRulesComeBeforeDefaultOnes) {
    rig.make_flow(a.qp, FlowType::kAllDefault);
    make_rule(
        b, [](FlowMatch& match) { match_mac(match, kStation); }, 0xffff);
    deliver(make_packet({}));
    EXPECT_EQ(b.count(), 1);
    deliver(make_packet({.dst = {0x02, 9, 9, 9, 9, 9}}));
    EXPECT_EQ(a.count(), 1);
}

TEST_F(EngineFlow, MulticastGoesToEveryRuleOfTheLevel) {
    make_rule(a, [](FlowMatch& match) { match_mac(match, kGroup); });
    make_rule(b, [](FlowMatch& match) { match_mac(match, kGroup); });
    deliver(make_packet({.dst = kGroup}));
    EXPECT_EQ(a.count(), 1);
    EXPECT_EQ(b.count(), 1);
}

TEST_F(EngineFlow, MulticastReachesAQpOnce) {
    make_rule(a, [](FlowMatch& match) { match_mac(match, kGroup); });
    make_rule(a, [](FlowMatch&) {});
    deliver(make_packet({.dst = kGroup}));
    EXPECT_EQ(a.count(), 1);
}

TEST_F(EngineFlow, MulticastDefaultTakesGroupAddressesOnly) {
    rig.make_flow(a.qp, FlowType::kMulticastDefault);
    deliver(make_packet({.dst = kGroup}));
    deliver(make_packet({.dst = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}));
    deliver(make_packet({}));
    EXPECT_EQ(a.count(), 2);
    EXPECT_EQ(rig.counters().rx_no_flow, 1u);
}

TEST_F(EngineFlow, AllDefaultIsPromiscuous) {
    rig.make_flow(a.qp, FlowType::kAllDefault);
    deliver(make_packet({.dst = kGroup}));
    deliver(pattern(60));
    EXPECT_EQ(a.count(), 2);
}

TEST_F(EngineFlow, ASnifferGetsACopyOfWhatIsReceivedAndSent) {
    rig.make_flow(a.qp, FlowType::kAllDefault);
    rig.make_flow(b.qp, FlowType::kSniffer);
    deliver(make_packet({}));
    EXPECT_EQ(a.count(), 1);
    EXPECT_EQ(b.count(), 1);
    const auto sender = rig.make_sender(*cq);
    sender->post({.inline_data = pattern(60)});
    rig.step();
    EXPECT_EQ(a.count(), 0);
    EXPECT_EQ(b.count(), 1);
    EXPECT_FALSE(far->receive().empty());
}

TEST_F(EngineFlow, ADropRuleTakesTheFrame) {
    rig.make_flow(a.qp, FlowType::kAllDefault);
    make_rule(b, [](FlowMatch& match) { match_mac(match, kStation); })->drop = true;
    rig.changed();
    deliver(make_packet({}));
    EXPECT_EQ(a.count() + b.count(), 0);
    EXPECT_EQ(rig.counters().rx_no_flow, 0u);
}

TEST_F(EngineFlow, TheTagIsInTheCqe) {
    Flow* flow = make_rule(a, [](FlowMatch&) {});
    flow->has_tag = true;
    flow->tag = 0xabcdef;
    rig.changed();
    deliver(make_packet({}));
    EXPECT_EQ(a.cq->poll()->sop_drop_qpn.get(), 0xabcdefu);
}

TEST_F(EngineFlow, ARemovedRuleTakesNothing) {
    Flow* flow = rig.make_flow(a.qp);
    deliver(make_packet({}));
    rig.device.flows.erase(flow->handle);
    rig.changed();
    deliver(make_packet({}));
    EXPECT_EQ(a.count(), 1);
}

struct HeaderCase {
    const char* name;
    std::function<void(FlowMatch&)> fill;
    PacketOptions matching;
    PacketOptions other;
};

class EngineFlowHeader : public EngineFlow, public ::testing::WithParamInterface<HeaderCase> {};

TEST_P(EngineFlowHeader, TakesWhatMatchesAndNothingElse) {
    make_rule(a, GetParam().fill);
    deliver(make_packet(GetParam().other));
    EXPECT_EQ(a.count(), 0);
    deliver(make_packet(GetParam().matching));
    EXPECT_EQ(a.count(), 1);
}

const HeaderCase kHeaderCases[] = {
    {"EtherType",
     [](FlowMatch& match) {
         match.has_ethernet = true;
         match.ether_type = 0x86dd;
         match.ether_type_mask = 0xffff;
     },
     {.ipv6 = true, .src_ip = "fe80::1", .dst_ip = "fe80::2"},
     {}},
    {"EtherTypeBehindTheTag",
     [](FlowMatch& match) {
         match.has_ethernet = true;
         match.ether_type = 0x0800;
         match.ether_type_mask = 0xffff;
     },
     {.vlans = {7}},
     {.ipv6 = true, .src_ip = "fe80::1", .dst_ip = "fe80::2"}},
    {"SourceMac",
     [](FlowMatch& match) {
         match.has_ethernet = true;
         match.src_mac = {0x02, 0, 0, 0, 0, 5};
         match.src_mac_mask.fill(0xff);
     },
     {.src = {0x02, 0, 0, 0, 0, 5}},
     {}},
    {"Vlan",
     [](FlowMatch& match) {
         match.has_vlan = true;
         match.vlan_tci = 0x123;
         match.vlan_tci_mask = 0xfff;
     },
     {.vlans = {0xe123}},
     {.vlans = {0xe124}}},
    {"UntaggedIsNotVlan0",
     [](FlowMatch& match) {
         match.has_vlan = true;
         match.vlan_tci_mask = 0xfff;
     },
     {.vlans = {0}},
     {}},
    {"Ipv4Destination",
     [](FlowMatch& match) {
         match.has_ipv4 = true;
         match.ipv4_dst = 0x0a010200;
         match.ipv4_dst_mask = 0xffffff00;
     },
     {.dst_ip = "10.1.2.99"},
     {.dst_ip = "10.1.3.99"}},
    {"Ipv4Source",
     [](FlowMatch& match) {
         match.has_ipv4 = true;
         match.ipv4_src = 0x0a010203;
         match.ipv4_src_mask = 0xffffffff;
     },
     {.src_ip = "10.1.2.3"},
     {.src_ip = "10.1.2.4"}},
    {"IpProtocol",
     [](FlowMatch& match) {
         match.has_ipv4 = true;
         match.ip_protocol = 6;
         match.ip_protocol_mask = 0xff;
     },
     {.protocol = 6},
     {.protocol = 17}},
    {"Ipv6Destination",
     [](FlowMatch& match) {
         match.has_ipv6 = true;
         match.ipv6_dst = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
         match.ipv6_dst_mask.fill(0xff);
     },
     {.ipv6 = true, .src_ip = "fe80::1", .dst_ip = "fe80::2"},
     {.ipv6 = true, .src_ip = "fe80::1", .dst_ip = "fe80::3"}},
    {"UdpDestinationPort",
     [](FlowMatch& match) {
         match.has_ipv4 = true;
         match.has_udp = true;
         match.l4_dst = 4791;
         match.l4_dst_mask = 0xffff;
     },
     {.dst_port = 4791},
     {.dst_port = 4790}},
    {"UdpIsNotTcp",
     [](FlowMatch& match) {
         match.has_udp = true;
         match.l4_dst = 4791;
         match.l4_dst_mask = 0xffff;
     },
     {.ipv6 = true, .src_ip = "::1", .dst_ip = "::2", .dst_port = 4791},
     {.protocol = 6, .dst_port = 4791}},
    {"TcpSourcePort",
     [](FlowMatch& match) {
         match.has_tcp = true;
         match.l4_src = 80;
         match.l4_src_mask = 0xffff;
     },
     {.protocol = 6, .src_port = 80},
     {.protocol = 6, .src_port = 81}},
    {"PortsOfAFragmentAreUnknown",
     [](FlowMatch& match) { match.has_udp = true; },
     {},
     {.fragment = 0x2000}},
};

INSTANTIATE_TEST_SUITE_P(Headers, EngineFlowHeader, ::testing::ValuesIn(kHeaderCases),
                         [](const auto& info) { return info.param.name; });

// Frames to an address of the port itself turn around inside the card.
class EngineLoopback : public EngineFlow {
  protected:
    std::unique_ptr<ClientSq> sq = rig.make_sender(*cq);

    void send_to(const MacAddress& mac) {
        sq->post({.inline_data = make_packet({.dst = mac})});
        rig.step();
    }
};

TEST_F(EngineLoopback, TheAddressOfThePortDoesNotReachTheWire) {
    make_rule(a, [&](FlowMatch& match) { match_mac(match, rig.device.port.mac); });
    send_to(rig.device.port.mac);
    EXPECT_EQ(a.count(), 1);
    EXPECT_TRUE(far->receive().empty());
    EXPECT_EQ(rig.counters().tx_packets, 1u);
    EXPECT_EQ(rig.counters().rx_packets, 1u);
}

TEST_F(EngineLoopback, SoDoesAUnicastAddressThatARuleNames) {
    make_rule(a, [](FlowMatch& match) { match_mac(match, kStation); });
    send_to(kStation);
    EXPECT_EQ(a.count(), 1);
    EXPECT_TRUE(far->receive().empty());
}

TEST_F(EngineLoopback, EverythingElseLeaves) {
    rig.make_flow(a.qp, FlowType::kAllDefault);
    make_rule(b, [](FlowMatch& match) { match_mac(match, kGroup); });
    for (const MacAddress& mac : {kStation, kGroup}) {
        send_to(mac);
        EXPECT_FALSE(far->receive().empty());
        far->release();
    }
    EXPECT_EQ(a.count() + b.count(), 0);
}

TEST_F(EngineFlow, ASnifferSeesNoFrameThatTheMacDrops) {
    rig.make_flow(b.qp, FlowType::kSniffer);
    deliver(Bytes(13, 0x5a));
    deliver(Bytes(10200, 0x5a));
    EXPECT_EQ(b.count(), 0);
    EXPECT_EQ(rig.counters().rx_too_short, 1u);
    EXPECT_EQ(rig.counters().rx_too_long, 1u);
    EXPECT_EQ(rig.counters().rx_packets, 0u);
}

}  // namespace
}  // namespace softcx::test
