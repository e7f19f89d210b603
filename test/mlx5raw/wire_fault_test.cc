// SPDX-License-Identifier: BSD-3-Clause
// Traffic over a wire with faults: what was not lost by the wire arrives, the driver's
// counters and the device's account for every frame, and no mbuf is missing.
//
// softcx reads its faults once per process, so each fault runs in a process of its own.
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "drivers/softcx/softcx.h"
#include "test/mlx5raw/port_fixture.h"

namespace tagwire::mlx5raw {
namespace {

constexpr const char* kFaults = "SOFTCX_FAULTS";
constexpr uint16_t kQueues = 4;
constexpr uint16_t kRounds = 100;
constexpr uint16_t kPerRound = 10;  // frames of each queue

class WireFaults : public PortPair {
  protected:
    uint64_t counter(unsigned device, const char* name) {
        return softcx_counter(rdma_device(device).c_str(), name);
    }

    Frame udp(uint16_t index) const {
        return ip_frame(mac_of(ports[1]), {{10, 0, 0, 1}, {10, 0, 0, 2}, index, 7}, IPPROTO_UDP,
                        40);
    }

    // Frames of port 1 until none came for a while: the wire may hold them back.
    size_t receive_all() {
        size_t arrived = 0;
        auto last = std::chrono::steady_clock::now();
        while (std::chrono::steady_clock::now() - last < std::chrono::milliseconds(50)) {
            softcx_step();
            if (const size_t now = receive(ports[1]).size(); now != 0) {
                arrived += now;
                last = std::chrono::steady_clock::now();
            }
        }
        return arrived;
    }
};

// The part that runs in a process of its own.
TEST_F(WireFaults, Run) {
    NEEDS_SOFTCX();
    if (std::getenv(kFaults) == nullptr) {
        GTEST_SKIP() << "started by WireFaults.EveryFrameIsAccountedFor, with " << kFaults;
    }
    ASSERT_NO_FATAL_FAILURE(open({.queues = kQueues, .descriptors = 512}));
    uint64_t arrived = 0;
    for (uint16_t round = 0; round < kRounds; ++round) {
        for (uint16_t queue = 0; queue < kQueues; ++queue) {
            for (uint16_t i = 0; i < kPerRound; ++i) {
                send(ports[0], queue, udp(static_cast<uint16_t>(round * kPerRound + i)));
            }
        }
        settle();
        arrived += receive(ports[1]).size();
    }
    arrived += receive_all();

    constexpr uint64_t kSent = uint64_t{kRounds} * kPerRound * kQueues;
    const uint64_t lost = counter(0, "fault_lost") + counter(0, "fault_tail_dropped");
    const uint64_t refused = counter(1, "rx_no_flow") + counter(1, "out_of_buffer");
    EXPECT_EQ(arrived, kSent - lost + counter(0, "fault_duplicated") - refused);
    EXPECT_EQ(stats_of(ports[0]).opackets, kSent);
    EXPECT_EQ(stats_of(ports[1]).ipackets, arrived);
    EXPECT_EQ(stats_of(ports[1]).imissed, counter(1, "out_of_buffer"));
    EXPECT_EQ(counter(0, "client_errors") + counter(1, "client_errors"), 0u);
    for (uint16_t queue = 0; queue < kQueues; ++queue) {
        EXPECT_GT(stats_of(ports[1]).q_ipackets[queue], 0u);
    }
    std::string struck;
    for (const char* name : {"fault_lost", "fault_duplicated", "fault_corrupted", "fault_reordered",
                             "fault_delayed", "fault_tail_dropped"}) {
        if (counter(0, name) != 0 && counter(0, name) != ~uint64_t{0}) {
            struck += std::string(" ") + name + " " + std::to_string(counter(0, name));
        }
    }
    EXPECT_FALSE(struck.empty()) << "the fault never struck";
    printf("%s:%s; %lu of %lu arrived\n", std::getenv(kFaults), struck.c_str(),
           static_cast<unsigned long>(arrived), static_cast<unsigned long>(kSent));
}

class EachWireFault : public testing::TestWithParam<const char*> {};

TEST_P(EachWireFault, EveryFrameIsAccountedFor) {
    NEEDS_SOFTCX();
    setenv(kFaults, GetParam(), 1);
    EXPECT_EQ(run_alone("WireFaults.Run"), 0) << GetParam();
    unsetenv(kFaults);
}

INSTANTIATE_TEST_SUITE_P(Faults, EachWireFault,
                         testing::Values("loss=0.1,seed=1", "dup=0.1,seed=2", "reorder=16,seed=3",
                                         "corrupt=0.2,seed=4", "delay=300us,queue=4096,seed=5",
                                         "rate=200M,queue=4096,seed=6", "rate=100M,queue=8,seed=7",
                                         "loss=0.02,dup=0.02,reorder=8,corrupt=0.02,delay=50us,"
                                         "queue=4096,seed=8"));

}  // namespace
}  // namespace tagwire::mlx5raw
