// SPDX-License-Identifier: BSD-3-Clause
// What a large message costs its sender in lib/transport and lib/wire, copied into frames or lent
// to the NIC, for callgrind and (without it) in time. scripts/bench-transport.sh runs it.
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_mbuf.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "lib/transport/lender.h"
#include "lib/transport/transport.h"

namespace {

using namespace tagwire::transport;

struct VirtualClock final : Clock {
    uint64_t now_ns() noexcept override { return time; }
    uint64_t time = 1'000'000;
};

// What a NIC does: it takes the bytes from where they are, and gives the frames back.
struct Wire final : PacketIo {
    uint16_t rx_burst(rte_mbuf** packets, uint16_t count) noexcept override {
        uint16_t taken = 0;
        for (; taken < count && first < arrived.size(); ++taken) {
            packets[taken] = arrived[first++];
        }
        if (first == arrived.size()) {
            arrived.clear();
            first = 0;
        }
        return taken;
    }
    uint16_t tx_burst(rte_mbuf** packets, uint16_t count) noexcept override {
        sent.insert(sent.end(), packets, packets + count);
        return count;
    }
    void deliver(Wire& to, rte_mempool* pool) {
        for (rte_mbuf* packet : sent) {
            rte_mbuf* copy = rte_pktmbuf_copy(packet, pool, 0, UINT32_MAX);
            copy->ol_flags = RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
            to.arrived.push_back(copy);
            rte_pktmbuf_free(packet);
        }
        sent.clear();
    }

    std::vector<rte_mbuf*> sent;
    std::vector<rte_mbuf*> arrived;
    size_t first = 0;
};

// Every memory is to be had.
struct AllMemory final : Lender {
    AllMemory() {
        info.free_cb = [](void*, void*) {};
        rte_mbuf_ext_refcnt_set(&info, 1);
    }
    rte_mbuf_ext_shared_info* borrow(const void*, size_t) noexcept override {
        rte_mbuf_ext_refcnt_update(&info, 1);
        return &info;
    }
    rte_mbuf_ext_shared_info info{};
};

struct Side {
    Wire wire;
    std::unique_ptr<Transport> transport;
    std::vector<Event> events = std::vector<Event>(4096);
};

uint64_t cycles = 0;

}  // namespace

// What callgrind measures: the call, frames, acknowledgements, the end.
extern "C" __attribute__((noinline)) void measured_large_send(Transport& transport, PeerId peer,
                                                              SendOperation& operation) {
    transport.send(peer, operation);
}
extern "C" __attribute__((noinline)) uint32_t measured_large_poll(Side& side) {
    return side.transport->poll(side.events);
}

int main(int argc, char** argv) {
    if (argc != 6) {
        std::fprintf(stderr, "usage: %s MESSAGES BYTES copied|lent nic|software MTU\n", argv[0]);
        return 2;
    }
    const uint64_t messages = std::strtoull(argv[1], nullptr, 0);
    const size_t length = std::strtoull(argv[2], nullptr, 0);
    const bool lent = std::strcmp(argv[3], "lent") == 0;
    const bool nic = std::strcmp(argv[4], "nic") == 0;
    const auto mtu = static_cast<uint16_t>(std::strtoul(argv[5], nullptr, 0));
    std::vector<std::string> eal = {argv[0],
                                    "--no-huge",
                                    "-m",
                                    "256",
                                    "--no-shconf",
                                    "--no-pci",
                                    "--no-telemetry",
                                    "--log-level=*:warning"};
    std::vector<char*> eal_argv;
    for (std::string& argument : eal) {
        eal_argv.push_back(argument.data());
    }
    if (rte_eal_init(static_cast<int>(eal_argv.size()), eal_argv.data()) < 0) {
        return 1;
    }
    rte_mempool* pool = rte_pktmbuf_pool_create("frames", 8191, 256, 0, 9728, SOCKET_ID_ANY);
    VirtualClock clock;
    AllMemory lender;
    Side sides[2];
    for (uint8_t i = 0; i < 2; ++i) {
        TransportConfig config;
        config.local.ip = {10, 0, 0, static_cast<uint8_t>(i + 1)};
        config.local.udp_port = 4791;
        config.mac.bytes = {2, 0, 0, 0, 0, i};
        config.mtu = mtu;
        config.packet_pool = pool;
        config.random_seed = i + 1u;
        config.max_peers = 16;
        config.nic_udp_checksum = nic;
        config.lender = lent ? &lender : nullptr;
        config.zero_copy_bytes = 1024;
        sides[i].transport = Transport::create(config, sides[i].wire, clock, nullptr);
        sides[i].transport->open_endpoint(0, kNoKey);
    }
    EndpointAddress receiver;
    receiver.ip = {10, 0, 0, 2};
    receiver.udp_port = 4791;
    PeerId peer;
    sides[0].transport->open_peer(0, receiver, kNoKey, &peer);

    std::vector<uint8_t> from(length, 0x5a);
    std::vector<uint8_t> to(length);
    SendOperation send;
    send.header = {0x1234, 0, length};
    send.iov[0] = {from.data(), length};
    send.iov_count = 1;
    ReceiveOperation receive;
    receive.iov[0] = {to.data(), length};
    receive.iov_count = 1;
    receive.capacity = length;
    const auto one = [&](bool measured) {
        uint64_t begun = rte_rdtsc();
        measured ? measured_large_send(*sides[0].transport, peer, send)
                 : static_cast<void>(sides[0].transport->send(peer, send));
        cycles += measured ? rte_rdtsc() - begun : 0;
        for (bool done = false; !done;) {
            clock.time += 1000;
            begun = rte_rdtsc();
            const uint32_t count = measured ? measured_large_poll(sides[0])
                                            : sides[0].transport->poll(sides[0].events);
            cycles += measured ? rte_rdtsc() - begun : 0;
            for (uint32_t i = 0; i < count; ++i) {
                done = done || sides[0].events[i].type == EventType::kSendDone;
            }
            sides[0].wire.deliver(sides[1].wire, pool);
            const uint32_t arrived = sides[1].transport->poll(sides[1].events);
            for (uint32_t i = 0; i < arrived; ++i) {
                if (sides[1].events[i].type == EventType::kMessage) {
                    sides[1].transport->accept(*sides[1].events[i].message, receive);
                }
            }
            sides[1].wire.deliver(sides[0].wire, pool);
        }
    };
    one(false);  // sets up the session and warms the pools
    for (uint64_t i = 0; i < messages; ++i) {
        one(true);
    }
    std::printf("%llu ns\n", static_cast<unsigned long long>(cycles * 1'000'000'000 /
                                                             rte_get_tsc_hz() / messages));
    return to == from ? 0 : 1;
}
