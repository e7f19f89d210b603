// SPDX-License-Identifier: BSD-3-Clause
// The switch: learning in one process, and processes that come, go and die.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "drivers/softcx/wire/switch_segment.h"
#include "drivers/softcx/wire/switch_wire.h"
#include "drivers/softcx/wire/wire.h"

namespace softcx {
namespace {

using Frame = std::vector<uint8_t>;

constexpr uint8_t kEverybody = 0xff;

// Stations are numbered; kEverybody is the broadcast address.
Frame make_frame(uint8_t to, uint8_t from, size_t length = 60, uint32_t number = 0) {
    Frame frame(length);
    const auto station = [](uint8_t* at, uint8_t name) {
        std::memset(at, name == kEverybody ? 0xff : 0, 6);
        at[0] = name == kEverybody ? 0xff : 0x02;
        at[5] = name;
    };
    station(frame.data(), to);
    station(frame.data() + 6, from);
    for (size_t i = 12; i < length; ++i)
        frame[i] = static_cast<uint8_t>(number + i * 13);
    std::memcpy(frame.data() + 14, &number, sizeof(number));
    return frame;
}

uint32_t number_of(const Frame& frame) {
    uint32_t number = 0;
    std::memcpy(&number, frame.data() + 14, sizeof(number));
    return number;
}

bool send(Wire& wire, const Frame& frame) {
    const Wire::Piece piece{frame.data(), static_cast<uint32_t>(frame.size())};
    return wire.send({&piece, 1}, piece.length);
}

Frame receive(Wire& wire) {
    const std::span<const uint8_t> frame = wire.receive();
    Frame copy(frame.begin(), frame.end());
    if (!copy.empty())
        wire.release();
    return copy;
}

// Polls for as long as a slow machine may need.
bool eventually(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline)
            return false;
    }
    return true;
}

// The magic number is written last.
bool is_made(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    uint64_t magic = 0;
    const bool made = fd >= 0 && pread(fd, &magic, sizeof(magic), 0) == sizeof(magic) &&
                      magic == SwitchLayout::kMagic;
    if (fd >= 0)
        close(fd);
    return made;
}

class SwitchTest : public ::testing::Test {
  protected:
    std::string name = "test-" + std::to_string(getpid());
    std::string path = "/dev/shm/softcx-" + name;

    ~SwitchTest() override {
        while (!children_.empty())
            kill_hard(*children_.begin());
        unlink(path.c_str());
    }

    std::unique_ptr<Wire> plug() {
        std::string error;
        std::unique_ptr<Wire> wire = open_wire("switch:" + name, 0, &error);
        EXPECT_NE(wire, nullptr) << error;
        return wire;
    }

    // A child that runs `body` and exits with its result.
    pid_t spawn(const std::function<int()>& body) {
        const pid_t child = fork();
        if (child == 0)
            _exit(body());
        children_.insert(child);
        return child;
    }

