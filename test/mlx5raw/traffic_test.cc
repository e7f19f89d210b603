// SPDX-License-Identifier: BSD-3-Clause
// Frames from one port to the other.
#include <rte_malloc.h>

#include "drivers/net/mlx5raw/wqe.h"
#include "drivers/softcx/softcx.h"
#include "test/mlx5raw/port_fixture.h"

namespace tagwire::mlx5raw {
namespace {

class Traffic : public PortPair {};

TEST_F(Traffic, FramesOfEverySizeArriveBitForBit) {
    open();
    for (size_t size = 60; size <= 1514; ++size) {
        const Frame frame = ethernet_frame(size);
        const std::vector<Received> got = exchange(frame);
        ASSERT_EQ(got.size(), 1u) << size;
        ASSERT_EQ(got[0].bytes, frame) << size;
        ASSERT_EQ(got[0].segments, 1) << size;
    }
}

TEST_F(Traffic, BothDirectionsAndAllQueuesSend) {
    open();
    for (uint16_t from = 0; from < 2; ++from) {
        for (uint16_t queue = 0; queue < 2; ++queue) {
            Frame frame = ethernet_frame_to(mac_of(ports[1 - from]), 100 + queue);
            send(ports[from], queue, frame);
            settle();
            const std::vector<Received> got = receive(ports[1 - from]);
            ASSERT_EQ(got.size(), 1u);
            EXPECT_EQ(got[0].bytes, frame);
        }
    }
}

TEST_F(Traffic, ALongRunWrapsEveryRing) {
    open({.descriptors = 64});
    constexpr uint32_t kRounds = 5000;  // past 16 bits of WQE counter, 32 frames each
    uint64_t received = 0;
    const Frame frame = ethernet_frame(64);
    for (uint32_t round = 0; round < kRounds; ++round) {
        std::vector<rte_mbuf*> packets;
        for (int i = 0; i < 32; ++i) {
            packets.push_back(make_mbuf(frame));
        }
        send(ports[0], 1, packets);
        settle();
        for (const Received& got : receive(ports[1])) {
            ASSERT_EQ(got.bytes, frame);
            ++received;
        }
    }
    EXPECT_EQ(received, uint64_t{kRounds} * 32);
    EXPECT_EQ(softcx_counter("mlx5_0", "client_errors"), 0u);
    EXPECT_EQ(softcx_counter("mlx5_1", "client_errors"), 0u);
}

TEST_F(Traffic, SegmentsAreGathered) {
    open();
    const Frame frame = ethernet_frame(1514);
    const std::vector<std::vector<size_t>> cuttings = {
        {14}, {1}, {1513}, {13, 14, 15}, {100, 200, 201, 700, 1000}, {700, 700}, {0, 14}};
    for (const std::vector<size_t>& cuts : cuttings) {
        const std::vector<Received> got = exchange(frame, cuts);
        ASSERT_EQ(got.size(), 1u);
        EXPECT_EQ(got[0].bytes, frame);
    }
}

TEST_F(Traffic, AsManySegmentsAsThePortPromises) {
    open();
    rte_eth_dev_info info;
    ASSERT_EQ(rte_eth_dev_info_get(ports[0], &info), 0);
    const Frame frame = ethernet_frame(1000);
    std::vector<size_t> cuts;
    for (size_t i = 1; i < info.tx_desc_lim.nb_seg_max; ++i) {
        cuts.push_back(i * 15);
    }
    // Often enough to wrap the ring at every position.
    for (int i = 0; i < 300; ++i) {
        const std::vector<Received> got = exchange(frame, cuts);
        ASSERT_EQ(got.size(), 1u);
        ASSERT_EQ(got[0].bytes, frame);
    }
    while (cuts.size() < kMaxOctowords - kHeaderOctowords) {
        cuts.push_back(cuts.back() + 1);
    }
    EXPECT_TRUE(exchange(frame, cuts).empty());
    EXPECT_EQ(xstats_of(ports[0])["tx_q0_dropped_too_many_segments"], 1u);
}

TEST_F(Traffic, AnInlineHeaderChangesNothingOnTheWire) {
    open({.devargs = "txq_inline_min=18"});
    for (const size_t size : {60, 61, 64, 100, 1514}) {
        const Frame frame = ethernet_frame(size);
        for (const std::vector<size_t>& cuts :
             std::vector<std::vector<size_t>>{{}, {5}, {5, 9, 17}, {18}, {19}, {5, 40}}) {
            const std::vector<Received> got = exchange(frame, cuts);
            ASSERT_EQ(got.size(), 1u) << size;
            ASSERT_EQ(got[0].bytes, frame) << size;
        }
    }
}

TEST_F(Traffic, JumboFramesAreScattered) {
    open({.mtu = 9000, .rx_offloads = RTE_ETH_RX_OFFLOAD_SCATTER | RTE_ETH_RX_OFFLOAD_CHECKSUM});
    for (const size_t size : {60, 1514, 2048, 2049, 4096, 6000, 8192, 8193, 9014}) {
        const Frame frame = ethernet_frame(size);
        std::vector<size_t> cuts;
        for (size_t cut = 2000; cut < size; cut += 2000) {
            cuts.push_back(cut);
        }
        const std::vector<Received> got = exchange(frame, cuts);
        ASSERT_EQ(got.size(), 1u) << size;
        ASSERT_EQ(got[0].bytes, frame) << size;
        ASSERT_EQ(got[0].segments, (size + 2047) / 2048) << size;
    }
}

TEST_F(Traffic, AShortPacketIsDroppedAndCounted) {
    open();
    EXPECT_TRUE(exchange(Frame(13)).empty());
    EXPECT_EQ(xstats_of(ports[0])["tx_q0_dropped_too_short"], 1u);
    EXPECT_EQ(stats_of(ports[0]).oerrors, 1u);
    EXPECT_EQ(stats_of(ports[0]).opackets, 0u);
}

void count_release(void*, void* counter) {
    ++*static_cast<int*>(counter);
}

rte_mbuf* external_mbuf(rte_mempool* pool, uint8_t* data, uint16_t length,
                        rte_mbuf_ext_shared_info* info) {
    rte_mbuf* const mbuf = rte_pktmbuf_alloc(pool);
    rte_pktmbuf_attach_extbuf(mbuf, data, reinterpret_cast<rte_iova_t>(data), length, info);
    rte_pktmbuf_append(mbuf, length);
    return mbuf;
}

TEST_F(Traffic, ExternalBuffersInDpdkMemoryAreSentInPlace) {
    open();
    int released = 0;
    rte_mbuf_ext_shared_info info = {};
    info.free_cb = count_release;
    info.fcb_opaque = &released;
    rte_mbuf_ext_refcnt_set(&info, 1);
    const Frame frame = ethernet_frame(700);
    auto* data = static_cast<uint8_t*>(rte_malloc(nullptr, frame.size(), 0));
    memcpy(data, frame.data(), frame.size());

    send(ports[0], 0, {external_mbuf(pool, data, static_cast<uint16_t>(frame.size()), &info)});
    settle();

    const std::vector<Received> got = receive(ports[1]);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].bytes, frame);
    close();
    EXPECT_EQ(released, 1);
    rte_free(data);
}

