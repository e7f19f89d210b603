// SPDX-License-Identifier: BSD-3-Clause
// Loss, duplication, reordering and restarts at once, for many seeds: every
// message at most once and in order, contents right, every operation ends once.
#include <array>
#include <cstdlib>
#include <map>

#include "test/transport/host.h"

namespace transport_test {
namespace {

constexpr uint64_t kSeeds = 200;
constexpr uint32_t kActions = 120;

// A message's tag says who sent it, in which life, to whom, and as which one.
struct Name {
    uint32_t from, life, to, number;

    uint64_t tag() const {
        return uint64_t{from} << 56 | uint64_t{to} << 48 | uint64_t{life} << 32 | number;
    }
    static Name of(uint64_t tag) {
        return {static_cast<uint32_t>(tag >> 56), static_cast<uint32_t>(tag >> 32 & 0xffff),
                static_cast<uint32_t>(tag >> 48 & 0xff), static_cast<uint32_t>(tag)};
    }
};

// A host's past lives keep their records: a message must not turn up in two of them.
struct Machine {
    Machine(sim::Node& node, const TransportConfig& config)
        : host(node, config), index(node.index()) {}

    Host host;
    uint32_t index;
    uint32_t life = 0;
    std::map<uint32_t, uint32_t> sent_to;  // messages of this life, by receiver
    struct Life {
        std::deque<Sent> sent;
        std::deque<Received> received;
    };
    std::deque<Life> past;
};

struct Fate {
    int status = kPending;
    uint32_t ended = 0;
    uint32_t receivers_life = 0;  // when it was sent
    uint32_t announced = 0;
    bool sender_died = false;
};

class World {
  public:
    explicit World(uint64_t seed) : simulator_(seed) {
        simulator_.faults.loss = 0.02;
        simulator_.faults.duplication = 0.01;
        simulator_.faults.reordering = 0.05;
        simulator_.faults.reorder_packets = 64;
        simulator_.faults.jitter_ns = 300;
        const uint32_t machines = 2 + static_cast<uint32_t>(simulator_.below(2));
        const bool tight = simulator_.chance(0.3);
        late_ = simulator_.chance(0.5);
        for (uint32_t i = 0; i < machines; ++i) {
            sim::Node& node = simulator_.add_node();
            TransportConfig config = small_config(node);
            config.first_psn = UINT32_MAX - static_cast<uint32_t>(simulator_.below(300));
            config.random_seed = seed * 100 + i + 1;
            config.peer_timeout_ns = 2 * kSecond;
            config.eager_window = 16 * 1024;
            config.max_incoming_messages = tight ? 64 : 4096;
            machines_.push_back(std::make_unique<Machine>(node, config));
            machines_.back()->host.accept_at_once = !late_;
            machines_.back()->host.event_space = 1 + simulator_.below(40);
        }
    }

    void run() {
        for (uint32_t action = 0; action < kActions; ++action) {
            act();
            simulator_.run_for(simulator_.below(400 * kUs));
        }
        late_ = false;
        const auto settled = [&] {
            take_all();
            return all_ended();
        };
        bool done = simulator_.run_until(settled, 60 * kSecond);
        // A sender that died in the middle leaves messages behind a gap: they are
        // announced once its silence was noticed.
        simulator_.run_for(5 * kSecond);
        done = done && simulator_.run_until(settled, 60 * kSecond);
        EXPECT_TRUE(done) << "operations that never end: " << pending();
        judge();
    }

  private:
    void act() {
        Machine& machine = *machines_[simulator_.below(machines_.size())];
        const uint64_t dice = simulator_.below(100);
        if (dice < 3) {
            restart(machine);
        } else if (dice < 70) {
            send_some(machine);
        } else {
            take_some(machine);
        }
    }

    void send_some(Machine& machine) {
        const uint32_t from = machine.host.node().index();
        const auto to = static_cast<uint32_t>((from + 1 + simulator_.below(machines_.size() - 1)) %
                                              machines_.size());
        const PeerId peer = machine.host.peer(machines_[to]->host);
        const uint64_t messages = 1 + simulator_.below(simulator_.chance(0.2) ? 200 : 10);
        for (uint64_t i = 0; i < messages; ++i) {
            const Name name{from, machine.life, to, machine.sent_to[to]++};
            machine.host.send(peer, name.tag(), size());
            fates_[name.tag()].receivers_life = machines_[to]->life;
        }
    }

