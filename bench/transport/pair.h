// SPDX-License-Identifier: BSD-3-Clause
// Two workers joined by a wire without a NIC driver, in one thread, for programs that
// callgrind counts the instructions of.
#pragma once

#include <rte_eal.h>
#include <rte_mbuf.h>
#include <tagwire/tagwire.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace tagwire::bench {

inline constexpr uint64_t kTurnNs = 1'000;
inline uint64_t now = 1'000'000;

struct Wire {
    Wire* other = nullptr;
    std::vector<rte_mbuf*> waiting;
    size_t first = 0;
};

inline uint16_t receive(void* context, rte_mbuf** packets, uint16_t count) {
    auto& wire = *static_cast<Wire*>(context);
    uint16_t taken = 0;
    for (; taken < count && wire.first < wire.waiting.size(); ++taken) {
        packets[taken] = wire.waiting[wire.first++];
        packets[taken]->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
    }
    if (wire.first == wire.waiting.size()) {
        wire.waiting.clear();
        wire.first = 0;
    }
    return taken;
}

inline uint16_t transmit(void* context, rte_mbuf** packets, uint16_t count) {
    auto& waiting = static_cast<Wire*>(context)->other->waiting;
    waiting.insert(waiting.end(), packets, packets + count);
    return count;
}

inline uint64_t clock_now(void*) {
    return now;
}

struct Side {
    Wire wire;
    tw_nic nic{&wire, receive, transmit, clock_now};
    tw_worker* worker = nullptr;
    tw_av* av = nullptr;
    tw_cq* cq = nullptr;
    tw_ep* ep = nullptr;
};

inline void check(int result) {
    if (result < 0) {
        std::fprintf(stderr, "%s\n", tw_last_error());
        std::exit(1);
    }
}

inline void open(Side& side, uint8_t number, rte_mempool* pool) {
    tw_worker_attr attr;
    tw_worker_attr_init(&attr);
    attr.nic = &side.nic;
    attr.address = {4, 0, 4791, 0, {10, 0, 0, number}};
    attr.mac[0] = 2;
    attr.mac[5] = number;
    attr.packet_pool = pool;
    attr.max_peers = 16;
    attr.max_operations = 4096;
    attr.random_seed = number;
    check(tw_worker_open(&attr, &side.worker));
    check(tw_av_open(side.worker, &side.av));
    check(tw_cq_open(side.worker, nullptr, &side.cq));
    check(tw_ep_open(side.worker, nullptr, &side.ep));
    check(tw_ep_bind_av(side.ep, side.av));
    check(tw_ep_bind_cq(side.ep, side.cq, TW_SEND | TW_RECV));
    check(tw_ep_enable(side.ep));
}

inline void open_pair(const char* name, Side (&sides)[2]) {
    std::vector<std::string> eal = {name,       "--no-huge",     "-m", "128", "--no-shconf",
                                    "--no-pci", "--no-telemetry"};
    std::vector<char*> eal_argv;
    for (std::string& argument : eal) {
        eal_argv.push_back(argument.data());
    }
    if (rte_eal_init(static_cast<int>(eal_argv.size()), eal_argv.data()) < 0) {
        std::exit(1);
    }
    rte_mempool* pool =
        rte_pktmbuf_pool_create("frames", 8191, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    for (uint8_t i = 0; i < 2; ++i) {
        sides[i].wire.other = &sides[1 - i].wire;
        open(sides[i], static_cast<uint8_t>(i + 1), pool);
    }
}

}  // namespace tagwire::bench
