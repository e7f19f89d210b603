// SPDX-License-Identifier: BSD-3-Clause
// The wire to a network device of the kernel, on a veth in a namespace of this test.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "drivers/softcx/engine/parse.h"
#include "drivers/softcx/model/objects.h"
#include "drivers/softcx/wire/frame_ring.h"
#include "drivers/softcx/wire/wire.h"

namespace softcx {
namespace {

using Bytes = std::vector<uint8_t>;

bool run(const std::string& command) {
    return std::system((command + " 2>/dev/null").c_str()) == 0;
}

class NetdevWireTest : public ::testing::Test {
  protected:
    void SetUp() override {
        home_ = ::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        if (::unshare(CLONE_NEWNET) != 0)
            GTEST_SKIP() << "no network namespace: " << std::strerror(errno) << " (run as root)";
        away_ = true;
        // IPv6 would speak by itself.
        if (!run("ip link add sx0 type veth peer name sx1 && "
                 "for i in sx0 sx1; do echo 1 >/proc/sys/net/ipv6/conf/$i/disable_ipv6; "
                 "ip link set $i up; done"))
            GTEST_SKIP() << "ip makes no veth (package iproute2, and a kernel with veth)";
        near_ = open("sx0", near_counters_);
        far_ = open("sx1", far_counters_);
        ASSERT_NE(near_, nullptr) << error_;
        ASSERT_NE(far_, nullptr) << error_;
        // The kernel brings a link up by and by.
        ASSERT_TRUE(wait_for(*near_, true) && wait_for(*far_, true));
    }

