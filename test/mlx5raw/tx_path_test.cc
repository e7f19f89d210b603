// SPDX-License-Identifier: BSD-3-Clause
// What every way of sending has in common: order, content, counters, and no mbuf lost.
#include <random>

#include "drivers/net/mlx5raw/port.h"
#include "drivers/softcx/softcx.h"
#include "test/mlx5raw/port_fixture.h"

namespace tagwire::mlx5raw {
namespace {

constexpr unsigned kLocalProtection = 0x04;
constexpr uint64_t kAllOffloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM |
                                  RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM |
                                  RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_VLAN_INSERT;

struct PathCase {
    TxPath path;
    const char* devargs;
    uint64_t offloads;
};

std::ostream& operator<<(std::ostream& out, const PathCase& c) {
    return out << tx_path_name(c.path) << " (" << c.devargs << ")";
}

class TxPaths : public PortPair, public testing::WithParamInterface<PathCase> {
  protected:
    void SetUp() override {
        if (GetParam().path == TxPath::kMultiPacketAvx2 ||
            GetParam().path == TxPath::kMultiPacketAvx2Offloads) {
            if (!have_avx2()) {
                GTEST_SKIP() << "no AVX2 here";
            }
        }
        PortPair::SetUp();
    }
    void TearDown() override {
        if (!IsSkipped()) {
            PortPair::TearDown();
        }
    }
    bool multi_segment() const {
        return (GetParam().offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
    }
    void open_path(uint16_t descriptors = 256, uint64_t more_offloads = 0) {
        open({.devargs = GetParam().devargs,
              .tx_descriptors = descriptors,
              .tx_offloads = GetParam().offloads | more_offloads});
    }
    TxQueue& queue() { return *tx_queue(&rte_eth_devices[ports[0]], 0); }
    uint64_t counter(const std::string& name) { return xstats_of(ports[0]).at("tx_q0_" + name); }

    // Each frame has its number behind the header.
    Frame numbered(uint32_t number, size_t size) const {
        Frame frame = ethernet_frame(size);
        memcpy(&frame[RTE_ETHER_HDR_LEN], &number, sizeof(number));
        return frame;
    }
    // Everything sent so far is completed and freed.
    void drain() {
        rte_eth_tx_done_cleanup(ports[0], 0, 0);
        settle();
        rte_eth_tx_done_cleanup(ports[0], 0, 0);
    }
};

TEST_P(TxPaths, AreChosenAndNamed) {
    open_path();
    const std::map<std::string, uint64_t> xstats = xstats_of(ports[0]);
    for (unsigned i = 0; i < kTxPaths; ++i) {
        const auto path = static_cast<TxPath>(i);
        EXPECT_EQ(xstats.at(std::string("tx_path_") + tx_path_name(path)),
                  path == GetParam().path ? 1u : 0u)
            << tx_path_name(path);
    }
    rte_eth_burst_mode mode = {};
    ASSERT_EQ(rte_eth_tx_burst_mode_get(ports[0], 0, &mode), 0);
    EXPECT_EQ(std::string(mode.info).find(tx_path_name(GetParam().path)), 0u) << mode.info;
}

TEST_P(TxPaths, MixedBurstsArriveInOrderBitForBit) {
    open_path(64);  // small, so that the rings wrap at every position
    std::mt19937 random(11);
    uint32_t sent = 0;
    uint64_t sent_bytes = 0;
    std::vector<Frame> expected;
    for (int round = 0; round < 700; ++round) {
        std::vector<rte_mbuf*> packets;
        expected.clear();
        const unsigned count = 1 + random() % 40;
        for (unsigned i = 0; i < count; ++i) {
            const size_t size = random() % 3 == 0 ? 60 + random() % 1455 : 60 + random() % 100;
            expected.push_back(numbered(sent++, size));
            sent_bytes += size;
            std::vector<size_t> cuts;
            if (multi_segment() && random() % 8 == 0) {
                cuts = {1 + random() % 40, 41 + random() % 19};
            }
            packets.push_back(make_mbuf(expected.back(), cuts));
        }
        send(ports[0], 0, packets);
        settle();
        const std::vector<Received> got = receive(ports[1]);
        ASSERT_EQ(got.size(), expected.size()) << round;
        for (size_t i = 0; i < got.size(); ++i) {
            ASSERT_EQ(got[i].bytes, expected[i]) << round << " " << i;
        }
    }
    EXPECT_EQ(stats_of(ports[0]).opackets, sent);
    EXPECT_EQ(stats_of(ports[0]).obytes, sent_bytes);
    EXPECT_EQ(stats_of(ports[0]).oerrors, 0u);
    EXPECT_EQ(softcx_counter("mlx5_0", "client_errors"), 0u);
}

TEST_P(TxPaths, FastFreeReturnsEveryMbuf) {
    open_path(64, RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE);
    for (uint32_t round = 0; round < 200; ++round) {
        std::vector<rte_mbuf*> packets;
        for (uint32_t i = 0; i < 33; ++i) {
            packets.push_back(make_mbuf(numbered(i, 60 + i * 40)));
        }
        send(ports[0], 0, packets);
        settle();
        ASSERT_EQ(receive(ports[1]).size(), 33u);
    }
    drain();
    EXPECT_EQ(queue().used_descriptors(), 0u);
    EXPECT_EQ(rte_eth_tx_descriptor_status(ports[0], 0, 0), RTE_ETH_TX_DESC_DONE);
}

TEST_P(TxPaths, AShortPacketAmongOthersIsDroppedAlone) {
    open_path();
    for (size_t position = 0; position < 9; ++position) {
        std::vector<rte_mbuf*> packets;
        for (uint32_t i = 0; i < 9; ++i) {
            packets.push_back(i == position ? make_mbuf(Frame(13)) : make_mbuf(numbered(i, 100)));
        }
        send(ports[0], 0, packets);
        settle();
        const std::vector<Received> got = receive(ports[1]);
        ASSERT_EQ(got.size(), 8u);
        EXPECT_EQ(got[0].bytes, numbered(position == 0 ? 1 : 0, 100));
        EXPECT_EQ(got[7].bytes, numbered(position == 8 ? 7 : 8, 100));
    }
    EXPECT_EQ(counter("dropped_too_short"), 9u);
    EXPECT_EQ(stats_of(ports[0]).opackets, 72u);
    EXPECT_EQ(stats_of(ports[0]).oerrors, 9u);
}

TEST_P(TxPaths, TwoPoolsMayMixInABurst) {
    open_path();
    rte_mempool* const other =
        rte_pktmbuf_pool_create("other", 255, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
    ASSERT_NE(other, nullptr);
    for (int round = 0; round < 50; ++round) {
        std::vector<rte_mbuf*> packets;
        for (uint32_t i = 0; i < 16; ++i) {
            const Frame frame = numbered(i, 60 + i * 50);
            if ((i & 3) != 2) {
                packets.push_back(make_mbuf(frame));
                continue;
            }
            rte_mbuf* const packet = rte_pktmbuf_alloc(other);
            ASSERT_NE(packet, nullptr);
            memcpy(rte_pktmbuf_append(packet, static_cast<uint16_t>(frame.size())), frame.data(),
                   frame.size());
            packets.push_back(packet);
        }
        send(ports[0], 0, packets);
        settle();
        const std::vector<Received> got = receive(ports[1]);
        ASSERT_EQ(got.size(), 16u);
        for (uint32_t i = 0; i < 16; ++i) {
            ASSERT_EQ(got[i].bytes, numbered(i, 60 + i * 50));
        }
    }
    drain();
    EXPECT_EQ(rte_mempool_avail_count(other), 255u);
    close();
    rte_mempool_free(other);
}

TEST_P(TxPaths, SharedAndIndirectMbufsAreOnlyReleased) {
    open_path();
    std::vector<rte_mbuf*> held;
    std::vector<rte_mbuf*> packets;
    for (uint32_t i = 0; i < 12; ++i) {
        rte_mbuf* const packet = make_mbuf(numbered(i, 80 + i * 60));
        rte_mbuf_refcnt_update(packet, 1);
        held.push_back(packet);
        packets.push_back(i % 2 == 0 ? packet : rte_pktmbuf_clone(packet, pool));
    }
    send(ports[0], 0, packets);
    settle();
    EXPECT_EQ(receive(ports[1]).size(), 12u);
    drain();
    for (size_t i = 0; i < held.size(); ++i) {
        EXPECT_EQ(rte_mbuf_refcnt_read(held[i]), i % 2 == 0 ? 1 : 2) << i;
        rte_pktmbuf_free(held[i]);
        if (i % 2 != 0) {
            rte_pktmbuf_free(held[i]);
        }
    }
}

TEST_P(TxPaths, AFullRingTakesWhatFits) {
    open_path(64);
    std::vector<rte_mbuf*> packets;
    for (uint32_t i = 0; i < 200; ++i) {
        packets.push_back(make_mbuf(numbered(i, i % 2 == 0 ? 60 : 900)));
    }
    uint32_t next = 0;
    uint32_t arrived = 0;
    bool was_full = false;
    while (next < packets.size()) {
        // The device rests until the ring is full.
        const uint16_t taken = rte_eth_tx_burst(ports[0], 0, packets.data() + next,
                                                static_cast<uint16_t>(packets.size() - next));
        next += taken;
        was_full |= next < packets.size();
        settle();
        for (const Received& got : receive(ports[1])) {
            ASSERT_EQ(got.bytes, numbered(arrived, arrived % 2 == 0 ? 60 : 900));
            ++arrived;
        }
    }
    EXPECT_TRUE(was_full);
    EXPECT_EQ(arrived, packets.size());
    EXPECT_GT(counter("ring_full"), 0u);
    EXPECT_EQ(softcx_counter("mlx5_0", "client_errors"), 0u);
}

TEST_P(TxPaths, APacketOfManySegmentsGetsThroughASmallRing) {
    if (!multi_segment()) {
        GTEST_SKIP() << "a path of single segments";
    }
    open_path(kMinDescriptors);
    std::vector<size_t> cuts;
    for (size_t i = 1; i < 55; ++i) {
        cuts.push_back(900 + i);
    }
    for (uint32_t round = 0; round < 20; ++round) {
        // Too few for a completion, and too many to leave room.
        for (uint32_t i = 0; i < 12; ++i) {
            const Frame small = numbered(i, 700);
            ASSERT_EQ(exchange(small).size(), 1u);
        }
        const Frame frame = numbered(round, 1400);
        const std::vector<Received> got = exchange(frame, cuts);
        ASSERT_EQ(got.size(), 1u) << round;
        ASSERT_EQ(got[0].bytes, frame);
    }
    EXPECT_EQ(stats_of(ports[0]).oerrors, 0u);
}

TEST_P(TxPaths, CleaningUpFreesWhatIsDoneAndNoMoreThanAsked) {
    open_path();
    // Long packets, which no path copies.
    std::vector<rte_mbuf*> packets;
    for (uint32_t i = 0; i < 10; ++i) {
        packets.push_back(make_mbuf(numbered(i, 1000)));
    }
    send(ports[0], 0, packets);
    EXPECT_EQ(rte_eth_tx_done_cleanup(ports[0], 0, 0), 0);
    EXPECT_GE(queue().used_descriptors(), 10u);
    settle();
    EXPECT_EQ(rte_eth_tx_done_cleanup(ports[0], 0, 3), 3);
    EXPECT_EQ(queue().used_descriptors(), 7u);
    EXPECT_EQ(rte_eth_tx_done_cleanup(ports[0], 0, 0), 7);
    EXPECT_EQ(queue().used_descriptors(), 0u);
    EXPECT_EQ(rte_eth_tx_done_cleanup(ports[0], 0, 0), 0);
    settle();
    // What asked for the completion was no packet.
    EXPECT_EQ(receive(ports[1]).size(), 10u);
    EXPECT_EQ(stats_of(ports[0]).opackets, 10u);
}

// Each packet is received, or counted as lost.
TEST_P(TxPaths, AnErrorIsRecoveredFromAndEveryPacketIsAccountedFor) {
    NEEDS_SOFTCX();
    open_path();
    std::mt19937 random(5);
    uint64_t sent = 0;
    uint64_t received = 0;
    for (int round = 0; round < 60; ++round) {
        for (unsigned burst = random() % 3; burst != 0; --burst) {
            std::vector<rte_mbuf*> packets;
            for (unsigned i = 1 + random() % 32; i != 0; --i) {
                packets.push_back(make_mbuf(numbered(0, 60 + random() % 800)));
            }
            sent += packets.size();
            send(ports[0], 0, packets);
        }
        ASSERT_EQ(softcx_inject_qp_error("mlx5_0", queue().qp()->qp_num, kLocalProtection), 0);
        for (int burst = 0; burst < 2; ++burst) {
            const std::vector<rte_mbuf*> pair = {make_mbuf(numbered(0, 70)),
                                                 make_mbuf(numbered(0, 900))};
            send(ports[0], 0, pair);
            sent += 2;
        }
        settle();
        drain();
        received += receive(ports[1]).size();
        // Goes on.
        const Frame frame = numbered(7, 200);
        const std::vector<Received> got = exchange(frame);
        ASSERT_EQ(got.size(), 1u) << round;
        ASSERT_EQ(got[0].bytes, frame);
        ++sent;
        ++received;
    }
    drain();
    EXPECT_EQ(counter("recoveries"), 60u);
    EXPECT_EQ(counter("recovery_failures"), 0u);
    EXPECT_GT(counter("dropped_by_recovery"), 0u);
    EXPECT_EQ(received + counter("dropped_by_recovery"), sent);
    EXPECT_EQ(stats_of(ports[0]).opackets, sent);
    EXPECT_EQ(queue().used_descriptors(), 0u);
}

const PathCase kPaths[] = {
    {TxPath::kSend, "txq_mpw_en=0", 0},
    {TxPath::kSendOffloads, "txq_mpw_en=0", kAllOffloads},
    {TxPath::kSendInlineHeader, "txq_mpw_en=0,txq_inline_min=18", kAllOffloads},
    {TxPath::kSendInline, "txq_mpw_en=0,txq_inline_min=58", kAllOffloads},
    {TxPath::kSendInline, "txq_mpw_en=0,txq_inline_max=500", kAllOffloads},
    {TxPath::kMultiPacket, "tx_vec_en=0", 0},
    {TxPath::kMultiPacketOffloads, "tx_vec_en=0", kAllOffloads},
    {TxPath::kMultiPacketInline, "txq_inline_mpw=150", 0},
    {TxPath::kMultiPacketInlineOffloads, "txq_inline_mpw=150,txq_inline_max=100", kAllOffloads},
    {TxPath::kMultiPacketInline, "txqs_min_inline=2", 0},
    {TxPath::kMultiPacketAvx2, "", 0},
    {TxPath::kMultiPacketAvx2Offloads, "", kAllOffloads},
};
INSTANTIATE_TEST_SUITE_P(Each, TxPaths, testing::ValuesIn(kPaths));

}  // namespace
}  // namespace tagwire::mlx5raw
