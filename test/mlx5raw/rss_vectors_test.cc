// SPDX-License-Identifier: BSD-3-Clause
// The published RSS vectors through the driver: hash in the mbuf, and the queue that the
// redirection table has for it. For each way of receiving.
#include "test/mlx5raw/rss_vectors.h"

#include <cerrno>

namespace tagwire::mlx5raw {
namespace {

constexpr uint16_t kQueues = 4;
constexpr unsigned kCopies = 16;  // a vector loop takes several packets at a time

class RssVectors : public PortPair, public testing::WithParamInterface<const char*> {
  protected:
    void open_with(uint64_t types) {
        ASSERT_NO_FATAL_FAILURE(
            open({.devargs = GetParam(), .queues = kQueues, .rss_types = types}));
        // Not the default table: it must be this one that is looked up.
        rte_eth_rss_reta_entry64 entries[2] = {};
        entries[0].mask = entries[1].mask = ~uint64_t{0};
        for (unsigned i = 0; i < 128; ++i) {
            entries[i / 64].reta[i % 64] = queue_at(i);
        }
        ASSERT_EQ(rte_eth_dev_rss_reta_update(ports[1], entries, 128), 0);
    }
    static uint16_t queue_at(uint32_t hash) {
        return static_cast<uint16_t>((hash % 128 * 7 + 3) % kQueues);
    }
    void expect(const RssVector& v, uint8_t protocol, uint32_t hash) {
        const Frame frame = ip_frame(mac_of(ports[1]), v.flow, protocol, 10);
        for (unsigned i = 0; i < kCopies; ++i) {
            send(ports[0], 0, frame);
        }
        settle();
        const std::vector<Received> got = receive(ports[1]);
        ASSERT_EQ(got.size(), kCopies);
        for (const Received& packet : got) {
            EXPECT_EQ(packet.hash, hash);
            EXPECT_TRUE(packet.flags & RTE_MBUF_F_RX_RSS_HASH);
            EXPECT_EQ(packet.queue, queue_at(hash));
        }
    }
};

TEST_P(RssVectors, WithPortsTcpAndUdp) {
    open_with(RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP);
    for (const RssVector& v : kRssVectors) {
        expect(v, IPPROTO_TCP, v.port_hash);
        expect(v, IPPROTO_UDP, v.port_hash);
    }
}

TEST_P(RssVectors, WithoutPorts) {
    open_with(RTE_ETH_RSS_IP);
    for (const RssVector& v : kRssVectors) {
        expect(v, IPPROTO_TCP, v.address_hash);
        expect(v, IPPROTO_UDP, v.address_hash);
    }
}

// Ports of one transport only: the other one goes by its addresses.
TEST_P(RssVectors, WithPortsOfOneTransport) {
    open_with(RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP);
    for (const RssVector& v : kRssVectors) {
        expect(v, IPPROTO_TCP, v.port_hash);
        expect(v, IPPROTO_UDP, v.address_hash);
    }
}

INSTANTIATE_TEST_SUITE_P(Paths, RssVectors, testing::Values("rx_vec_en=0", "rx_vec_en=1"));

}  // namespace
}  // namespace tagwire::mlx5raw
