// SPDX-License-Identifier: BSD-3-Clause
// A client thread works on the rings while a device thread executes them. With
// ThreadSanitizer this checks the order of the shared accesses.
#include <algorithm>
#include <atomic>
#include <thread>

#include "test/softcx/engine/receive_fixture.h"

namespace softcx::test {
namespace {

TEST(EngineThread, ClientAndDeviceShareTheRings) {
    constexpr uint32_t kFrames = 20000;
    constexpr uint32_t kBuffer = 256;
    Rig rig(0, "loopback");
    const auto send_cq = rig.make_cq(16);
    const auto receive_cq = rig.make_cq(16);
    const auto sq = rig.make_sender(*send_cq, 16);
    const auto wq = rig.make_wq(*receive_cq, 8);
    rig.make_flow(rig.make_rss_qp({wq->wq}));
    Bytes memory(8 * kBuffer);
    MemoryRegion* mr = rig.make_mr(memory.data(), memory.size());
    for (uint32_t i = 0; i < 8; ++i)
        wq->post({{mr->start + i * kBuffer, kBuffer, mr->lkey}});

    std::atomic<bool> stop{false};
    std::thread device([&] {
        while (!stop.load(std::memory_order_relaxed)) {
            if (rig.step() == 0)
                std::this_thread::yield();
        }
    });

    uint32_t sent = 0, completed = 0, received = 0;
    bool intact = true;
    while (received < kFrames) {
        if (sent < kFrames && sent - received < 4 && sent - completed < 4) {
            sq->post({.inline_data = pattern(60 + sent % 100, static_cast<uint8_t>(sent))});
            ++sent;
        }
        if (send_cq->poll().has_value())
            ++completed;
        if (const std::optional<Cqe> cqe = receive_cq->poll()) {
            const uint32_t slot = received % 8;
            const Bytes expected = pattern(60 + received % 100, static_cast<uint8_t>(received));
            intact &= cqe->byte_cnt.get() == expected.size() &&
                      std::equal(expected.begin(), expected.end(), &memory[slot * kBuffer]);
            ++received;
            wq->post({{mr->start + slot * kBuffer, kBuffer, mr->lkey}});
        } else {
            std::this_thread::yield();
        }
    }
    stop = true;
    device.join();
    EXPECT_TRUE(intact);
    EXPECT_EQ(rig.counters().client_errors, 0u);
    EXPECT_EQ(rig.counters().out_of_buffer, 0u);
}

}  // namespace
}  // namespace softcx::test
