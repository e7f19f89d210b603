// SPDX-License-Identifier: BSD-3-Clause
// Two transports joined by a wire without a NIC driver, for callgrind: what one
// message costs in lib/transport and lib/wire. scripts/bench-transport.sh runs it.
#include <rte_eal.h>
#include <rte_mbuf.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "lib/transport/transport.h"

namespace {

using namespace tagwire::transport;

constexpr uint64_t kTurnNs = 1'000;

struct VirtualClock final : Clock {
    uint64_t now_ns() noexcept override { return time; }
    uint64_t time = 1'000'000;
};

// Hands the sender's buffers to the receiver as they are.
struct Wire final : PacketIo {
    uint16_t rx_burst(rte_mbuf** packets, uint16_t count) noexcept override {
        uint16_t taken = 0;
        for (; taken < count && first < waiting.size(); ++taken) {
            packets[taken] = waiting[first++];
            if (nic_checksums) {
                packets[taken]->ol_flags |=
                    RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
            }
        }
        if (first == waiting.size()) {
            waiting.clear();
            first = 0;
        }
        return taken;
    }
    uint16_t tx_burst(rte_mbuf** packets, uint16_t count) noexcept override {
        other->waiting.insert(other->waiting.end(), packets, packets + count);
        return count;
    }
    Wire* other = nullptr;
    bool nic_checksums = true;
    std::vector<rte_mbuf*> waiting;
    size_t first = 0;
};

struct Side {
    Wire wire;
    std::unique_ptr<Transport> transport;
    std::vector<Event> events = std::vector<Event>(4096);
    uint64_t received = 0;
    uint64_t done = 0;
};

struct Message {
    SendOperation send;
    uint8_t payload[64] = {};
};

}  // namespace

// The two functions that callgrind measures, with everything below them.
extern "C" __attribute__((noinline)) void measured_send(Transport& transport,
                                                        std::vector<Message>& messages) {
    for (Message& message : messages) {
        transport.send(0, message.send);
    }
}
extern "C" __attribute__((noinline)) uint32_t measured_sender_poll(Side& side) {
    return side.transport->poll(side.events);
}
extern "C" __attribute__((noinline)) void measured_receiver_poll(Side& side) {
    const uint32_t count = side.transport->poll(side.events);
    uint8_t buffer[64];
    ReceiveOperation receive;
    receive.iov[0] = {buffer, sizeof(buffer)};
    receive.iov_count = 1;
    receive.capacity = sizeof(buffer);
    for (uint32_t i = 0; i < count; ++i) {
        if (side.events[i].type == EventType::kMessage) {
            side.transport->accept(*side.events[i].message, receive);
            ++side.received;
        }
    }
}

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: %s BATCHES MESSAGES_PER_BATCH nic|software\n", argv[0]);
        return 2;
    }
    const uint64_t batches = std::strtoull(argv[1], nullptr, 0);
    const size_t per_batch = std::strtoull(argv[2], nullptr, 0);
    const bool nic = std::strcmp(argv[3], "nic") == 0;
    std::vector<std::string> eal = {argv[0],    "--no-huge",     "-m", "128", "--no-shconf",
                                    "--no-pci", "--no-telemetry"};
    std::vector<char*> eal_argv;
    for (std::string& argument : eal) {
        eal_argv.push_back(argument.data());
    }
    if (rte_eal_init(static_cast<int>(eal_argv.size()), eal_argv.data()) < 0) {
        return 1;
    }
    rte_mempool* pool =
        rte_pktmbuf_pool_create("frames", 8191, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    VirtualClock clock;
    Side sides[2];
    for (uint8_t i = 0; i < 2; ++i) {
        TransportConfig config;
        config.local.ip = {10, 0, 0, static_cast<uint8_t>(i + 1)};
        config.local.udp_port = 4791;
        config.mac.bytes = {2, 0, 0, 0, 0, i};
        config.packet_pool = pool;
        config.random_seed = i + 1u;
        config.max_peers = 16;
        config.nic_udp_checksum = nic;
        sides[i].wire.other = &sides[1 - i].wire;
        sides[i].wire.nic_checksums = nic;
        sides[i].transport = Transport::create(config, sides[i].wire, clock, nullptr);
        sides[i].transport->open_endpoint(0, kNoKey);
    }
    EndpointAddress receiver;
    receiver.ip = {10, 0, 0, 2};
    receiver.udp_port = 4791;
    PeerId peer;
    sides[0].transport->open_peer(0, receiver, kNoKey, &peer);

    std::vector<Message> messages(per_batch);
    for (Message& message : messages) {
        message.send.header = {0x1234, 0, 8};
        message.send.iov[0] = {message.payload, 8};
        message.send.iov_count = 1;
    }
    const auto turn = [&](bool measured) {
        clock.time += kTurnNs;
        const uint32_t count =
            measured ? measured_sender_poll(sides[0]) : sides[0].transport->poll(sides[0].events);
        for (uint32_t i = 0; i < count; ++i) {
            if (sides[0].events[i].type == EventType::kSendDone) {
                sides[0].done += sides[0].events[i].count;
            }
        }
        measured_receiver_poll(sides[1]);
    };
    // The first batch sets up the session and warms the pools.
    for (Message& message : messages) {
        sides[0].transport->send(peer, message.send);
    }
    while (sides[0].done < per_batch) {
        turn(false);
    }
    for (uint64_t batch = 1; batch <= batches; ++batch) {
        measured_send(*sides[0].transport, messages);
        while (sides[0].done < (batch + 1) * per_batch) {
            turn(true);
        }
    }
    const uint64_t frames = sides[0].transport->counters()[Counter::tx_data_frames];
    std::printf("%llu messages, %llu frames\n", static_cast<unsigned long long>(sides[1].received),
                static_cast<unsigned long long>(frames));
    return sides[1].received == (batches + 1) * per_batch ? 0 : 1;
}
