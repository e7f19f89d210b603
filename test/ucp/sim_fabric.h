// SPDX-License-Identifier: BSD-3-Clause
// UCP workers on simulated machines, in one thread: a worker's turn lets a little virtual time
// pass, in which the cores of the others work (what the keeper's thread does in real life).
// So calls that block find their peer alive.
#pragma once

#include <gtest/gtest.h>
#include <ucp/api/ucp.h>

#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/ucp/fabric.h"
#include "test/sim/simulator.h"

namespace tagwire::test {

class SimFabric final : public ucp::Fabric {
  public:
    static constexpr uint32_t kOperations = 4096;  // of a worker, unless a test wants fewer
    SimFabric(sim::Simulator& simulator, uint32_t max_operations)
        : max_operations_(max_operations), simulator_(simulator) {
        ucp::set_fabric(this);
    }
    ~SimFabric() override { ucp::set_fabric(nullptr); }

    int open_worker(tw_worker_attr attr, tw_worker** worker, tw_address* address) override;
    void close_worker(tw_worker* worker) override;
    std::string device_name() override { return "simulator"; }
    bool in_real_time() const override { return false; }

    uint32_t peer_timeout_ms = 0;
    uint64_t unexpected_bytes = 0;
    size_t open_workers() const { return open_; }
    // The machine of the worker that was opened as the n-th stops answering.
    void silence(size_t n);

  private:
    struct Machine {
        SimFabric* fabric;
        sim::Node* node;
        tw_worker* worker = nullptr;
        bool silent = false;
        bool active = false;  // its turn is what lets time pass
    };
    static uint16_t rx(void* machine, rte_mbuf** packets, uint16_t count);
    static uint16_t tx(void* machine, rte_mbuf** packets, uint16_t count);
    static uint64_t now(void* machine);

    uint32_t max_operations_;
    sim::Simulator& simulator_;
    std::vector<std::unique_ptr<Machine>> machines_;
    size_t open_ = 0;
    bool passing_ = false;
};

// A context with one worker.
struct UcpPeer {
    explicit UcpPeer(uint64_t features = kAll, size_t request_size = 0);
    ~UcpPeer() { close(); }
    void close();

    ucp_ep_h connect(UcpPeer& other, ucp_err_handling_mode_t mode = UCP_ERR_HANDLING_MODE_PEER);

    static constexpr uint64_t kAll = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO32 |
                                     UCP_FEATURE_AMO64 | UCP_FEATURE_WAKEUP | UCP_FEATURE_STREAM |
                                     UCP_FEATURE_AM;
    ucp_context_h context = nullptr;
    ucp_worker_h worker = nullptr;
    size_t leaks = 0;                    // requests that the test does not release
    std::vector<ucs_status_t> failures;  // what the error handler heard
};

class UcpTest : public testing::Test {
  protected:
    explicit UcpTest(uint32_t max_operations = SimFabric::kOperations)
        : fabric(simulator, max_operations) {}

    sim::Simulator simulator{sim::seed() + 1};
    SimFabric fabric;

    // Turns of all workers until `done`, at most so many.
    bool run(const std::function<bool()>& done, unsigned turns = 200'000);
    // The same while seconds pass: until timeouts strike.
    bool run_long(const std::function<bool()>& done);
    // The request's end, and its memory back. NULL and errors end at once.
    ucs_status_t wait(void* request);
    void settle(unsigned turns = 500) {
        run([] { return false; }, turns);
    }
    void turn(std::initializer_list<UcpPeer*> peers) { peers_ = peers; }

    std::vector<UcpPeer*> peers_;
};

// Two peers with an endpoint each way.
class UcpPair : public UcpTest {
  protected:
    explicit UcpPair(uint32_t max_operations = SimFabric::kOperations) : UcpTest(max_operations) {
        peers_ = {&a, &b};
        to_b = a.connect(b);
        to_a = b.connect(a);
    }

    // Payloads of sends whose end is not waited for: a worker reads them until it is closed.
    std::deque<std::string> sent_;
    UcpPeer a;
    UcpPeer b;
    ucp_ep_h to_b;
    ucp_ep_h to_a;
};

inline constexpr ucp_datatype_t kByte = ucp_dt_make_contig(1);
inline void ignore_sent(void* /* request */, ucs_status_t /* status */) {}
inline void ignore_received(void* /* request */, ucs_status_t /* status */,
                            ucp_tag_recv_info_t* /* info */) {}
std::string bytes(uint64_t seed, size_t length);

}  // namespace tagwire::test