    int join(pid_t child) {
        children_.erase(child);
        int status = 0;
        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    void kill_hard(pid_t child) {
        kill(child, SIGKILL);
        join(child);
    }

    bool exists() const { return access(path.c_str(), F_OK) == 0; }

  private:
    std::set<pid_t> children_;
};

TEST_F(SwitchTest, FloodsBroadcastToAllOthers) {
    const auto a = plug(), b = plug(), c = plug();
    const Frame frame = make_frame(kEverybody, 1);
    send(*a, frame);
    EXPECT_EQ(receive(*b), frame);
    EXPECT_EQ(receive(*c), frame);
    EXPECT_TRUE(receive(*a).empty());
}

TEST_F(SwitchTest, FloodsUnknownUnicastAndLearnsFromTheAnswer) {
    const auto a = plug(), b = plug(), c = plug();
    send(*a, make_frame(2, 1));
    EXPECT_FALSE(receive(*b).empty());
    EXPECT_FALSE(receive(*c).empty());
    send(*b, make_frame(1, 2));
    EXPECT_FALSE(receive(*a).empty());
    EXPECT_TRUE(receive(*c).empty());
    send(*a, make_frame(2, 1));
    EXPECT_FALSE(receive(*b).empty());
    EXPECT_TRUE(receive(*c).empty());
}

TEST_F(SwitchTest, FollowsAStationToItsNewPort) {
    const auto a = plug(), b = plug(), c = plug();
    send(*b, make_frame(kEverybody, 2));
    send(*c, make_frame(kEverybody, 2));
    while (!receive(*a).empty() || !receive(*b).empty() || !receive(*c).empty()) {
    }
    send(*a, make_frame(2, 1));
    EXPECT_TRUE(receive(*b).empty());
    EXPECT_FALSE(receive(*c).empty());
}

TEST_F(SwitchTest, FiltersFramesToAStationOnTheSendersSide) {
    const auto a = plug(), b = plug();
    send(*a, make_frame(kEverybody, 1));
    send(*a, make_frame(kEverybody, 3));
    receive(*b);
    receive(*b);
    EXPECT_TRUE(send(*a, make_frame(3, 1)));
    EXPECT_TRUE(receive(*b).empty());
    EXPECT_TRUE(receive(*a).empty());
}

TEST_F(SwitchTest, TakesTurnsBetweenSources) {
    const auto a = plug(), b = plug(), c = plug();
    for (int i = 0; i < 200; ++i)
        send(*a, make_frame(9, 1));
    send(*b, make_frame(9, 2));
    int before = 0;
    while (receive(*c)[11] != 2)
        ++before;
    EXPECT_LT(before, 100);
}

TEST_F(SwitchTest, CountsTailDropsAndGoesOnAfterTheBacklogIsRead) {
    const auto a = plug(), b = plug();
    uint32_t sent = 0;
    while (send(*a, make_frame(2, 1, 1514, sent)))
        ++sent;
    EXPECT_FALSE(send(*a, make_frame(2, 1, 1514, sent)));
    EXPECT_EQ(static_cast<SwitchWire&>(*b).tail_drops(), 2u);
    for (uint32_t i = 0; i < sent; ++i)
        ASSERT_EQ(receive(*b), make_frame(2, 1, 1514, i));
    EXPECT_TRUE(send(*a, make_frame(2, 1, 1514)));
    EXPECT_FALSE(receive(*b).empty());
}

TEST_F(SwitchTest, SegmentIsPrivateAndRemovedByTheLastPort) {
    auto a = plug(), b = plug();
    struct stat status {};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    a.reset();
    EXPECT_TRUE(exists());
    b.reset();
    EXPECT_FALSE(exists());
}

TEST_F(SwitchTest, SegmentIsRemovedWhenAllPortsLeaveAtOnce) {
    constexpr int kRounds = 50;
    for (int round = 0; round < kRounds; ++round) {
        std::vector<std::unique_ptr<Wire>> wires;
        for (int i = 0; i < 4; ++i)
            wires.push_back(plug());
        std::atomic<bool> go = false;
        std::vector<std::thread> leaving;
        for (auto& wire : wires) {
            leaving.emplace_back([&go, &wire] {
                while (!go)
                    std::this_thread::yield();
                wire.reset();
            });
        }
        go = true;
        for (std::thread& thread : leaving)
            thread.join();
        ASSERT_FALSE(exists()) << "round " << round;
    }
}

TEST_F(SwitchTest, AFullSwitchSaysSo) {
    std::vector<std::unique_ptr<Wire>> wires;
    for (uint32_t i = 0; i < kSwitchPorts; ++i)
        wires.push_back(plug());
    std::string error;
    EXPECT_EQ(open_wire("switch:" + name, 0, &error), nullptr);
    EXPECT_NE(error.find("ports"), std::string::npos) << error;
    wires.pop_back();
    EXPECT_NE(plug(), nullptr);
}

TEST_F(SwitchTest, ANewOwnerOfAPortDoesNotSeeOldFrames) {
    const auto a = plug();
    auto b = plug();
    send(*a, make_frame(2, 1));
    b.reset();
    b = plug();
    EXPECT_TRUE(receive(*b).empty());
    send(*a, make_frame(2, 1, 60, 7));
    EXPECT_EQ(number_of(receive(*b)), 7u);
}

TEST_F(SwitchTest, AnotherLayoutInUseIsRefused) {
    std::string error;
    const auto segment = SwitchSegment::attach(name, &error);
    segment->layout().version = 99;
    EXPECT_EQ(open_wire("switch:" + name, 0, &error), nullptr);
    EXPECT_NE(error.find("another version"), std::string::npos) << error;
    segment->layout().magic.store(0);
    EXPECT_EQ(open_wire("switch:" + name, 0, &error), nullptr);
    EXPECT_NE(error.find("not a softcx switch"), std::string::npos) << error;
}

TEST_F(SwitchTest, TwoProcessesExchangeFramesOfAllSizes) {
    constexpr uint32_t kFrames = 3000;
    const auto length_of = [](uint32_t number) { return 60 + number * 997 % 8941; };
    const auto a = plug();
    const pid_t child = spawn([&] {
        // Echoes, from its own station.
        const auto b = plug();
        send(*b, make_frame(kEverybody, 2));
        for (uint32_t i = 0; i < kFrames; ++i) {
            Frame frame;
            if (!eventually([&] { return !(frame = receive(*b)).empty(); }) ||
                frame != make_frame(2, 1, length_of(i), i))
                return 1;
            if (!send(*b, make_frame(1, 2, length_of(i), i)))
                return 2;
        }
        return 0;
    });
    ASSERT_TRUE(eventually([&] { return !receive(*a).empty(); }));
    uint32_t received = 0;
    const auto take_one = [&] {
        const Frame frame = receive(*a);
        if (frame.empty())
            return false;
        EXPECT_EQ(frame, make_frame(1, 2, length_of(received), received));
        ++received;
        return true;
    };
    for (uint32_t i = 0; i < kFrames; ++i) {
        ASSERT_TRUE(send(*a, make_frame(2, 1, length_of(i), i)));
        ASSERT_TRUE(eventually([&] { return i - received < 16 || take_one(); }));
    }
    ASSERT_TRUE(eventually([&] {
        take_one();
        return received == kFrames;
    }));
    EXPECT_EQ(join(child), 0);
}

TEST_F(SwitchTest, AKilledSenderLeavesNoDamageAndItsPortIsReclaimed) {
    const auto a = plug();
    std::string error;
    const auto observer = SwitchSegment::attach(name, &error);
    const uint64_t before = observer->others();
    for (uint32_t life = 0; life < 5; ++life) {
        const pid_t child = spawn([&] {
            const auto b = plug();
            for (uint32_t i = 0;; ++i)
                send(*b, make_frame(1, 2, 60 + i % 1400, i));
            return 0;
        });
        uint32_t last = 0;
        uint32_t seen = 0;
        const auto read_one = [&] {
            const Frame frame = receive(*a);
            if (frame.empty())
                return false;
            const uint32_t number = number_of(frame);
            EXPECT_EQ(frame, make_frame(1, 2, 60 + number % 1400, number));
            EXPECT_TRUE(seen == 0 || number > last);
            last = number;
            ++seen;
            return true;
        };
        ASSERT_TRUE(eventually([&] { return read_one() && seen > 2000; }));
        kill_hard(child);
        while (read_one()) {
        }
        ASSERT_TRUE(eventually([&] {
            receive(*a);
            return observer->others() == before;
        }));
    }
}

TEST_F(SwitchTest, AfterAReceiverIsKilledItsAddressIsForgottenAndItMayRejoin) {
    const auto a = plug(), c = plug();
    const auto run_b = [&] {
        const auto b = plug();
        for (;;) {
            send(*b, make_frame(kEverybody, 2));
            receive(*b);
        }
        return 0;
    };
    const pid_t first = spawn(run_b);
    ASSERT_TRUE(eventually([&] { return !receive(*a).empty(); }));
    kill_hard(first);
    // Known address: not flooded to c. Forgotten: flooded.
    ASSERT_TRUE(eventually([&] {
        send(*a, make_frame(2, 1));
        receive(*a);
        const Frame frame = receive(*c);
        return !frame.empty() && frame[5] == 2 && frame[0] == 0x02;
    }));
    while (!receive(*a).empty() || !receive(*c).empty()) {
    }
    const pid_t second = spawn(run_b);
    EXPECT_TRUE(eventually([&] { return !receive(*a).empty(); }));
    kill_hard(second);
}

TEST_F(SwitchTest, AStaleSegmentIsMadeNew) {
    const pid_t child = spawn([&] {
        std::string error;
        const auto segment = SwitchSegment::attach(name, &error);
        segment->layout().version = 99;  // even that of another version
        kill(getpid(), SIGKILL);
        return 0;
    });
    join(child);
    ASSERT_TRUE(exists());
    const auto a = plug(), b = plug();
    ASSERT_TRUE(a != nullptr && b != nullptr);
    send(*a, make_frame(kEverybody, 1));
    EXPECT_FALSE(receive(*b).empty());
    EXPECT_NE(a->describe().find("port 0"), std::string::npos) << a->describe();
}

TEST_F(SwitchTest, AnyOtherSwitchSweepsWhatKilledProcessesLeft) {
    const std::string dead = "/dev/shm/softcx-" + name + "-dead";
    const std::string alive = "/dev/shm/softcx-" + name + "-alive";
    const auto attach_and_wait = [&](const std::string& suffix) {
        return spawn([&, suffix] {
            std::string error;
            const auto segment = SwitchSegment::attach(name + suffix, &error);
            return pause();
        });
    };
    const pid_t first = attach_and_wait("-dead");
    const pid_t second = attach_and_wait("-dead");
    const pid_t third = attach_and_wait("-alive");
    ASSERT_TRUE(eventually([&] { return is_made(dead) && is_made(alive); }));
    kill_hard(first);
    kill_hard(second);
    ASSERT_EQ(access(dead.c_str(), F_OK), 0);

    const auto a = plug();

    EXPECT_NE(access(dead.c_str(), F_OK), 0);
    EXPECT_EQ(access(alive.c_str(), F_OK), 0);
    kill_hard(third);
    unlink(alive.c_str());
}

TEST_F(SwitchTest, ASweepLeavesOtherFilesAlone) {
    const std::string other = "/dev/shm/softcx-" + name + "-other";
    FILE* file = fopen(other.c_str(), "w");
    ASSERT_NE(file, nullptr);
    fputs("not a switch, but longer than its magic number", file);
    fclose(file);
    const auto a = plug();
    EXPECT_EQ(access(other.c_str(), F_OK), 0);
    unlink(other.c_str());
}

TEST_F(SwitchTest, AForkedChildDoesNotDetachItsParent) {
    auto a = plug();
    const auto b = plug();
    const pid_t child = spawn([&] {
        a.reset();
        return 0;
    });
    join(child);
    send(*b, make_frame(kEverybody, 2));
    EXPECT_FALSE(receive(*a).empty());
}

}  // namespace
}  // namespace softcx
