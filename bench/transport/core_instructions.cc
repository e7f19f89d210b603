// SPDX-License-Identifier: BSD-3-Clause
// Two workers joined by a wire without a NIC driver, for callgrind: what one 8-byte
// tagged message costs through the public API. scripts/bench-transport.sh runs it.
#include "bench/transport/pair.h"

using namespace tagwire::bench;

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
    Side sides[2];
    open_pair(argv[0], sides);
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
