// SPDX-License-Identifier: BSD-3-Clause
// What one put, get or fetching atomic of 8 bytes costs through the public API, at its
// origin and at its target, for callgrind. scripts/bench-rma.sh runs it.
#include <cstring>

#include "bench/transport/pair.h"

using namespace tagwire::bench;

namespace {

struct Target {
    uint64_t address;
    uint64_t key;
};

int post(Side& side, const char* what, uint64_t* word, const Target& target) {
    switch (what[0]) {
        case 'p':
            return tw_write(side.ep, word, 8, 0, target.address, target.key, word);
        case 'g':
            return tw_read(side.ep, word, 8, 0, target.address, target.key, word);
        default: {
            const uint64_t one = 1;
            return tw_fetch_atomic(side.ep, &one, 1, word, 0, target.address, target.key, TW_UINT64,
                                   TW_SUM, word);
        }
    }
}

}  // namespace

extern "C" __attribute__((noinline)) void measured_posts(Side& side, const char* what,
                                                         uint64_t* words, size_t count,
                                                         const Target& target) {
    for (size_t i = 0; i < count; ++i) {
        check(post(side, what, words + i, target));
    }
}
extern "C" __attribute__((noinline)) size_t measured_origin(Side& side, tw_cq_entry* entries) {
    tw_progress(side.worker);
    const ssize_t count = tw_cq_read(side.cq, entries, 64);
    check(static_cast<int>(count == -EAGAIN ? 0 : count));
    return count > 0 ? static_cast<size_t>(count) : 0;
}
extern "C" __attribute__((noinline)) void measured_target(Side& side) {
    tw_progress(side.worker);
}

int main(int argc, char** argv) {
    if (argc != 4 || std::strchr("pgf", argv[3][0]) == nullptr) {
        std::fprintf(stderr, "usage: %s BATCHES OPERATIONS_PER_BATCH put|get|fetch\n", argv[0]);
        return 2;
    }
    const uint64_t batches = std::strtoull(argv[1], nullptr, 0);
    const size_t per_batch = std::strtoull(argv[2], nullptr, 0);
    Side sides[2];
    open_pair(argv[0], sides);
    tw_address name;
    check(tw_ep_name(sides[1].ep, &name));
    tw_addr peer;
    check(tw_av_insert(sides[0].av, &name, &peer));
    static uint64_t memory[8];
    const iovec iov{memory, sizeof(memory)};
    tw_mr_attr attr{};
    attr.size = sizeof(attr);
    attr.iov = &iov;
    attr.iov_count = 1;
    attr.access = TW_REMOTE_READ | TW_REMOTE_WRITE;
    tw_mr* mr;
    check(tw_mr_open(sides[1].worker, &attr, &mr));
    const Target target{reinterpret_cast<uint64_t>(memory), tw_mr_key(mr)};

    std::vector<uint64_t> words(per_batch, 7);
    tw_cq_entry entries[64];
    uint64_t ended = 0;
    // The first batch sets up the session and warms the pools.
    for (uint64_t batch = 0; batch <= batches; ++batch) {
        measured_posts(sides[0], argv[3], words.data(), per_batch, target);
        for (size_t left = per_batch; left > 0;) {
            now += kTurnNs;
            const size_t done = measured_origin(sides[0], entries);
            measured_target(sides[1]);
            left -= done;
            ended += done;
        }
    }
    std::printf("%llu operations\n", static_cast<unsigned long long>(ended));
    return 0;
}
