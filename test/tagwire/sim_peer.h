// SPDX-License-Identifier: BSD-3-Clause
// A program on a simulated machine that uses the public API, and what it saw.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "tagwire/tagwire.h"
#include "test/sim/simulator.h"

namespace tagwire::test {

inline constexpr uint64_t kSecond = 1'000'000'000;

struct PeerOptions {
    uint32_t max_operations = 4096;
    uint32_t cq_entries = 0;
    uint32_t peer_timeout_ms = 0;
    uint64_t unexpected_bytes = 0;
    uint64_t tx_flags = 0;
    uint64_t rx_flags = 0;
    uint64_t cq_flags = 0;  // TW_SELECTIVE_COMPLETION
    std::string auth_key;
    // Bound to the endpoint. Without them a frame's small messages complete together.
    bool counters = true;
    // The program is a pipeline that polls the node itself; what it is given back is in `foreign`.
    bool pipeline = false;
    uint32_t zero_copy_bytes = 0;
    // Instead of the node's, with the node as context.
    uint16_t (*tx_burst)(void*, rte_mbuf**, uint16_t) = nullptr;
};

class SimPeer {
  public:
    explicit SimPeer(sim::Node& node, const PeerOptions& options = {});
    ~SimPeer() { die(); }

    void start();
    // As if the process were killed: nothing is closed in order.
    void die();

    tw_addr address_of(const SimPeer& other);
    tw_address name() const;

    // Each wakes the program and expects success. The payload is kept.
    void send(const SimPeer& to, uint64_t tag, const std::string& payload, void* context = nullptr);
    void receive(std::string& buffer, uint64_t tag, uint64_t ignore = 0,
                 tw_addr source = TW_ADDR_UNSPEC, void* context = nullptr);
    void wake() { node_.wake(); }

    uint64_t stat(const std::string& name) const;
    // Of what `peer` has of this one's budget.
    uint64_t peer_stat(const SimPeer& peer, const std::string& name);

    // A call that succeeds, and wakes the program.
    void posted(int result) {
        ASSERT_EQ(result, 0) << tw_last_error();
        wake();
    }
    uint64_t sends() const { return tw_cntr_read(send_counter); }

    // Completions in their order: what peers did (receives, puts with data), and what was begun
    // here (sends, operations on remote memory); errors of both.
    std::vector<tw_cq_entry> received;
    std::vector<tw_cq_entry> sent;
    std::vector<tw_cq_error> errors;
    size_t ended() const { return received.size() + sent.size() + errors.size(); }
    bool read_completions = true;
    // Of a test that has more objects: in each turn, and before a death.
    std::function<void()> each_turn, before_death;

    // Of a pipeline: the frames that were not the worker's.
    std::vector<sim::Frame> foreign;

    tw_worker* worker = nullptr;
    tw_av* av = nullptr;
    tw_cq* cq = nullptr;
    tw_ep* ep = nullptr;
    tw_cntr* send_counter = nullptr;
    tw_cntr* receive_counter = nullptr;

  private:
    uint64_t turn();
    void offer_frames();
    void drain();

    sim::Node& node_;
    PeerOptions options_;
    uint64_t life_ = 0;
    std::deque<std::string> payloads_;
};

// Two machines and a network.
class SimPair : public testing::Test {
  protected:
    bool run(const std::function<bool()>& done, uint64_t limit = 10 * kSecond) {
        return simulator.run_until(done, limit);
    }
    // Everything that is under way arrives.
    void settle() { simulator.run_for(kSecond / 100); }

    sim::Simulator simulator{sim::seed() + 1};
    SimPeer a{simulator.add_node()};
    SimPeer b{simulator.add_node()};
};

// Bytes that differ for each tag and at each place.
std::string pattern(uint64_t tag, size_t length);

}  // namespace tagwire::test
