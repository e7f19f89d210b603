// SPDX-License-Identifier: BSD-3-Clause
// Random operations while regions close, programs restart and the network is bad: each
// operation ends once, and no memory is touched after its region was closed.
#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>

#include "test/rma/rma_fixture.h"

namespace tagwire::test {
namespace {

class Chaos : public testing::TestWithParam<uint64_t> {
  protected:
    static constexpr size_t kPeers = 3;
    struct Operation {
        std::string buffer;
        size_t peer;
        int life;
    };
    struct Piece {  // of some program's memory
        size_t peer;
        int life;
        std::unique_ptr<Memory> memory;
        uint64_t key;
    };

    uint64_t below(uint64_t bound) { return simulator.below(bound); }

    void open() {
        const size_t peer = below(kPeers);
        auto memory = std::make_unique<Memory>(peers[peer], 8 * (1 + below(40'000)));
        const uint64_t key = memory->key();
        regions.push_back({peer, lives[peer], std::move(memory), key});
    }

    void close(size_t index) {
        Piece& piece = regions[index];
        if (piece.life == lives[piece.peer]) {
            piece.memory->close();
        } else {
            piece.memory->forget();
        }
        piece.memory->bytes.assign(piece.memory->bytes.size(), 'c');
        closed.push_back(std::move(piece));
        regions.erase(regions.begin() + static_cast<ptrdiff_t>(index));
    }

    void operate() {
        const size_t from = below(kPeers);
        SimPeer& peer = peers[from];
        Operation& operation = operations.emplace_back();
        operation.peer = from;
        operation.life = lives[from];
        // Also of regions that are gone, and of lives that are over.
        std::vector<Piece>& some = closed.empty() || below(8) != 0 ? regions : closed;
        const Piece& piece = some[below(some.size())];
        const uint64_t key = piece.key;
        const size_t size = piece.memory->bytes.size();
        const size_t offset = below(size);
        const size_t room = size - offset + (below(20) == 0 ? 1 : 0);
        const size_t length = below(2) == 0 ? std::min<size_t>(room, 1 + below(200)) : room;
        operation.buffer.assign(length, 'p');
        const tw_addr to = peer.address_of(peers[piece.peer]);
        const uint64_t address = piece.memory->address(offset);
        char* const bytes = operation.buffer.data();
        int result = 0;
        switch (below(6)) {
            case 0:
                result = tw_write(peer.ep, bytes, length, to, address, key, &operation);
                break;
            case 1:
                result = tw_writedata(peer.ep, bytes, length, 1, to, address, key, &operation);
                break;
            case 2:
                result = tw_read(peer.ep, bytes, length, to, address, key, &operation);
                break;
            case 3:
                operation.buffer.assign(8, '\0');
                result = tw_fetch_atomic(peer.ep, bytes, 1, operation.buffer.data(), to,
                                         piece.memory->address(offset / 8 * 8), key, TW_UINT64,
                                         TW_SUM, &operation);
                break;
            case 4:
                result = tw_ep_flush(peer.ep, below(2) == 0 ? to : TW_ADDR_UNSPEC, &operation);
                break;
            default: {
                operation.buffer.assign(TW_ATOMIC_SIZE, '\0');
                const size_t count = std::min<size_t>(TW_ATOMIC_SIZE, size) / 8;
                result = tw_atomic(peer.ep, operation.buffer.data(), count, to,
                                   piece.memory->address(), key, TW_UINT64, TW_BOR, &operation);
            }
        }
        if (result == -EAGAIN) {  // the session of an earlier life closes
            operations.pop_back();
            return;
        }
        ASSERT_EQ(result, 0) << tw_last_error();
        peer.wake();
    }

    void restart(size_t index) {
        peers[index].die();
        ++lives[index];
        peers[index].start();
    }

    // How often each operation ended.
    std::map<const void*, int> endings() const {
        std::map<const void*, int> count;
        for (const SimPeer& peer : peers) {
            for (const tw_cq_entry& entry : peer.sent) {
                ++count[entry.context];
            }
            for (const tw_cq_error& error : peer.errors) {
                ++count[error.entry.context];
            }
        }
        return count;
    }

    sim::Simulator simulator{sim::seed() * 1000 + GetParam()};
    std::deque<SimPeer> peers;
    std::array<int, kPeers> lives{};
    std::vector<Piece> regions, closed;
    std::deque<Operation> operations;
};

TEST_P(Chaos, every_operation_ends_once_and_closed_memory_rests) {
    simulator.faults.loss = 0.02;
    simulator.faults.duplication = 0.02;
    simulator.faults.reordering = 0.02;
    PeerOptions options;
    options.peer_timeout_ms = 300;
    for (size_t i = 0; i < kPeers; ++i) {
        peers.emplace_back(simulator.add_node(), options);
    }
    for (int i = 0; i < 4; ++i) {
        open();
    }
    for (int step = 0; step < 300; ++step) {
        for (uint64_t i = below(6); i > 0; --i) {
            operate();
        }
        if (below(12) == 0 && regions.size() > 1) {
            close(below(regions.size()));
            open();
        }
        if (below(60) == 0) {
            restart(below(kPeers));
        }
        simulator.run_for(below(300'000));
    }
    while (!regions.empty()) {
        if (regions[0].life == lives[regions[0].peer] && below(2) == 0) {
            simulator.run_for(kSecond / 100);
        }
        close(0);
    }
    simulator.faults = {};
    ASSERT_TRUE(simulator.run_until(
        [&] {
            return std::all_of(peers.begin(), peers.end(), [](const SimPeer& peer) {
                return peer.stat("rma_outstanding") == 0;
            });
        },
        100 * kSecond));
    simulator.run_for(kSecond);
    const std::map<const void*, int> ended = endings();
    for (const Operation& operation : operations) {
        const auto found = ended.find(&operation);
        const int times = found == ended.end() ? 0 : found->second;
        if (operation.life == lives[operation.peer]) {
            EXPECT_EQ(times, 1);
        } else {
            EXPECT_LE(times, 1) << "of a former life";
        }
    }
    for (const Piece& piece : closed) {
        const std::string& bytes = piece.memory->bytes;
        ASSERT_EQ(bytes.find_first_not_of('c'), std::string::npos) << "touched after it was closed";
    }
    EXPECT_EQ(peers[0].stat("rma_malformed"), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Chaos, testing::Range(uint64_t{0}, uint64_t{8}));

}  // namespace
}  // namespace tagwire::test
