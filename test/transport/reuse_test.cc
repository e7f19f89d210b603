// SPDX-License-Identifier: BSD-3-Clause
// One pool for what is received and what is sent: a received frame is the next one to send, and
// nothing that the receiving card wrote into its mbuf is left in it.
#include <rte_mbuf.h>

#include <cstring>
#include <deque>

#include "test/sim/pools.h"
#include "test/transport/host.h"

namespace transport_test {
namespace {

// Hands mbufs across as they are, marked as no sender marks them. Each poll takes 1 us.
class Wire final : public tagwire::transport::PacketIo, public tagwire::transport::Clock {
  public:
    explicit Wire(rte_mempool* pool) : pool_(pool) {}
    ~Wire() override {
        for (rte_mbuf* packet : arrived_) {
            rte_pktmbuf_free(packet);
        }
    }
    Wire* other = nullptr;
    uint64_t sent = 0;

    uint16_t rx_burst(rte_mbuf** packets, uint16_t count) noexcept override {
        uint16_t taken = 0;
        for (; taken < count && !arrived_.empty(); ++taken) {
            packets[taken] = arrived_.front();
            arrived_.pop_front();
        }
        return taken;
    }

    uint16_t tx_burst(rte_mbuf** packets, uint16_t count) noexcept override {
        for (uint16_t i = 0; i < count; ++i) {
            other->deliver(*packets[i]);
            rte_pktmbuf_free(packets[i]);
        }
        sent += count;
        return count;
    }

    uint64_t now_ns() noexcept override { return now_ += 1'000; }

  private:
    static constexpr uint16_t kShift = 2;

    void deliver(const rte_mbuf& from) {
        EXPECT_EQ(from.ol_flags & ~(RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_UDP_CKSUM), 0u);
        EXPECT_EQ(from.data_off, RTE_PKTMBUF_HEADROOM);
        EXPECT_EQ(from.port, RTE_MBUF_PORT_INVALID);
        EXPECT_EQ(from.packet_type, 0u);
        EXPECT_EQ(from.vlan_tci, 0u);
        EXPECT_EQ(from.nb_segs, 1u);
        EXPECT_EQ(from.next, nullptr);
        EXPECT_EQ(from.pkt_len, from.data_len);
        EXPECT_EQ((from.ol_flags & RTE_MBUF_F_TX_UDP_CKSUM) == 0, from.tx_offload == 0);
        rte_mbuf* packet = rte_pktmbuf_alloc(pool_);
        ASSERT_NE(packet, nullptr);
        packet->data_off = RTE_PKTMBUF_HEADROOM + kShift;
        std::memcpy(rte_pktmbuf_append(packet, from.data_len),
                    rte_pktmbuf_mtod(&from, const uint8_t*), from.data_len);
        packet->ol_flags = RTE_MBUF_F_RX_RSS_HASH | RTE_MBUF_F_RX_IP_CKSUM_GOOD |
                           RTE_MBUF_F_RX_L4_CKSUM_GOOD | RTE_MBUF_F_RX_VLAN |
                           RTE_MBUF_F_RX_VLAN_STRIPPED;
        packet->port = 3;
        packet->packet_type = RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4 | RTE_PTYPE_L4_UDP;
        packet->vlan_tci = 7;
        packet->hash.rss = 0x12345678;
        packet->tx_offload = ~uint64_t{0};
        arrived_.push_back(packet);
    }

    rte_mempool* pool_;
    std::deque<rte_mbuf*> arrived_;
    uint64_t now_ = 1'000'000;
};

struct End {
    explicit End(uint8_t number, bool offload) : wire(sim::pool(0)) {
        TransportConfig config;
        config.local.ip = {10, 0, 0, number};
        config.local.udp_port = 4791;
        config.mac.bytes = {2, 0, 0, 0, 0, number};
        config.packet_pool = sim::pool(0);
        config.max_peers = 4;
        config.max_incoming_messages = 512;
        config.random_seed = number;
        config.nic_udp_checksum = offload;
        std::string error;
        transport = Transport::create(config, wire, wire, &error);
        EXPECT_NE(transport, nullptr) << error;
        EXPECT_EQ(transport->open_endpoint(0, kNoKey), 0);
    }

    // Answers every message with the same one.
    void turn() {
        Event events[16];
        const uint32_t count = transport->poll(events);
        for (uint32_t i = 0; i < count; ++i) {
            if (events[i].type == EventType::kMessage) {
                EXPECT_EQ(header_of(*events[i].message).tag, messages++);
                const PeerId peer = peer_of(*events[i].message);
                transport->discard(*events[i].message);
                send(peer);
            }
        }
    }

    void send(PeerId peer) {
        SendOperation& operation = operations.emplace_back();
        operation.header.tag = sent++;
        operation.header.length = sizeof(payload);
        operation.iov[0] = {&payload, sizeof(payload)};
        operation.iov_count = 1;
        EXPECT_EQ(transport->send(peer, operation), 0);
    }

    uint64_t payload = 0x0102030405060708;
    uint64_t messages = 0;
    uint64_t sent = 0;
    std::deque<SendOperation> operations;
    Wire wire;
    std::unique_ptr<Transport> transport;
};

class Reuse : public testing::TestWithParam<bool> {};  // the card sums UDP

TEST_P(Reuse, of_received_frames_leaves_nothing_of_them) {
    {
        End a(1, GetParam()), b(2, GetParam());
        a.wire.other = &b.wire;
        b.wire.other = &a.wire;
        tagwire::transport::EndpointAddress address;
        address.ip = {10, 0, 0, 2};
        address.udp_port = 4791;
        PeerId peer;
        ASSERT_EQ(a.transport->open_peer(0, address, kNoKey, &peer), 0);
        a.send(peer);
        for (int i = 0; i < 1000 && a.messages < 100; ++i) {
            a.turn();
            b.turn();
        }
        EXPECT_GE(a.messages, 100u);
        EXPECT_LE(a.wire.sent + b.wire.sent, 230u) << "each message in a frame of its own";
        // Both hold a stock of frames, and no more than that.
        EXPECT_LE(rte_mempool_in_use_count(sim::pool(0)), 2u * 32 + 2);
    }
    EXPECT_EQ(rte_mempool_in_use_count(sim::pool(0)), 0u);
}

INSTANTIATE_TEST_SUITE_P(Checksums, Reuse, testing::Bool());

}  // namespace
}  // namespace transport_test