    static bool wait_for(Wire& wire, bool link) {
        for (int i = 0; i < 10000 && wire.link_up() != link; ++i) {
            wire.receive();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return wire.link_up() == link;
    }

    void TearDown() override {
        near_.reset();
        far_.reset();
        if (away_ && ::setns(home_, CLONE_NEWNET) != 0)
            std::abort();  // the next test would run in the wrong place
        ::close(home_);
    }

    std::unique_ptr<Wire> open(const std::string& name, PortCounters& counters) {
        return open_wire("netdev:" + name, 0, counters, &error_);
    }

    static Bytes frame(size_t length, uint8_t seed = 1) {
        Bytes bytes(length);
        for (size_t i = 0; i < length; ++i)
            bytes[i] = static_cast<uint8_t>(seed + i * 7);
        bytes[0] = 2;
        store_be16(bytes.data() + 12, 0x88b5);  // IEEE 802, local experimental
        return bytes;
    }

    static bool send(Wire& wire, const Bytes& bytes) {
        const auto half = static_cast<uint32_t>(bytes.size() / 2);
        const Wire::Piece pieces[] = {
            {bytes.data(), half},
            {bytes.data() + half, static_cast<uint32_t>(bytes.size()) - half}};
        return wire.send(pieces, static_cast<uint32_t>(bytes.size()));
    }

    // The next frame, or nothing in time.
    static Bytes receive(Wire& wire,
                         std::chrono::milliseconds patience = std::chrono::seconds(10)) {
        const auto end = std::chrono::steady_clock::now() + patience;
        do {
            const std::span<const uint8_t> seen = wire.receive();
            if (!seen.empty()) {
                Bytes copy(seen.begin(), seen.end());
                wire.release();
                return copy;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        } while (std::chrono::steady_clock::now() < end);
        return {};
    }

    // When the kernel is late with its own work, its queue between the ends overflows.
    static uint64_t dropped_by_the_veth(const std::string& name) {
        std::ifstream table("/proc/thread-self/net/dev");
        for (std::string line; std::getline(table, line);) {
            std::istringstream words(line);
            std::string first;
            words >> first;
            if (first != name + ":")
                continue;
            uint64_t value = 0;
            for (int column = 1; column <= 12; ++column)  // 8 of reception, then sending's
                words >> value;
            return value;
        }
        return 0;
    }

    // UDP of the kernel's own stack, out of sx1, in messages of `segment` bytes.
    static bool send_udp(size_t length, uint16_t segment) {
        if (!run("ip addr add 192.0.2.1/24 dev sx1 && "
                 "ip neigh add 192.0.2.2 lladdr 02:00:00:00:00:42 dev sx1"))
            return false;
        const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
        const int size = segment;
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(4791);
        to.sin_addr.s_addr = htonl(0xc0000202);
        const Bytes payload(length, 0x5a);
        const bool sent =
            (segment == 0 || ::setsockopt(fd, SOL_UDP, UDP_SEGMENT, &size, sizeof(size)) == 0) &&
            ::sendto(fd, payload.data(), payload.size(), 0, reinterpret_cast<sockaddr*>(&to),
                     sizeof(to)) == static_cast<ssize_t>(length);
        ::close(fd);
        return sent;
    }

    static void expect_good_udp(const Bytes& bytes, size_t payload) {
        ASSERT_EQ(bytes.size(), 42 + payload);
        const ParsedFrame parsed = parse_frame(bytes.data(), static_cast<uint32_t>(bytes.size()));
        EXPECT_TRUE(parsed.is_udp());
        EXPECT_EQ(load_be16(bytes.data() + 38), payload + 8);
        EXPECT_NE(load_be16(bytes.data() + 40), 0);
        const FrameChecksums checksums = validate_checksums(parsed);
        EXPECT_TRUE(checksums.l3_ok);
        EXPECT_TRUE(checksums.l4_ok);
    }

    int home_ = -1;
    bool away_ = false;
    std::string error_;
    PortCounters near_counters_, far_counters_;
    std::unique_ptr<Wire> near_, far_;
};

TEST_F(NetdevWireTest, AFrameArrivesAsItLeft) {
    for (const size_t length : {60, 61, 1514}) {
        ASSERT_TRUE(send(*near_, frame(length)));
        EXPECT_EQ(receive(*far_), frame(length));
    }
}

TEST_F(NetdevWireTest, ASenderDoesNotHearItself) {
    ASSERT_TRUE(send(*near_, frame(100)));
    EXPECT_EQ(receive(*far_).size(), 100u);
    EXPECT_TRUE(receive(*near_, std::chrono::milliseconds(20)).empty());
}

TEST_F(NetdevWireTest, AVlanTagIsThere) {
    for (const uint16_t protocol : {kTypeVlan, kTypeServiceVlan}) {
        Bytes tagged = frame(120);
        store_be16(tagged.data() + 12, protocol);
        store_be16(tagged.data() + 14, 0x6123);
        store_be16(tagged.data() + 16, 0x88b5);
        ASSERT_TRUE(send(*near_, tagged));
        EXPECT_EQ(receive(*far_), tagged);
    }
}

TEST_F(NetdevWireTest, AChecksumThatTheKernelBeganIsFinished) {
    ASSERT_TRUE(send_udp(100, 0));
    expect_good_udp(receive(*near_), 100);
}

TEST_F(NetdevWireTest, ALargeFrameIsCut) {
    ASSERT_TRUE(send_udp(2500, 1000)) << "UDP_SEGMENT needs Linux 4.18";
    uint16_t identification = 0;
    for (const size_t payload : {1000, 1000, 500}) {
        const Bytes bytes = receive(*near_);
        expect_good_udp(bytes, payload);
        EXPECT_NE(load_be16(bytes.data() + 18), identification);
        identification = load_be16(bytes.data() + 18);
    }
    EXPECT_TRUE(receive(*near_, std::chrono::milliseconds(20)).empty());
}

TEST_F(NetdevWireTest, AFrameBeyondTheMtuIsRefusedAndCounted) {
    EXPECT_TRUE(send(*near_, frame(3000)));
    EXPECT_EQ(near_counters_.wire_tx_refused, 1u);
    ASSERT_TRUE(send(*near_, frame(1514)));
    EXPECT_EQ(receive(*far_).size(), 1514u);
}

TEST_F(NetdevWireTest, WhatFindsTheQueueFullIsCounted) {
    constexpr uint64_t kFrames = 60000;
    uint64_t sent = 0;
    for (uint64_t i = 0; i < kFrames; ++i)
        sent += send(*near_, frame(60)) ? 1 : 0;
    ASSERT_EQ(sent, kFrames);
    uint64_t received = 0;
    while (!receive(*far_, std::chrono::milliseconds(200)).empty())
        ++received;
    far_.reset();
    EXPECT_GT(far_counters_.wire_rx_dropped, 0u);
    EXPECT_EQ(received + far_counters_.wire_rx_dropped + dropped_by_the_veth("sx0"), kFrames);
}

TEST_F(NetdevWireTest, TheLinkFollowsTheCarrier) {
    EXPECT_TRUE(near_->follows_carrier());
    EXPECT_TRUE(wait_for(*near_, true));
    ASSERT_TRUE(run("ip link set sx1 down"));
    EXPECT_TRUE(wait_for(*near_, false));
    EXPECT_TRUE(send(*near_, frame(80)));
    EXPECT_EQ(near_counters_.tx_no_link, 1u) << "the kernel would have dropped it silently";
    ASSERT_TRUE(run("ip link set sx1 up"));
    EXPECT_TRUE(wait_for(*near_, true));
    // After its own end was down the socket works again.
    ASSERT_TRUE(run("ip link set sx0 down"));
    EXPECT_TRUE(wait_for(*near_, false));
    ASSERT_TRUE(run("ip link set sx0 up"));
    EXPECT_TRUE(wait_for(*near_, true));
    ASSERT_TRUE(wait_for(*far_, true));
    ASSERT_TRUE(send(*far_, frame(80)));
    EXPECT_EQ(receive(*near_).size(), 80u);
    ASSERT_TRUE(run("ip link del sx0"));
    EXPECT_TRUE(wait_for(*near_, false));
}

TEST_F(NetdevWireTest, AMissingDeviceIsNamedWithTheRemedy) {
    EXPECT_EQ(open("sx7", near_counters_), nullptr);
    EXPECT_EQ(error_,
              "no network device sx7 in this network namespace: make it first, as with "
              "ip link add sx7 type veth peer name OTHER");
    EXPECT_EQ(open("lo", near_counters_), nullptr);
    EXPECT_EQ(error_, "lo is no Ethernet device: use one, such as a veth");
}

TEST_F(NetdevWireTest, WithoutTheRightToItIsToldSo) {
    ASSERT_EQ(::seteuid(65534), 0);
    EXPECT_EQ(open("sx0", near_counters_), nullptr);
    ASSERT_EQ(::seteuid(0), 0);
    EXPECT_NE(error_.find("needs CAP_NET_RAW: run as root"), std::string::npos) << error_;
}

}  // namespace
}  // namespace softcx
