// SPDX-License-Identifier: BSD-3-Clause
// What a packet's offload flags ask for, on each way of sending.
#include <rte_errno.h>
#include <rte_ip.h>
#include <rte_malloc.h>
#include <rte_tcp.h>

#include <algorithm>

#include "drivers/net/mlx5raw/wqe.h"
#include "test/mlx5raw/port_fixture.h"

namespace tagwire::mlx5raw {
namespace {

constexpr uint64_t kAllOffloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM |
                                  RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM |
                                  RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_VLAN_INSERT;
constexpr uint16_t kTci = 0x6123;
constexpr size_t kMacAddresses = 12;
constexpr size_t kL4Header = sizeof(rte_tcp_hdr);

const FlowAddresses kV4{{10, 0, 0, 1}, {10, 0, 0, 2}, 1000, 2000};
const FlowAddresses kV6{std::vector<uint8_t>(16, 0x21), std::vector<uint8_t>(16, 0x22), 1000, 2000};

class TxOffloads : public PortPair, public testing::WithParamInterface<const char*> {
  protected:
    void open_port() { open({.devargs = GetParam(), .tx_offloads = kAllOffloads}); }

    static size_t l3_size(const FlowAddresses& flow) {
        return flow.source.size() == 4 ? sizeof(rte_ipv4_hdr) : sizeof(rte_ipv6_hdr);
    }
    // In segments of at most 2,000 bytes; a short first one when `split` says so.
    static std::vector<size_t> cuts_of(size_t size, size_t split) {
        std::vector<size_t> cuts;
        for (size_t at = split != 0 ? split : 2000; at < size; at += 2000) {
            cuts.push_back(at);
        }
        return cuts;
    }
    rte_mbuf* large_send(const Frame& frame, const FlowAddresses& flow, uint16_t mss,
                         size_t split = 0) {
        rte_mbuf* const packet = make_mbuf(frame, cuts_of(frame.size(), split));
        packet->l2_len = RTE_ETHER_HDR_LEN;
        packet->l3_len = l3_size(flow);
        packet->l4_len = kL4Header;
        packet->tso_segsz = mss;
        packet->ol_flags |= RTE_MBUF_F_TX_TCP_SEG |
                            (flow.source.size() == 4 ? RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM
                                                     : RTE_MBUF_F_TX_IPV6);
        return packet;
    }
    // What a large send must become: the header adapted to each part of the payload.
    static std::vector<Frame> segments_of(const Frame& frame, const FlowAddresses& flow,
                                          size_t mss) {
        const size_t header = RTE_ETHER_HDR_LEN + l3_size(flow) + kL4Header;
        std::vector<Frame> result;
        for (size_t at = header; at < frame.size(); at += mss) {
            Frame part(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(header));
            const size_t end = std::min(frame.size(), at + mss);
            part.insert(part.end(), frame.begin() + static_cast<ptrdiff_t>(at),
                        frame.begin() + static_cast<ptrdiff_t>(end));
            uint8_t* const l3 = &part[RTE_ETHER_HDR_LEN];
            auto* tcp = reinterpret_cast<rte_tcp_hdr*>(l3 + l3_size(flow));
            tcp->sent_seq = rte_cpu_to_be_32(rte_be_to_cpu_32(tcp->sent_seq) +
                                             static_cast<uint32_t>(at - header));
            tcp->cksum = 0;
            if (flow.source.size() == 4) {
                auto* ip = reinterpret_cast<rte_ipv4_hdr*>(l3);
                ip->total_length =
                    rte_cpu_to_be_16(static_cast<uint16_t>(part.size() - RTE_ETHER_HDR_LEN));
                ip->packet_id = rte_cpu_to_be_16(
                    static_cast<uint16_t>(rte_be_to_cpu_16(ip->packet_id) + result.size()));
                ip->hdr_checksum = 0;
                ip->hdr_checksum = rte_ipv4_cksum(ip);
                tcp->cksum = rte_ipv4_udptcp_cksum(ip, tcp);
            } else {
                auto* ip = reinterpret_cast<rte_ipv6_hdr*>(l3);
                ip->payload_len = rte_cpu_to_be_16(
                    static_cast<uint16_t>(part.size() - RTE_ETHER_HDR_LEN - sizeof(*ip)));
                tcp->cksum = rte_ipv6_udptcp_cksum(ip, tcp);
            }
            result.push_back(std::move(part));
        }
        return result;
    }
    // The template of a large send: its length fields and checksums mean nothing.
    Frame large_frame(const FlowAddresses& flow, size_t payload) const {
        Frame frame = ip_frame(mac_of(ports[1]), flow, IPPROTO_TCP, payload);
        uint8_t* const l3 = &frame[RTE_ETHER_HDR_LEN];
        auto* tcp = reinterpret_cast<rte_tcp_hdr*>(l3 + l3_size(flow));
        tcp->sent_seq = rte_cpu_to_be_32(0xfffffff0);  // wraps
        tcp->cksum = 0x1234;
        if (flow.source.size() == 4) {
            reinterpret_cast<rte_ipv4_hdr*>(l3)->packet_id = rte_cpu_to_be_16(0xfffe);
        }
        return frame;
    }
    void expect_frames(const std::vector<Frame>& expected) {
        settle();
        const std::vector<Received> got = receive(ports[1]);
        ASSERT_EQ(got.size(), expected.size());
        for (size_t i = 0; i < got.size(); ++i) {
            // A card pads; what is behind the packet is not looked at.
            ASSERT_EQ(got[i].bytes.size(), std::max<size_t>(expected[i].size(), 60)) << i;
            const Frame bytes(got[i].bytes.begin(),
                              got[i].bytes.begin() + static_cast<ptrdiff_t>(expected[i].size()));
            ASSERT_EQ(bytes, expected[i]) << i;
        }
    }
};

TEST_P(TxOffloads, LargeSendsLeaveAsSegments) {
    open_port();
    uint64_t frames = 0;
    uint64_t bytes = 0;
    for (const FlowAddresses& flow : {kV4, kV6}) {
        for (const size_t mss : {size_t{64}, size_t{1000}, size_t{1440}}) {
            for (const size_t payload : {size_t{1}, mss - 1, mss, mss + 1, 20 * mss + 7}) {
                for (const size_t split : {0, 1, 14, 30, 54, 74, 100}) {
                    const Frame frame = large_frame(flow, payload);
                    if (split >= frame.size()) {
                        continue;
                    }
                    const std::vector<Frame> expected = segments_of(frame, flow, mss);
                    send(ports[0], 0, {large_send(frame, flow, static_cast<uint16_t>(mss), split)});
                    expect_frames(expected);
                    if (HasFatalFailure()) {
                        FAIL() << "mss " << mss << " payload " << payload << " split " << split;
                    }
                    frames += expected.size();
                    for (const Frame& e : expected) {
                        bytes += e.size();
                    }
                }
            }
        }
    }
    EXPECT_EQ(stats_of(ports[0]).opackets, frames);
    EXPECT_EQ(stats_of(ports[0]).obytes, bytes);
    EXPECT_EQ(stats_of(ports[0]).oerrors, 0u);
}

TEST_P(TxOffloads, ALargeSendOf64KilobytesFitsOneRequest) {
    open_port();
    const Frame frame = large_frame(kV4, 65000);
    send(ports[0], 0, {large_send(frame, kV4, 1448)});
    expect_frames(segments_of(frame, kV4, 1448));
}

TEST_P(TxOffloads, ALargeSendMayHaveATag) {
    open_port();
    const Frame frame = large_frame(kV4, 5000);
    rte_mbuf* const packet = large_send(frame, kV4, 1000, 7);
    packet->ol_flags |= RTE_MBUF_F_TX_VLAN;
    packet->vlan_tci = kTci;
    std::vector<Frame> expected;
    for (const Frame& segment : segments_of(frame, kV4, 1000)) {
        expected.push_back(vlan_frame(segment, kTci));
    }
    send(ports[0], 0, {packet});
    expect_frames(expected);
    EXPECT_EQ(stats_of(ports[0]).opackets, 5u);
    EXPECT_EQ(stats_of(ports[0]).obytes, 5 * (54 + 4 + 1000u));
}

TEST_P(TxOffloads, TagsAreInserted) {
    open_port();
    std::vector<rte_mbuf*> packets;
    std::vector<Frame> expected;
    for (const size_t size : {60, 61, 64, 100, 150, 301, 900, 1514}) {
        for (const std::vector<size_t>& cuts :
             std::vector<std::vector<size_t>>{{}, {5}, {12}, {14}, {5, 9, 17}, {18, 50}}) {
            expected.push_back(ethernet_frame(size));
            packets.push_back(make_mbuf(expected.back(), cuts));
            // Between packets without.
            if (packets.size() % 3 != 0) {
                packets.back()->ol_flags |= RTE_MBUF_F_TX_VLAN;
                packets.back()->vlan_tci = static_cast<uint16_t>(kTci + packets.size());
                expected.back() = vlan_frame(expected.back(), packets.back()->vlan_tci);
            }
        }
    }
    send(ports[0], 0, packets);
    expect_frames(expected);
}

TEST_P(TxOffloads, EachPacketOfABurstGetsTheChecksumsThatItAsksFor) {
    open_port();
    std::vector<rte_mbuf*> packets;
    std::vector<Frame> expected;
    // In runs of one to four packets, so that sends begin and end everywhere.
    for (int i = 0; i < 60; ++i) {
        const int kind = i / (1 + i % 4) % 4;
        const uint8_t protocol = i % 2 == 0 ? IPPROTO_TCP : IPPROTO_UDP;
        const Frame right =
            ip_frame(mac_of(ports[1]), kV4, protocol, 60 + static_cast<size_t>(i) * 10);
        Frame frame = right;
        if ((kind & 1) != 0) {
            frame[RTE_ETHER_HDR_LEN + 10] ^= 0xff;
        }
        if ((kind & 2) != 0) {
            frame[RTE_ETHER_HDR_LEN + 20 + (protocol == IPPROTO_TCP ? 16 : 6)] ^= 0xff;
        }
        rte_mbuf* const packet = make_mbuf(frame);
        packet->l2_len = RTE_ETHER_HDR_LEN;
        packet->l3_len = sizeof(rte_ipv4_hdr);
        packet->ol_flags |= RTE_MBUF_F_TX_IPV4;
        if ((kind & 1) != 0) {
            packet->ol_flags |= RTE_MBUF_F_TX_IP_CKSUM;
        }
        if ((kind & 2) != 0) {
            packet->ol_flags |=
                protocol == IPPROTO_TCP ? RTE_MBUF_F_TX_TCP_CKSUM : RTE_MBUF_F_TX_UDP_CKSUM;
        }
        packets.push_back(packet);
        expected.push_back(right);
    }
    EXPECT_EQ(rte_eth_tx_prepare(ports[0], 0, packets.data(), 60), 60);
    send(ports[0], 0, packets);
    expect_frames(expected);
}

TEST_P(TxOffloads, ABadLargeSendIsDroppedAndCounted) {
    open_port();
    const Frame frame = large_frame(kV4, 3000);
    const auto bad = [&](const std::function<void(rte_mbuf&)>& spoil) {
        rte_mbuf* const packet = large_send(frame, kV4, 1000);
        spoil(*packet);
        return packet;
    };
    const std::vector<rte_mbuf*> packets = {
        bad([](rte_mbuf& m) { m.tso_segsz = 0; }),
        bad([](rte_mbuf& m) { m.l2_len = 0, m.l3_len = 0, m.l4_len = 0; }),
        bad([](rte_mbuf& m) { m.l2_len = 127, m.l3_len = 60; }),
        bad([](rte_mbuf& m) { m.l3_len = 511, m.l4_len = 255; }), make_mbuf(ethernet_frame(70))};
    for (size_t i = 0; i + 1 < packets.size(); ++i) {
        rte_mbuf* packet = packets[i];
        rte_errno = 0;
        EXPECT_EQ(rte_eth_tx_prepare(ports[0], 0, &packet, 1), 0) << i;
        EXPECT_EQ(rte_errno, EINVAL) << i;
    }
    send(ports[0], 0, packets);
    expect_frames({ethernet_frame(70)});
    EXPECT_EQ(xstats_of(ports[0])["tx_q0_dropped_bad_tso"], 4u);
    EXPECT_EQ(stats_of(ports[0]).oerrors, 4u);
    EXPECT_EQ(stats_of(ports[0]).opackets, 1u);
}

TEST_P(TxOffloads, ALargeSendBeyondTheCardIsDroppedAndCounted) {
    open_port();
    constexpr uint16_t kPart = 60000;  // five of them pass the card's 256 KiB
    auto* const data = static_cast<uint8_t*>(rte_zmalloc(nullptr, kPart, 0));
    ASSERT_NE(data, nullptr);
    rte_mbuf_ext_shared_info info = {};
    info.free_cb = [](void*, void*) {};
    rte_mbuf_ext_shared_info* const shared = &info;
    rte_mbuf_ext_refcnt_set(shared, 1);
    rte_mbuf* const packet = large_send(large_frame(kV4, 100), kV4, 1000);
    for (int i = 0; i < 5; ++i) {
        rte_mbuf* const part = rte_pktmbuf_alloc(pool);
        rte_mbuf_ext_refcnt_update(shared, 1);
        rte_pktmbuf_attach_extbuf(part, data, RTE_BAD_IOVA, kPart, shared);
        rte_pktmbuf_append(part, kPart);
        ASSERT_EQ(rte_pktmbuf_chain(packet, part), 0);
    }
    rte_mbuf* one = packet;
    EXPECT_EQ(rte_eth_tx_prepare(ports[0], 0, &one, 1), 0);
    send(ports[0], 0, {packet});
    expect_frames({});
    EXPECT_EQ(xstats_of(ports[0])["tx_q0_dropped_bad_tso"], 1u);
    EXPECT_EQ(rte_mbuf_ext_refcnt_read(shared), 1);
    rte_free(data);
}

TEST_P(TxOffloads, PrepareNamesTheFirstPacketThatCannotBeSent) {
    open_port();
    struct Bad {
        const char* what;
        std::function<void(rte_mbuf&)> spoil;
        int error;
    };
    const Bad kBad[] = {
        {"too short", [](rte_mbuf& m) { m.data_len = m.pkt_len = 13; }, EINVAL},
        {"too long", [](rte_mbuf& m) { m.pkt_len = 20000; }, EINVAL},
        {"too many segments", [](rte_mbuf& m) { m.nb_segs = kMaxTxSegments + 1; }, EINVAL},
        {"SCTP", [](rte_mbuf& m) { m.ol_flags |= RTE_MBUF_F_TX_SCTP_CKSUM; }, ENOTSUP},
        {"QinQ", [](rte_mbuf& m) { m.ol_flags |= RTE_MBUF_F_TX_QINQ; }, ENOTSUP},
        {"outer", [](rte_mbuf& m) { m.ol_flags |= RTE_MBUF_F_TX_OUTER_IP_CKSUM; }, ENOTSUP},
        {"UDP segments", [](rte_mbuf& m) { m.ol_flags |= RTE_MBUF_F_TX_UDP_SEG; }, ENOTSUP},
        {"IPv6 with an IP checksum",
         [](rte_mbuf& m) { m.ol_flags |= RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_IP_CKSUM; }, EINVAL},
    };
    std::vector<rte_mbuf*> packets;
    for (int i = 0; i < 5; ++i) {
        packets.push_back(make_mbuf(ethernet_frame(100)));
    }
    EXPECT_EQ(rte_eth_tx_prepare(ports[0], 0, packets.data(), 5), 5);
    for (const Bad& bad : kBad) {
        rte_mbuf& victim = *packets[3];
        bad.spoil(victim);
        rte_errno = 0;
        EXPECT_EQ(rte_eth_tx_prepare(ports[0], 0, packets.data(), 5), 3) << bad.what;
        EXPECT_EQ(rte_errno, bad.error) << bad.what;
        victim.data_len = 100;
        victim.pkt_len = 100;
        victim.nb_segs = 1;
        victim.ol_flags = 0;
    }
    rte_pktmbuf_free_bulk(packets.data(), 5);
}

INSTANTIATE_TEST_SUITE_P(Each, TxOffloads,
                         testing::Values("", "tx_vec_en=0", "txq_inline_mpw=200", "txq_mpw_en=0",
                                         "txq_mpw_en=0,txq_inline_min=18",
                                         "txq_mpw_en=0,txq_inline_min=78",
                                         "txq_mpw_en=0,txq_inline_max=300"));

class TxPrepare : public PortPair {};

TEST_F(TxPrepare, KnowsWhatTheQueueWasConfiguredFor) {
    open({.tx_offloads = RTE_ETH_TX_OFFLOAD_UDP_CKSUM});
    rte_mbuf* packet = make_mbuf(ethernet_frame(100));
    const auto prepared = [&](uint64_t flags) {
        packet->ol_flags = flags;
        return rte_eth_tx_prepare(ports[0], 0, &packet, 1) == 1;
    };
    EXPECT_TRUE(prepared(RTE_MBUF_F_TX_IPV4));
    EXPECT_TRUE(prepared(RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_UDP_CKSUM));
    EXPECT_FALSE(prepared(RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_TCP_CKSUM));
    EXPECT_FALSE(prepared(RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM));
    EXPECT_FALSE(prepared(RTE_MBUF_F_TX_VLAN));
    packet->ol_flags = 0;
    packet->nb_segs = 2;  // a queue without MULTI_SEGS
    EXPECT_FALSE(prepared(0));
    packet->nb_segs = 1;
    rte_pktmbuf_free(packet);
}

}  // namespace
}  // namespace tagwire::mlx5raw