    uint32_t size() {
        const uint64_t dice = simulator_.below(100);
        return static_cast<uint32_t>(simulator_.below(dice < 80   ? 100
                                                      : dice < 98 ? 5'000
                                                                  : 200'000));
    }

    void take_some(Machine& machine) {
        for (Received& received : machine.host.received) {
            if (received.message != nullptr && simulator_.chance(0.5)) {
                machine.host.accept(received);
            }
        }
    }

    void take_all() {
        for (const auto& machine : machines_) {
            machine->host.accept_at_once = true;
            for (Received& received : machine->host.received) {
                if (received.message != nullptr) {
                    machine->host.accept(received);
                }
            }
        }
    }

    void restart(Machine& machine) {
        machine.host.stop();
        for (const Sent& sent : machine.host.sent) {
            if (sent.status == kPending) {
                fates_[sent.operation.header.tag].sender_died = true;
            }
        }
        machine.past.push_back({std::move(machine.host.sent), std::move(machine.host.received)});
        machine.host.sent.clear();
        machine.host.received.clear();
        machine.sent_to.clear();
        ++machine.life;
        machine.host.start();
    }

    bool all_ended() const { return pending() == 0; }

    size_t pending() const {
        size_t pending = 0;
        for (const auto& machine : machines_) {
            pending += machine->host.sends_pending();
            for (const Received& received : machine->host.received) {
                pending += received.ended == 0;
            }
        }
        return pending;
    }

    void judge() {
        for (const auto& machine : machines_) {
            for (const Machine::Life& life : machine->past) {
                judge_sent(life.sent);
                judge_received(*machine, life.received, true);
            }
            judge_sent(machine->host.sent);
            judge_received(*machine, machine->host.received, false);
        }
        for (const auto& [tag, fate] : fates_) {
            const Name name = Name::of(tag);
            const std::string who = "message " + std::to_string(name.number) + " of " +
                                    std::to_string(name.from) + "." + std::to_string(name.life) +
                                    " to " + std::to_string(name.to);
            EXPECT_LE(fate.announced, 1u) << who;
            EXPECT_EQ(fate.ended, fate.sender_died ? 0u : 1u) << who;
            const bool receiver_lived = fate.receivers_life == machines_[name.to]->life;
            if (fate.status == 0 && !fate.sender_died && receiver_lived) {
                EXPECT_EQ(fate.announced, 1u) << who << " is done and was not announced";
            }
            if (fate.status != kPending && fate.status != 0) {
                EXPECT_TRUE(fate.status == -ECONNRESET || fate.status == -ETIMEDOUT)
                    << who << ": " << fate.status;
            }
        }
    }

    void judge_sent(const std::deque<Sent>& all) {
        for (const Sent& sent : all) {
            Fate& fate = fates_[sent.operation.header.tag];
            fate.status = sent.status;
            fate.ended = sent.ended;
        }
    }

    void judge_received(const Machine& machine, const std::deque<Received>& all, bool past) {
        std::map<uint64_t, int64_t> last;  // per sender and its life
        for (const Received& received : all) {
            const Name name = Name::of(received.header.tag);
            ++fates_[received.header.tag].announced;
            EXPECT_EQ(name.to, machine.index);
            int64_t& before = last.try_emplace(received.header.tag >> 32, -1).first->second;
            EXPECT_LT(before, int64_t{name.number}) << "out of order";
            before = name.number;
            EXPECT_LE(received.ended, 1u);
            if (!past) {
                EXPECT_EQ(received.ended, 1u);
            }
            if (received.ended == 1 && received.status == 0) {
                EXPECT_EQ(received.buffer,
                          Host::pattern(received.header.tag,
                                        static_cast<uint32_t>(received.header.length)));
            }
        }
    }

    sim::Simulator simulator_;
    std::vector<std::unique_ptr<Machine>> machines_;
    std::map<uint64_t, Fate> fates_;
    bool late_ = false;
};

TEST(Chaos, every_message_at_most_once_in_order_and_every_operation_ends_once) {
    const uint64_t first = sim::seed() != 0 ? sim::seed() : 1;
    const bool slow = std::getenv("TAGWIRE_TEST_SLOW") != nullptr;
    const uint64_t last = sim::seed() != 0 ? sim::seed() : (slow ? 10 * kSeeds : kSeeds);
    for (uint64_t seed = first; seed <= last && !HasFailure(); ++seed) {
        SCOPED_TRACE("replay with: transport_chaos_test --seed " + std::to_string(seed));
        World world(seed);
        world.run();
    }
}

}  // namespace
}  // namespace transport_test