TEST_F(Traffic, MemoryThatDpdkDoesNotKnowIsRefused) {
    open();
    int released = 0;
    rte_mbuf_ext_shared_info info = {};
    info.free_cb = count_release;
    info.fcb_opaque = &released;
    rte_mbuf_ext_refcnt_set(&info, 1);
    static uint8_t unknown[2048];

    send(ports[0], 0, {external_mbuf(pool, unknown, 700, &info)});
    settle();

    EXPECT_TRUE(receive(ports[1]).empty());
    EXPECT_EQ(released, 1);
    EXPECT_EQ(xstats_of(ports[0])["tx_q0_dropped_no_memory_key"], 1u);
}

TEST_F(Traffic, FastFreeReturnsWholeChains) {
    open({.tx_offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE});
    const Frame frame = ethernet_frame(1000);
    for (int i = 0; i < 500; ++i) {
        ASSERT_EQ(exchange(frame, {10, 500, 900}).size(), 1u);
    }
}

TEST_F(Traffic, AnMbufThatSomebodyElseHoldsIsOnlyReleased) {
    open();
    rte_mbuf* const packet = make_mbuf(ethernet_frame(200));
    rte_mbuf_refcnt_update(packet, 1);
    send(ports[0], 0, {packet});
    settle();
    EXPECT_EQ(receive(ports[1]).size(), 1u);
    close();
    EXPECT_EQ(rte_mbuf_refcnt_read(packet), 1);
    rte_pktmbuf_free(packet);
}

