// SPDX-License-Identifier: BSD-3-Clause
// A simulated network in virtual time, behind the transport's two seams. The code
// under test is the real one; loss, duplication, reordering, delay, corruption and
// restarts come from a seed, so a failure repeats with --seed N.
//
//     sim::Simulator simulator(sim::seed());
//     simulator.faults.loss = 0.02;
//     sim::Node& a = simulator.add_node();              // 10.0.0.1, its MAC, pools
//     auto transport = Transport::create(config, a, a, &error);   // a is PacketIo and Clock
//     a.run([&] { ... transport->poll(events) ...; return transport->next_deadline_ns(); });
//     simulator.run_until([&] { return done; }, limit_ns);
//
// Above the public API: give tw_worker_attr::nic the three functions of sim::nic(),
// with &node as context, the node's pool, and a program that calls tw_progress() and
// returns tw_worker_deadline(). A restart: node.stop(), destroy the worker, make a
// new one, node.run() again. At the end ~Simulator checks that every packet buffer
// came back; destroy transports and workers before it.
//
// TAGWIRE_SIM_PCAP=FILE writes the traffic for Wireshark.
// Link test programs with sim_dep; its main() starts EAL and parses --seed.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <random>
#include <vector>

#include "lib/transport/address.h"
#include "lib/transport/seams.h"
#include "lib/wire/headers.h"
#include "test/sim/pcap.h"

struct rte_mempool;

namespace sim {

// From --seed N; 0 if not given.
uint64_t seed();

struct Faults {
    double loss = 0;
    double duplication = 0;
    double reordering = 0;          // share of frames that are held up
    uint32_t reorder_packets = 64;  // by how many frames at most, at line rate
    double corruption = 0;          // one flipped bit
    uint64_t delay_ns = 5'000;
    uint64_t jitter_ns = 0;
    uint64_t bits_per_second = 10'000'000'000;
};

using Frame = std::vector<uint8_t>;

class Simulator;

class Node final : public tagwire::transport::PacketIo, public tagwire::transport::Clock {
  public:
    Node(Simulator& simulator, uint32_t index);
    ~Node() override;

    uint16_t rx_burst(rte_mbuf** packets, uint16_t count) noexcept override;
    uint16_t tx_burst(rte_mbuf** packets, uint16_t count) noexcept override;
    uint64_t now_ns() noexcept override;

    uint32_t index() const { return index_; }
    tagwire::wire::Mac mac() const;
    uint32_t ip() const { return 0x0a000001 + index_; }  // host order
    tagwire::transport::EndpointAddress address(uint16_t udp_port = 4791,
                                                uint16_t endpoint = 0) const;
    rte_mempool* pool() const { return tx_pool_; }  // for frames to send

    // The node's program: called when a frame arrived or the time that it returned
    // last has come. It returns the next time at which it wants to be called.
    void run(std::function<uint64_t()> program);
    void stop();  // as if the machine were switched off; what is under way to it is lost
    bool running() const { return program_ != nullptr; }
    void wake();  // the program has something to do now

    uint64_t no_buffer = 0;  // frames lost because the receive pool was empty

  private:
    friend class Simulator;
    void deliver(const Frame& frame);
    uint64_t due() const;
    void turn();

    Simulator& simulator_;
    uint32_t index_;
    rte_mempool* tx_pool_;
    rte_mempool* rx_pool_;
    std::deque<rte_mbuf*> arrived_;
    std::function<uint64_t()> program_;
    uint64_t deadline_ = UINT64_MAX;
    uint64_t last_turn_ = 0;
    uint64_t link_free_ = 0;  // when the egress link has sent what it was given
};

class Simulator {
  public:
    explicit Simulator(uint64_t seed);
    ~Simulator();

    Node& add_node();
    Node& node(uint32_t index) { return *nodes_[index]; }

    // Until `done` (true) or until `limit_ns` passed or nothing is left to happen (false).
    bool run_until(const std::function<bool()>& done, uint64_t limit_ns);
    void run_for(uint64_t duration_ns);
    void sleep(uint64_t duration_ns) { now_ += duration_ns; }  // nobody's turn comes meanwhile

    // Puts a frame on the wire to `node`, past all faults.
    void inject(Node& node, const Frame& frame) { node.deliver(frame); }

    uint64_t now() const { return now_; }
    std::mt19937_64& random() { return random_; }
    bool chance(double probability) {
        return std::uniform_real_distribution<>(0, 1)(random_) < probability;
    }
    uint64_t below(uint64_t bound) {
        return std::uniform_int_distribution<uint64_t>(0, bound - 1)(random_);
    }

    Faults faults;
    // Sees each frame before the faults and may change it; false drops it.
    std::function<bool(Node& from, Frame& frame)> filter;
    uint64_t turn_ns = 500;  // what one turn of a program takes at least

  private:
    friend class Node;
    struct Delivery {
        uint64_t time;
        uint64_t order;
        uint32_t node;
        std::shared_ptr<const Frame> frame;
        bool operator>(const Delivery& other) const {
            return time != other.time ? time > other.time : order > other.order;
        }
    };

    void send(Node& from, Frame frame);
    void schedule(Node& from, Node& to, const Frame& frame, uint64_t leaves);
    bool step(uint64_t limit);

    Pcap pcap_;
    std::mt19937_64 random_;
    uint64_t now_ = 1'000'000;
    uint64_t order_ = 0;
    std::vector<std::unique_ptr<Node>> nodes_;
    std::priority_queue<Delivery, std::vector<Delivery>, std::greater<>> deliveries_;
};

}  // namespace sim
