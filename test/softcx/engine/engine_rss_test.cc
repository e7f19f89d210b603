// SPDX-License-Identifier: BSD-3-Clause
// Receive side scaling: the published vectors, field masks, the queue.
#include "drivers/softcx/engine/toeplitz.h"
#include "test/softcx/engine/receive_fixture.h"

namespace softcx::test {
namespace {

// "Verifying the RSS Hash Calculation", Microsoft network driver documentation.
const Bytes kKey = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
                    0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                    0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
                    0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

struct Vector {
    const char* dst;
    uint16_t dst_port;
    const char* src;
    uint16_t src_port;
    bool ipv6;
    uint32_t addresses_only;
    uint32_t with_ports;
};

constexpr Vector kVectors[] = {
    {"161.142.100.80", 1766, "66.9.149.187", 2794, false, 0x323e8fc2, 0x51ccc178},
    {"65.69.140.83", 4739, "199.92.111.2", 14230, false, 0xd718262a, 0xc626b0ea},
    {"12.22.207.184", 38024, "24.19.198.95", 12898, false, 0xd2d0a5de, 0x5c2b394a},
    {"209.142.163.6", 2217, "38.27.205.30", 48228, false, 0x82989176, 0xafc7327f},
    {"202.188.127.2", 1303, "153.39.163.191", 44251, false, 0x5d1809c5, 0x10e828a2},
    {"3ffe:2501:200:3::1", 1766, "3ffe:2501:200:1fff::7", 2794, true, 0x2cc18cd5, 0x40207d3d},
    {"ff02::1", 4739, "3ffe:501:8::260:97ff:fe40:efab", 14230, true, 0x0f0c461c, 0xdde51bbf},
    {"fe80::200:f8ff:fe21:67cf", 38024, "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, true,
     0x4b61e985, 0x02d1feef},
};

constexpr uint64_t kAddresses4 = MLX5_RX_HASH_SRC_IPV4 | MLX5_RX_HASH_DST_IPV4;
constexpr uint64_t kAddresses6 = MLX5_RX_HASH_SRC_IPV6 | MLX5_RX_HASH_DST_IPV6;
constexpr uint64_t kTcpPorts = MLX5_RX_HASH_SRC_PORT_TCP | MLX5_RX_HASH_DST_PORT_TCP;
constexpr uint64_t kUdpPorts = MLX5_RX_HASH_SRC_PORT_UDP | MLX5_RX_HASH_DST_PORT_UDP;

Bytes packet_of(const Vector& vector, uint8_t protocol) {
    return make_packet({.ipv6 = vector.ipv6,
                        .protocol = protocol,
                        .src_ip = vector.src,
                        .dst_ip = vector.dst,
                        .src_port = vector.src_port,
                        .dst_port = vector.dst_port});
}

RssHash hash_of(const Bytes& frame, uint64_t fields) {
    return hash_frame(Toeplitz(kKey), fields,
                      parse_frame(frame.data(), static_cast<uint32_t>(frame.size())));
}

TEST(EngineRss, PublishedVectors) {
    for (const Vector& vector : kVectors) {
        const uint64_t addresses = vector.ipv6 ? kAddresses6 : kAddresses4;
        EXPECT_EQ(hash_of(packet_of(vector, 6), addresses).value, vector.addresses_only)
            << vector.src;
        EXPECT_EQ(hash_of(packet_of(vector, 6), addresses | kTcpPorts).value, vector.with_ports)
            << vector.src;
        EXPECT_EQ(hash_of(packet_of(vector, 17), addresses | kUdpPorts).value, vector.with_ports)
            << vector.src;
    }
}

TEST(EngineRss, TypeNamesTheHashedFields) {
    EXPECT_EQ(hash_of(packet_of(kVectors[0], 6), kAddresses4 | kTcpPorts).type, 0x55);
    EXPECT_EQ(hash_of(packet_of(kVectors[0], 17), kAddresses4 | kUdpPorts).type, 0xa5);
    EXPECT_EQ(hash_of(packet_of(kVectors[5], 17), kAddresses6 | kUdpPorts).type, 0xaa);
    EXPECT_EQ(hash_of(packet_of(kVectors[0], 6), kAddresses4).type, 0x05);
    EXPECT_EQ(hash_of(packet_of(kVectors[0], 6), MLX5_RX_HASH_DST_IPV4).type, 0x04);
}

TEST(EngineRss, FieldsThatTheFrameLacksDontCount) {
    EXPECT_EQ(hash_of(packet_of(kVectors[0], 17), kAddresses4 | kTcpPorts).value,
              kVectors[0].addresses_only);
    EXPECT_EQ(hash_of(packet_of(kVectors[5], 6), kAddresses4 | kAddresses6).value,
              kVectors[5].addresses_only);
    EXPECT_EQ(hash_of(pattern(60), kAddresses4 | kAddresses6).type, 0);
    EXPECT_EQ(hash_of(pattern(60), kAddresses4 | kAddresses6).value, 0u);
}

TEST(EngineRss, AFragmentHasNoPorts) {
    const Bytes frame = make_packet({.src_ip = kVectors[0].src,
                                     .dst_ip = kVectors[0].dst,
                                     .src_port = kVectors[0].src_port,
                                     .dst_port = kVectors[0].dst_port,
                                     .fragment = 0x2000});
    EXPECT_EQ(hash_of(frame, kAddresses4 | kUdpPorts).value, kVectors[0].addresses_only);
}

TEST(EngineRss, OneFieldAloneIsHashedAlone) {
    const Bytes one = packet_of(kVectors[0], 6);
    const Bytes other = make_packet({.protocol = 6,
                                     .src_ip = kVectors[0].src,
                                     .dst_ip = "1.2.3.4",
                                     .src_port = 9,
                                     .dst_port = 10});
    EXPECT_EQ(hash_of(one, MLX5_RX_HASH_SRC_IPV4).value,
              hash_of(other, MLX5_RX_HASH_SRC_IPV4).value);
    EXPECT_NE(hash_of(one, MLX5_RX_HASH_DST_IPV4).value,
              hash_of(other, MLX5_RX_HASH_DST_IPV4).value);
}

class EngineRssQueues : public ReceiveFixture {};

TEST_F(EngineRssQueues, TheHashModuloTheTableSizeChoosesTheQueue) {
    std::vector<std::unique_ptr<ClientCq>> cqs;
    std::vector<std::unique_ptr<ClientWq>> wqs;
    for (int i = 0; i < 3; ++i) {
        cqs.push_back(rig.make_cq());
        wqs.push_back(rig.make_wq(*cqs.back(), 64));
        for (int j = 0; j < 64; ++j)
            wqs.back()->post({buffer(j)});
    }
    // A queue may stand in the table more than once.
    const std::vector<int> table = {0, 1, 2, 0, 1, 1, 2, 2};
    std::vector<WorkQueue*> entries;
    for (const int i : table)
        entries.push_back(wqs[i]->wq);
    rig.make_flow(rig.make_rss_qp(entries, kAddresses4 | kUdpPorts, kKey));

    for (uint16_t port = 1; port < 60; ++port) {
        const Bytes frame = make_packet({.src_port = port});
        const RssHash expected = hash_of(frame, kAddresses4 | kUdpPorts);
        arrive(frame);
        rig.step();
        const std::optional<Cqe> cqe = cqs[table[expected.value % table.size()]]->poll();
        ASSERT_TRUE(cqe.has_value()) << port;
        EXPECT_EQ(cqe->rx_hash_result.get(), expected.value);
        EXPECT_EQ(cqe->rx_hash_type, expected.type);
    }
}

TEST_F(EngineRssQueues, AChangedTableIsUsedFromTheNextFrameOn) {
    const auto other_cq = rig.make_cq();
    const auto one = rig.make_wq(*cq);
    const auto other = rig.make_wq(*other_cq);
    QueuePair* qp = rig.make_rss_qp({one->wq}, kAddresses4, kKey);
    rig.make_flow(qp);
    one->post({buffer(0)});
    other->post({buffer(1)});
    arrive(make_packet({}));
    rig.step();
    EXPECT_TRUE(cq->poll().has_value());
    qp->rss->table->entries = {other->wq};
    rig.changed();
    arrive(make_packet({}));
    rig.step();
    EXPECT_TRUE(other_cq->poll().has_value());
}

}  // namespace
}  // namespace softcx::test