TEST_F(Traffic, AnEmptyPoolDelaysButDoesNotBreakTheQueue) {
    open({.descriptors = 64});
    std::vector<rte_mbuf*> hoard;
    while (rte_mbuf* const mbuf = rte_pktmbuf_alloc(pool)) {
        hoard.push_back(mbuf);
    }
    for (int i = 0; i < 40; ++i) {
        rte_pktmbuf_free(hoard.back());
        hoard.pop_back();
    }
    const Frame frame = ethernet_frame(64);
    std::vector<rte_mbuf*> packets;
    for (int i = 0; i < 40; ++i) {
        packets.push_back(make_mbuf(frame));
    }
    send(ports[0], 0, packets);
    settle();
    // The application keeps what it receives: the pool stays empty.
    rte_mbuf* kept[64];
    uint16_t held = rte_eth_rx_burst(ports[1], 0, kept, 64);
    EXPECT_EQ(held, 40);
    EXPECT_GT(stats_of(ports[1]).rx_nombuf, 0u);
    rte_pktmbuf_free_bulk(kept, held);
    rte_pktmbuf_free_bulk(hoard.data(), static_cast<unsigned>(hoard.size()));
    for (int i = 0; i < 200; ++i) {
        ASSERT_EQ(exchange(frame).size(), 1u) << i;
    }
}

TEST_F(Traffic, StatisticsCountEveryPacketOnce) {
    open();
    constexpr int kPackets = 100;
    const Frame frame = ethernet_frame(200);
    for (int i = 0; i < kPackets; ++i) {
        send(ports[0], 1, frame);
    }
    settle();
    ASSERT_EQ(receive(ports[1]).size(), size_t{kPackets});
    rte_eth_tx_done_cleanup(ports[0], 1, 0);

    const rte_eth_stats tx = stats_of(ports[0]);
    const rte_eth_stats rx = stats_of(ports[1]);
    EXPECT_EQ(tx.opackets, uint64_t{kPackets});
    EXPECT_EQ(tx.obytes, uint64_t{kPackets} * 200);
    EXPECT_EQ(tx.q_opackets[0], 0u);
    EXPECT_EQ(tx.q_opackets[1], uint64_t{kPackets});
    EXPECT_EQ(rx.ipackets, uint64_t{kPackets});
    EXPECT_EQ(rx.ibytes, uint64_t{kPackets} * 200);
    EXPECT_EQ(rx.q_ipackets[0], uint64_t{kPackets});
    EXPECT_EQ(rx.ierrors + rx.rx_nombuf + tx.oerrors, 0u);
    const std::map<std::string, uint64_t> xstats = xstats_of(ports[0]);
    // The clean-up asked for the completion of the last ones.
    EXPECT_EQ(xstats.at("tx_q1_doorbells"), uint64_t{kPackets} + 1);
    EXPECT_GE(xstats.at("tx_q1_completions"), 1u);

    rte_eth_stats_reset(ports[0]);
    rte_eth_xstats_reset(ports[1]);
    EXPECT_EQ(stats_of(ports[0]).opackets, 0u);
    EXPECT_EQ(stats_of(ports[1]).ipackets, 0u);
    EXPECT_EQ(xstats_of(ports[0])["tx_q1_doorbells"], 0u);
}

