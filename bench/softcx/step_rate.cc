// SPDX-License-Identifier: BSD-3-Clause
// Frames per second through two devices back to back, in step mode on one thread;
// under callgrind (--toggle-collect='softcx::engine_step*') the instructions of the
// model per frame.   step_rate [FRAME BYTES] [MILLIONS OF FRAMES]
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "test/softcx/engine/packets.h"

namespace {

using namespace softcx;
using namespace softcx::test;

constexpr uint32_t kBurst = 32;
constexpr uint32_t kRing = 512;
constexpr uint32_t kBuffer = 2048;

}  // namespace

int main(int argc, char** argv) {
    const auto length = static_cast<uint32_t>(argc > 1 ? std::atoi(argv[1]) : 64);
    const double millions = argc > 2 ? std::atof(argv[2]) : 2;
    if (length < 60 || length > kBuffer || millions <= 0) {
        std::fprintf(stderr, "usage: step_rate [FRAME BYTES, 60 to 2048] [MILLIONS OF FRAMES]\n");
        return 2;
    }
    const auto frames = static_cast<uint64_t>(millions * 1e6) / kBurst * kBurst;

    Rig sender(0, "pair");
    Rig receiver(1, "pair");
    const auto send_cq = sender.make_cq(64);
    const auto sq = sender.make_sender(*send_cq, kRing);
    Bytes frame = make_packet({.payload = Bytes(length - 42)});
    MemoryRegion* send_mr = sender.make_mr(frame.data(), frame.size());
    const auto receive_cq = receiver.make_cq(kRing);
    const auto wq = receiver.make_wq(*receive_cq, kRing);
    Bytes memory(size_t{kRing} * kBuffer);
    MemoryRegion* receive_mr = receiver.make_mr(memory.data(), memory.size());
    const Bytes key(40, 0x6d);
    receiver.make_flow(receiver.make_rss_qp({wq->wq},
                                            MLX5_RX_HASH_SRC_IPV4 | MLX5_RX_HASH_DST_IPV4 |
                                                MLX5_RX_HASH_SRC_PORT_UDP |
                                                MLX5_RX_HASH_DST_PORT_UDP,
                                            key));
    const auto post_receive = [&](uint32_t slot) {
        wq->post({{receive_mr->start + size_t{slot % kRing} * kBuffer, kBuffer, receive_mr->lkey}});
    };
    for (uint32_t i = 0; i < kRing; ++i)
        post_receive(i);

    SendOptions options{.completion = CompletionMode::kOnFirstError,
                        .segments = {{send_mr->start, length, send_mr->lkey}},
                        .ring_doorbell = false};
    uint64_t received = 0;
    const auto start = std::chrono::steady_clock::now();
    for (uint64_t sent = 0; sent < frames; sent += kBurst) {
        for (uint32_t i = 0; i < kBurst; ++i) {
            options.completion =
                i + 1 == kBurst ? CompletionMode::kAlways : CompletionMode::kOnFirstError;
            sq->post(options);
        }
        sq->ring_doorbell();
        sender.step();
        receiver.step();
        while (receive_cq->poll().has_value())
            post_receive(static_cast<uint32_t>(received++));
        while (send_cq->poll().has_value()) {
        }
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("%u-byte frames: %llu sent, %llu received, %.2f million/s\n", length,
                static_cast<unsigned long long>(frames), static_cast<unsigned long long>(received),
                static_cast<double>(received) / seconds.count() / 1e6);
    return received == frames ? 0 : 1;
}
