// SPDX-License-Identifier: BSD-3-Clause
// Each receive path, for long: nothing is lost, reordered or changed, and an error costs
// what it must and no mbuf.
#include <algorithm>
#include <cctype>
#include <deque>
#include <random>

#include "drivers/net/mlx5raw/port.h"
#include "drivers/softcx/softcx.h"
#include "test/mlx5raw/rx_paths.h"

namespace tagwire::mlx5raw {
namespace {

constexpr unsigned kLocalProtection = 0x04;
constexpr size_t kPosted = 32;  // at least, of a ring of 64: it is filled up in batches

class RxPathRun : public RxPathTest {
  protected:
    RxQueue& rx() { return *rx_queue(&rte_eth_devices[ports[1]], 0); }

    // Frames that the device cannot all put into one session.
    Frame random_frame(std::mt19937& random) {
        const FlowAddresses v4{{10, 0, 0, 1}, {10, 0, 0, uint8_t(random() % 4)}, 1000, 2000};
        const FlowAddresses v6{std::vector<uint8_t>(16, 0x21), std::vector<uint8_t>(16, 0x22), 1,
                               2};
        const size_t payload = random() % 1400;
        switch (random() % 8) {
            case 0:
                return ethernet_frame(60 + payload);
            case 1:
                return ip_frame(mac_of(ports[1]), v6, IPPROTO_UDP, payload);
            case 2:
                return ip_frame(mac_of(ports[1]), v4, IPPROTO_TCP, payload, Broken::kL4);
            default:
                return ip_frame(mac_of(ports[1]), v4, IPPROTO_UDP, payload);
        }
    }
};

TEST_P(RxPathRun, EveryFrameArrivesInOrderWhateverTheBursts) {
    PortOptions small = options(RTE_ETH_RX_OFFLOAD_CHECKSUM | RTE_ETH_RX_OFFLOAD_RSS_HASH);
    small.descriptors = 64;
    open(small);
    std::mt19937 random(7);
    std::deque<Frame> expected;
    uint64_t received = 0;
    for (int round = 0; round < 3000; ++round) {
        std::vector<rte_mbuf*> out;
        for (size_t i = random() % 40; i != 0 && expected.size() < kPosted; --i) {
            Frame frame = random_frame(random);
            if (frame.size() < 60) {
                frame.resize(60);  // as the wire would
            }
            out.push_back(make_mbuf(frame));
            expected.push_back(std::move(frame));
        }
        send(ports[0], 0, out);
        settle();
        ASSERT_EQ(rte_eth_rx_queue_count(ports[1], 0), static_cast<int>(expected.size()));
        for (rte_mbuf* packet : receive_burst(static_cast<uint16_t>(random() % 50))) {
            const char* reason = nullptr;
            ASSERT_EQ(rte_mbuf_check(packet, 1, &reason), 0) << reason;
            ASSERT_FALSE(expected.empty());
            ASSERT_EQ(bytes_of(packet), expected.front()) << "packet " << received;
            const bool ip = expected.front()[12] != 0x88;
            EXPECT_EQ((packet->ol_flags & RTE_MBUF_F_RX_RSS_HASH) != 0, ip);
            EXPECT_EQ((packet->packet_type & RTE_PTYPE_L3_MASK) != 0, ip);
            expected.pop_front();
            rte_pktmbuf_free(packet);
            ++received;
        }
    }
    EXPECT_GT(received, 20'000u);
    EXPECT_EQ(stats_of(ports[1]).ipackets, received);
    EXPECT_EQ(softcx_counter("mlx5_1", "client_errors"), 0u);
}

TEST_P(RxPathRun, AStatisticNamesThePath) {
    open(options(0));
    std::string wanted = GetParam().mode;
    wanted = wanted.substr(0, wanted.find(','));
    wanted.erase(std::remove(wanted.begin(), wanted.end(), '-'), wanted.end());
    for (char& c : wanted) {
        c = c == ' ' ? '_' : static_cast<char>(tolower(c));
    }
    int set = 0;
    for (const auto& [name, value] : xstats_of(ports[1])) {
        if (name.rfind("rx_path_", 0) == 0 && name != "rx_path_compressed_completions") {
            EXPECT_EQ(value, name == "rx_path_" + wanted ? 1u : 0u) << name;
            set += value != 0;
        }
    }
    EXPECT_EQ(set, 1);
}

TEST_P(RxPathRun, SessionsAreSeen) {
    open(options(0));
    for (rte_mbuf* packet : exchange_burst(std::vector<Frame>(32, ethernet_frame(100)))) {
        rte_pktmbuf_free(packet);
    }
    const bool compressed = std::string(GetParam().mode).find("compressed") != std::string::npos;
    EXPECT_EQ(xstats_of(ports[1])["rx_q0_compressed_sessions"], compressed ? 1u : 0u);
}

TEST_P(RxPathRun, AnErrorCostsOneFrameAndNoMbuf) {
    open(options(0));
    std::mt19937 random(11);
    const Frame frame = ethernet_frame(GetParam().mtu > 2000 ? 5000 : 100);
    const std::vector<size_t> cuts =
        frame.size() > 2000 ? std::vector<size_t>{2000, 4000} : std::vector<size_t>{};
    for (uint64_t i = 0; i < 50; ++i) {
        // Good frames wait, then comes the error.
        const auto good = static_cast<uint16_t>(random() % 20);
        for (uint16_t n = 0; n < good; ++n) {
            send(ports[0], 0, {make_mbuf(frame, cuts)});
        }
        settle();
        ASSERT_EQ(softcx_inject_wq_error("mlx5_1", rx().wq()->wq_num, kLocalProtection), 0);
        send(ports[0], 0, {make_mbuf(frame, cuts)});
        settle();
        std::vector<Received> got = receive(ports[1]);
        ASSERT_EQ(got.size(), good) << i;
        for (const Received& packet : got) {
            ASSERT_EQ(packet.bytes, frame) << i;
        }
        got = exchange(frame, cuts);
        ASSERT_EQ(got.size(), 1u) << i;
        ASSERT_EQ(got[0].bytes, frame) << i;
        ASSERT_EQ(xstats_of(ports[1])["rx_q0_recoveries"], i + 1);
    }
    EXPECT_EQ(stats_of(ports[1]).ierrors, 50u);
}

TEST_P(RxPathRun, AStopWithWaitingPacketsLosesNoMbuf) {
    open(options(0));
    for (int i = 0; i < 20; ++i) {
        std::vector<rte_mbuf*> out;
        for (int n = 0; n < 40; ++n) {
            out.push_back(make_mbuf(ethernet_frame(100)));
        }
        send(ports[0], 0, out);
        settle();
        for (rte_mbuf* packet : receive_burst(static_cast<uint16_t>(5 + i))) {
            rte_pktmbuf_free(packet);
        }
        ASSERT_EQ(rte_eth_dev_rx_queue_stop(ports[1], 0), 0);
        ASSERT_EQ(rte_eth_rx_queue_count(ports[1], 0), 0);
        ASSERT_EQ(rte_eth_dev_rx_queue_start(ports[1], 0), 0);
        ASSERT_EQ(exchange(ethernet_frame(100)).size(), 1u);
    }
}

INSTANTIATE_TEST_SUITE_P(Paths, RxPathRun, testing::ValuesIn(kEveryRxPath), name_of_path);

}  // namespace
}  // namespace tagwire::mlx5raw
