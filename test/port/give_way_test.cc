// SPDX-License-Identifier: BSD-3-Clause
#include "lib/port/give_way.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>

namespace {

using tagwire::port::CoreShare;
using tagwire::port::give_way;
using tagwire::port::more_ranks_than_cores;

constexpr uint64_t kUs = 1'000;
constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kStart = 1'000 * kMs;

TEST(CoreShare, IsNotCrowdedWhileTheThreadRuns) {
    CoreShare share;
    for (uint64_t time = 0; time < 100 * kMs; time += 20 * kUs) {
        EXPECT_FALSE(share.crowded(kStart + time, time));
    }
}

TEST(CoreShare, IsNotCrowdedWhenOthersOnlyPollInBetween) {
    CoreShare share;
    for (uint64_t time = 0; time < 100 * kMs; time += 200 * kUs) {
        EXPECT_FALSE(share.crowded(kStart + time, time / 10));
    }
}

TEST(CoreShare, IsCrowdedAfterATimeSliceOfAnother) {
    CoreShare share;
    share.crowded(kStart, 0);

    EXPECT_TRUE(share.crowded(kStart + 3 * kMs, 20 * kUs));
}

TEST(CoreShare, ForgetsAfterAWhile) {
    CoreShare share;
    share.crowded(kStart, 0);
    uint64_t now = kStart + 3 * kMs;
    ASSERT_TRUE(share.crowded(now, 0));
    const uint64_t end = now + CoreShare::kCrowdedNs;

    for (uint64_t ran = 0; (now += 60 * kUs) < end;) {
        EXPECT_TRUE(share.crowded(now, ran += 5 * kUs));
    }
    EXPECT_FALSE(share.crowded(now, 100 * kMs));
}

TEST(CoreShare, DoesNotTakeASleepOfTheApplicationForCrowding) {
    CoreShare share;
    share.crowded(kStart, 0);

    EXPECT_FALSE(share.crowded(kStart + CoreShare::kMemoryNs, 20 * kUs));
}

class Ranks : public testing::Test {
  protected:
    void SetUp() override {
        unsetenv("MPI_LOCALNRANKS");
        unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    }
    void TearDown() override { SetUp(); }
};

TEST_F(Ranks, AreNotMoreThanCoresWithoutALauncher) {
    EXPECT_FALSE(more_ranks_than_cores());
}

TEST_F(Ranks, AreCountedByTheLauncher) {
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    for (const char* name : {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"}) {
        setenv(name, std::to_string(cores).c_str(), 1);
        EXPECT_FALSE(more_ranks_than_cores()) << name;
        setenv(name, std::to_string(cores + 1).c_str(), 1);
        EXPECT_TRUE(more_ranks_than_cores()) << name;
        unsetenv(name);
    }
}

pid_t start(void (*body)()) {
    const pid_t child = fork();
    if (child == 0) {
        body();
        _exit(0);
    }
    return child;
}

void use_one_core() {
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof(allowed), &allowed);
    int core = 0;
    while (!CPU_ISSET(core, &allowed)) {
        ++core;
    }
    CPU_ZERO(&allowed);
    CPU_SET(core, &allowed);
    sched_setaffinity(0, sizeof(allowed), &allowed);
}

// On a core that another session's process uses up, a rank's polling turns into napping.
TEST(GiveWay, NapsBesideABusyProcessOfAnotherSession) {
    const pid_t busy = start([] {
        setsid();
        use_one_core();
        for (const pid_t parent = getppid(); getppid() == parent;) {
        }
    });
    const pid_t rank = start([] {
        setenv("MPI_LOCALNRANKS", "100000", 1);
        use_one_core();
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (!give_way()) {
            if (std::chrono::steady_clock::now() > end) {
                _exit(1);
            }
        }
    });

    int status = -1;
    waitpid(rank, &status, 0);
    kill(busy, SIGKILL);
    waitpid(busy, nullptr, 0);

    EXPECT_EQ(status, 0);
}

}  // namespace
