// SPDX-License-Identifier: BSD-3-Clause
// Two workers joined by a wire without a NIC driver, for callgrind: what one 8-byte
// tagged message costs through the public API. scripts/bench-transport.sh runs it.
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <tagwire/tagwire.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr uint64_t kTurnNs = 1'000;
uint64_t now = 1'000'000;

struct Wire {
    Wire* other = nullptr;
    std::vector<rte_mbuf*> waiting;
    size_t first = 0;
};

uint16_t receive(void* context, rte_mbuf** packets, uint16_t count) {
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

uint16_t transmit(void* context, rte_mbuf** packets, uint16_t count) {
    auto& waiting = static_cast<Wire*>(context)->other->waiting;
    waiting.insert(waiting.end(), packets, packets + count);
    return count;
}

uint64_t clock_now(void*) {
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

void check(int result) {
    if (result < 0) {
        std::fprintf(stderr, "%s\n", tw_last_error());
        std::exit(1);
    }
}

void open(Side& side, uint8_t number, rte_mempool* pool) {
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

}  // namespace

// What callgrind measures, with everything below it.
extern "C" __attribute__((noinline)) void measured_posts(Side& side, uint64_t* payloads,
                                                         size_t count) {
    for (size_t i = 0; i < count; ++i) {
        tw_tsend(side.ep, payloads + i, 8, 0, i, payloads);
    }
}
extern "C" __attribute__((noinline)) void measured_receives(Side& side, uint64_t* payloads,
                                                            size_t count) {
    for (size_t i = 0; i < count; ++i) {
        tw_trecv(side.ep, payloads + i, 8, TW_ADDR_UNSPEC, i, 0, payloads + i);
    }
}
extern "C" __attribute__((noinline)) size_t measured_sender(Side& side, tw_cq_entry* entries) {
    tw_progress(side.worker);
    const ssize_t count = tw_cq_read(side.cq, entries, 64);
    return count > 0 ? static_cast<size_t>(count) : 0;
}
extern "C" __attribute__((noinline)) size_t measured_receiver(Side& side, tw_cq_entry* entries) {
    tw_progress(side.worker);
    const ssize_t count = tw_cq_read(side.cq, entries, 64);
    return count > 0 ? static_cast<size_t>(count) : 0;
}

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s BATCHES MESSAGES_PER_BATCH\n", argv[0]);
        return 2;
    }
    const uint64_t batches = std::strtoull(argv[1], nullptr, 0);
    const size_t per_batch = std::strtoull(argv[2], nullptr, 0);
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
    Side sides[2];
    for (uint8_t i = 0; i < 2; ++i) {
        sides[i].wire.other = &sides[1 - i].wire;
        open(sides[i], static_cast<uint8_t>(i + 1), pool);
    }
    tw_address receiver;
    check(tw_ep_name(sides[1].ep, &receiver));
    tw_addr peer;
    check(tw_av_insert(sides[0].av, &receiver, &peer));

    std::vector<uint64_t> payloads(per_batch, 0x1234);
    std::vector<uint64_t> buffers(per_batch);
    tw_cq_entry entries[64];
    uint64_t received = 0;
    // The first batch sets up the session and warms the pools.
    for (uint64_t batch = 0; batch <= batches; ++batch) {
        measured_receives(sides[1], buffers.data(), per_batch);
        measured_posts(sides[0], payloads.data(), per_batch);
        size_t sent = 0;
        size_t here = 0;
        while (sent < per_batch || here < per_batch) {
            now += kTurnNs;
            sent += measured_sender(sides[0], entries);
            here += measured_receiver(sides[1], entries);
        }
        received += here;
    }
    std::printf("%llu messages\n", static_cast<unsigned long long>(received));
    return received == (batches + 1) * per_batch ? 0 : 1;
}