TEST_F(Traffic, ChecksumsAreVerified) {
    open();
    const FlowAddresses v4{{10, 0, 0, 1}, {10, 0, 0, 2}, 1000, 2000};
    const FlowAddresses v6{std::vector<uint8_t>(16, 0x21), std::vector<uint8_t>(16, 0x22), 1, 2};
    struct Case {
        const FlowAddresses& flow;
        uint8_t protocol;
        Broken broken;
        uint64_t ip, l4;
    };
    const Case cases[] = {
        {v4, IPPROTO_UDP, Broken::kNothing, RTE_MBUF_F_RX_IP_CKSUM_GOOD,
         RTE_MBUF_F_RX_L4_CKSUM_GOOD},
        {v4, IPPROTO_TCP, Broken::kNothing, RTE_MBUF_F_RX_IP_CKSUM_GOOD,
         RTE_MBUF_F_RX_L4_CKSUM_GOOD},
        {v4, IPPROTO_UDP, Broken::kL4, RTE_MBUF_F_RX_IP_CKSUM_GOOD, RTE_MBUF_F_RX_L4_CKSUM_BAD},
        {v4, IPPROTO_TCP, Broken::kL4, RTE_MBUF_F_RX_IP_CKSUM_GOOD, RTE_MBUF_F_RX_L4_CKSUM_BAD},
        {v6, IPPROTO_UDP, Broken::kNothing, 0, RTE_MBUF_F_RX_L4_CKSUM_GOOD},
        {v6, IPPROTO_TCP, Broken::kL4, 0, RTE_MBUF_F_RX_L4_CKSUM_BAD},
    };
    for (const Case& c : cases) {
        const std::vector<Received> got =
            exchange(ip_frame(mac_of(ports[1]), c.flow, c.protocol, 31, c.broken));
        ASSERT_EQ(got.size(), 1u);
        EXPECT_EQ(got[0].flags & RTE_MBUF_F_RX_IP_CKSUM_MASK, c.ip);
        EXPECT_EQ(got[0].flags & RTE_MBUF_F_RX_L4_CKSUM_MASK, c.l4);
        EXPECT_EQ(got[0].packet_type & RTE_PTYPE_L4_MASK,
                  uint32_t(c.protocol == IPPROTO_TCP ? RTE_PTYPE_L4_TCP : RTE_PTYPE_L4_UDP));
    }
    const std::vector<Received> bad_ip =
        exchange(ip_frame(mac_of(ports[1]), v4, IPPROTO_UDP, 31, Broken::kIp));
    ASSERT_EQ(bad_ip.size(), 1u);
    EXPECT_EQ(bad_ip[0].flags & RTE_MBUF_F_RX_IP_CKSUM_MASK, RTE_MBUF_F_RX_IP_CKSUM_BAD);
}

TEST_F(Traffic, ChecksumsAreGenerated) {
    open();
    const FlowAddresses v4{{10, 0, 0, 1}, {10, 0, 0, 2}, 1000, 2000};
    for (const uint8_t protocol : {IPPROTO_UDP, IPPROTO_TCP}) {
        const Frame right = ip_frame(mac_of(ports[1]), v4, protocol, 100);
        Frame wrong = right;
        wrong[RTE_ETHER_HDR_LEN + 10] ^= 0xff;  // IPv4 header checksum
        wrong[RTE_ETHER_HDR_LEN + 20 + (protocol == IPPROTO_TCP ? 16 : 6)] ^= 0xff;
        rte_mbuf* const packet = make_mbuf(wrong);
        packet->l2_len = RTE_ETHER_HDR_LEN;
        packet->l3_len = 20;
        packet->ol_flags |=
            RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM |
            (protocol == IPPROTO_TCP ? RTE_MBUF_F_TX_TCP_CKSUM : RTE_MBUF_F_TX_UDP_CKSUM);
        send(ports[0], 0, {packet});
        settle();
        const std::vector<Received> got = receive(ports[1]);
        ASSERT_EQ(got.size(), 1u);
        EXPECT_EQ(got[0].bytes, right);
    }
}

}  // namespace
}  // namespace tagwire::mlx5raw
