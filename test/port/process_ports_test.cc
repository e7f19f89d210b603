// SPDX-License-Identifier: BSD-3-Clause
// Two workers of one process on two ports of a software switch, without softcx-run.
#include "lib/port/process_ports.h"

#include <gtest/gtest.h>
#include <tagwire/tagwire.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "lib/port/failure.h"

namespace tagwire::port {
namespace {

std::string wire_name() {
    return "port-test-" + std::to_string(getpid());
}

Settings test_settings() {
    Settings settings;
    settings.wire = "switch:" + wire_name();
    settings.unexpected_mb = 2;
    settings.max_operations = 256;
    settings.max_peers = 8;
    settings.workers = 2;
    settings.eal_args = "--no-huge -m 256 --no-shconf";
    return settings;
}

struct Peer {
    explicit Peer(const Lease& lease) {
        const tw_worker_attr attr = lease.worker_attr();
        require(tw_worker_open(&attr, &worker));
        tw_cq_attr cq_attr{.size = sizeof(tw_cq_attr), .entries = 0};
        require(tw_cq_open(worker, &cq_attr, &cq));
        require(tw_av_open(worker, &av));
        require(tw_ep_open(worker, nullptr, &ep));
        require(tw_ep_bind_av(ep, av));
        require(tw_ep_bind_cq(ep, cq, TW_SEND | TW_RECV));
        require(tw_ep_enable(ep));
    }
    ~Peer() {
        tw_ep_close(ep);
        tw_cq_close(cq);
        tw_av_close(av);
        tw_worker_close(worker);
    }
    static void require(int result) {
        if (result < 0) {
            throw std::runtime_error(tw_last_error());
        }
    }

    tw_worker* worker = nullptr;
    tw_cq* cq = nullptr;
    tw_av* av = nullptr;
    tw_ep* ep = nullptr;
};

TEST(ProcessPorts, TwoWorkersTalkWithoutSoftcxRun) {
    const Settings settings = test_settings();
    const auto left_lease = Lease::acquire(settings);
    const auto right_lease = Lease::acquire(settings);
    EXPECT_NE(left_lease->port().id(), right_lease->port().id());
    EXPECT_EQ(left_lease->port().mtu(), 9000);
    Peer left(*left_lease);
    Peer right(*right_lease);

    tw_address name{};
    ASSERT_EQ(tw_ep_name(right.ep, &name), 0);
    tw_addr peer = TW_ADDR_UNSPEC;
    ASSERT_EQ(tw_av_insert(left.av, &name, &peer), 0);
    char received[16] = {};
    ASSERT_EQ(tw_trecv(right.ep, received, sizeof(received), TW_ADDR_UNSPEC, 7, 0, nullptr), 0);
    ASSERT_EQ(tw_tsend(left.ep, "attached", 9, peer, 7, nullptr), 0);
    tw_cq_entry entry{};
    ssize_t result = -EAGAIN;
    for (int turn = 0; turn < 10'000'000 && result == -EAGAIN; ++turn) {
        tw_progress(left.worker);
        tw_progress(right.worker);
        result = tw_cq_read(right.cq, &entry, 1);
    }
    ASSERT_EQ(result, 1);
    EXPECT_STREQ(received, "attached");
    while (tw_cq_read(left.cq, &entry, 1) == -EAGAIN) {
        tw_progress(left.worker);
        tw_progress(right.worker);
    }

    EXPECT_THROW(Lease::acquire(settings), Failure) << "two workers are allowed";
    EXPECT_TRUE(std::filesystem::exists("/dev/shm/softcx-" + wire_name()));
}

TEST(ProcessPorts, APortThatWasGivenBackServesTheNextWorker) {
    const Settings settings = test_settings();
    const uint16_t first = Lease::acquire(settings)->port().id();
    const auto again = Lease::acquire(settings);
    EXPECT_EQ(again->port().id(), first);
    const Peer peer(*again);
    EXPECT_NE(peer.worker, nullptr);
}

TEST(ProcessPorts, AnAddressThatAnotherWorkerHasIsRefused) {
    Settings settings = test_settings();
    settings.ip = {"10.1.2.3", "10.1.2.3"};
    const auto first_lease = Lease::acquire(settings);
    const auto second_lease = Lease::acquire(settings);
    const Peer first(*first_lease);
    std::atomic<bool> done{false};
    std::thread polling([&] {
        while (!done) {
            tw_progress(first.worker);
            usleep(1000);  // as the helper thread of a process that is busy elsewhere
        }
    });
    tw_worker_attr attr = second_lease->worker_attr();
    tw_worker* second = nullptr;
    EXPECT_EQ(tw_worker_open(&attr, &second), -EADDRINUSE);
    const std::string text = tw_last_error();
    EXPECT_NE(text.find("has the IP address 10.1.2.3: give each worker one of its own"),
              std::string::npos)
        << text;
    attr.address.ip[3] = 4;
    EXPECT_EQ(tw_worker_open(&attr, &second), 0) << tw_last_error();
    done = true;
    polling.join();
    EXPECT_EQ(tw_worker_close(second), 0);
}

TEST(ProcessPorts, TellsWhatItWouldUse) {
    const Prospect found = prospect(test_settings());
    EXPECT_TRUE(found.software);
    EXPECT_EQ(found.wire, "switch:" + wire_name());
    Settings named = test_settings();
    named.vdev = "net_memif0,role=client";
    EXPECT_EQ(prospect(named).device, "net_memif0");
}

}  // namespace
}  // namespace tagwire::port
