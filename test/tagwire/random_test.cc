// SPDX-License-Identifier: BSD-3-Clause
// Random traffic over a bad network, many seeds. A failure names its seed: --seed N
// runs that one alone.
#include <cstdlib>
#include <memory>

#include "test/tagwire/traffic.h"

namespace tagwire::test {
namespace {

constexpr uint64_t kMs = 1'000'000;

std::vector<uint64_t> seeds(uint64_t normally) {
    if (sim::seed() != 0) {
        return {sim::seed()};
    }
    std::vector<uint64_t> all(std::getenv("TAGWIRE_TEST_SLOW") != nullptr ? normally * 5
                                                                          : normally);
    for (size_t i = 0; i < all.size(); ++i) {
        all[i] = i + 1;
    }
    return all;
}

void make_bad(sim::Simulator& simulator) {
    simulator.faults.loss = 0.02;
    simulator.faults.duplication = 0.01;
    simulator.faults.reordering = 0.05;
    simulator.faults.jitter_ns = 2'000;
}

class World {
  public:
    explicit World(uint64_t seed) : simulator(seed), random(seed) { make_bad(simulator); }

    void pause() { simulator.run_for(random() % 4 == 0 ? random() % kMs : random() % 20'000); }

    sim::Simulator simulator;
    std::mt19937_64 random;
    SimPeer a{simulator.add_node(), {.peer_timeout_ms = 1000}};
    SimPeer b{simulator.add_node(), {.peer_timeout_ms = 1000}};
};

// Sends and receives in random order with random pauses: the outcome is the oracle's.
void run_oracle(uint64_t seed) {
    World world(seed);
    Traffic traffic(world.a, world.b, seed, 0);
    for (int i = 0; i < 240; ++i) {
        if (world.random() % 2 == 0) {
            traffic.send_one();
        } else {
            traffic.receive_one();
        }
        if (world.random() % 3 == 0) {
            world.pause();
        }
    }
    // As many again that take what is left; some stay.
    for (size_t i = 0; i < traffic.messages.size(); ++i) {
        traffic.receive_any();
    }
    const bool done = world.simulator.run_until(
        [&] {
            traffic.collect_sends();
            traffic.collect_receives();
            return traffic.sends_pending() == 0 && traffic.received() == traffic.messages.size();
        },
        30 * kSecond);
    ASSERT_TRUE(done) << traffic.received() << " of " << traffic.messages.size() << " received, "
                      << traffic.sends_pending() << " sends pending";
    traffic.expect_contents();
    traffic.expect_order();
    traffic.expect_oracle();
    EXPECT_TRUE(world.a.errors.empty() && world.b.errors.empty());
}

TEST(RandomTraffic, EndsAsTheOracleSays) {
    for (const uint64_t seed : seeds(40)) {
        SCOPED_TRACE("replay with --seed " + std::to_string(seed));
        run_oracle(seed);
        ASSERT_FALSE(testing::Test::HasFailure());
    }
}

// One program is killed in the middle and started again.
class Restart {
  public:
    explicit Restart(uint64_t seed) : seed_(seed), world_(seed) {}

    void run() {
        Traffic to_b(world_.a, world_.b, seed_, 1);
        Traffic to_a(world_.b, world_.a, seed_ + 1'000'000, 100'001);
        const uint64_t operations = 20 + world_.random() % 100;
        for (uint64_t i = 0; i < operations; ++i) {
            one_of(to_b, to_a);
            if (world_.random() % 3 == 0) {
                world_.pause();
            }
        }
        const bool kill_a = world_.random() % 2 == 0;
        SimPeer& killed = kill_a ? world_.a : world_.b;
        SimPeer& survivor = kill_a ? world_.b : world_.a;
        Traffic& survivors_sends = kill_a ? to_a : to_b;
        Traffic& survivors_receives = kill_a ? to_b : to_a;

        killed.die();
        world_.simulator.run_for(world_.random() % (5 * kMs));
        killed.start();
        killed.received.clear();
        killed.sent.clear();
        killed.errors.clear();

        // The killed one's operations are gone with it; the survivor's end once each.
        talk_again(killed, survivor);
        ASSERT_TRUE(world_.simulator.run_until(
            [&] {
                take_unexpected(killed);
                survivors_sends.collect_sends();
                return survivors_sends.sends_pending() == 0 &&
                       killed.received.size() == taken_.size();
            },
            30 * kSecond))
            << survivors_sends.sends_pending() << " sends of the survivor never ended";
        expect_from_survivor(killed, survivors_sends);
        survivors_receives.collect_receives();
        survivors_sends.expect_contents();
        survivors_receives.expect_contents();
        if (testing::Test::HasFailure()) {
            return;
        }
        survivors_receives.expect_order();
        second_life(killed, survivor, survivors_receives);
    }

  private:
    void one_of(Traffic& to_b, Traffic& to_a) {
        Traffic& traffic = world_.random() % 2 == 0 ? to_b : to_a;
        if (world_.random() % 2 == 0) {
            traffic.send_one();
        } else {
            traffic.receive_one();
        }
    }

    // The killed one speaks first; then the survivor knows that it restarted.
    void talk_again(SimPeer& killed, SimPeer& survivor) {
        const size_t before = killed.sent.size();
        killed.send(survivor, kGreeting, "I am back");
        ASSERT_TRUE(
            world_.simulator.run_until([&] { return killed.sent.size() > before; }, 30 * kSecond))
            << "the restarted peer cannot talk: " << killed.errors.size() << " errors";
        world_.simulator.run_for(5 * kMs);
    }

    // A message that the survivor queued before a session existed belongs to the new life; a
    // large one ends only after it is received.
    void take_unexpected(SimPeer& killed) {
        if (killed.stat("unexpected_messages") != 0) {
            std::string& buffer = taken_.emplace_back(200'000, '\0');
            killed.receive(buffer, 0, UINT64_MAX, TW_ADDR_UNSPEC, &buffer);
        }
    }

    void expect_from_survivor(SimPeer& killed, const Traffic& survivors_sends) {
        // Large ones end later: the order of matching is that of the receives.
        std::map<const void*, tw_cq_entry> by_receive;
        for (const tw_cq_entry& entry : killed.received) {
            by_receive[entry.context] = entry;
        }
        uint64_t last = 0;
        for (const std::string& buffer : taken_) {
            const auto found = by_receive.find(&buffer);
            if (found == by_receive.end()) {
                continue;
            }
            const tw_cq_entry& entry = found->second;
            ASSERT_GT(entry.tag & kNumberMask, last) << "twice, or out of order";
            last = entry.tag & kNumberMask;
            const Message* message = survivors_sends.find(entry.tag);
            ASSERT_NE(message, nullptr);
            ASSERT_TRUE(buffer.substr(0, entry.length) == message->payload);
        }
        ASSERT_TRUE(killed.errors.empty());
        killed.received.clear();
    }

    // After that everything is delivered again, exactly once and in order.
    void second_life(SimPeer& killed, SimPeer& survivor, Traffic& old_receives) {
        drain_first_life(survivor, old_receives);
        Traffic there(survivor, killed, seed_ + 2'000'000, 200'001);
        Traffic back(killed, survivor, seed_ + 3'000'000, 300'001);
        for (int i = 0; i < 30; ++i) {
            there.send_one();
            there.receive_any();
            back.send_one();
            back.receive_any();
        }
        const bool done = world_.simulator.run_until(
            [&] {
                for (Traffic* traffic : {&there, &back}) {
                    traffic->collect_sends();
                    traffic->collect_receives();
                }
                return there.received() == 30 && back.received() == 30 &&
                       there.sends_pending() + back.sends_pending() == 0;
            },
            30 * kSecond);
        ASSERT_TRUE(done) << there.received() << " there, " << back.received() << " back";
        for (const Traffic* traffic : {&there, &back}) {
            traffic->expect_contents();
            if (testing::Test::HasFailure()) {
                return;
            }
            traffic->expect_order();
            traffic->expect_oracle();
        }
    }

    // Posted receives of the first life are cancelled; messages of it that were complete are
    // still there, in order, and end with the greeting of the second life.
    void drain_first_life(SimPeer& survivor, Traffic& old_receives) {
        for (Receive& receive : old_receives.receives) {
            if (receive.ended == 0) {
                ASSERT_EQ(tw_cancel(survivor.ep, &receive), 0) << tw_last_error();
            }
        }
        std::string buffer(200'000, '\0');
        uint64_t last = 0;
        for (uint64_t tag = 0; tag != kGreeting;) {
            const size_t before = survivor.received.size();
            int context = 0;
            survivor.receive(buffer, 0, UINT64_MAX, TW_ADDR_UNSPEC, &context);
            ASSERT_TRUE(world_.simulator.run_until(
                [&] { return survivor.received.size() > before; }, kSecond))
                << "the greeting is missing";
            tag = survivor.received.back().tag;
            if (tag != kGreeting) {
                const uint64_t number = (tag & kNumberMask) >> 16;
                ASSERT_GT(number, last);
                last = number;
                const size_t length = survivor.received.back().length;
                ASSERT_TRUE(buffer.substr(0, length) == pattern(tag, length));
            }
        }
        survivor.received.clear();
        survivor.errors.clear();
    }

    static constexpr uint64_t kGreeting = 2;  // a bit that no receive of the traffic ignores

    uint64_t seed_;
    std::deque<std::string> taken_;
    World world_;
};

TEST(RandomTraffic, SurvivesTheRestartOfAPeer) {
    for (const uint64_t seed : seeds(200)) {
        SCOPED_TRACE("replay with --seed " + std::to_string(seed));
        Restart(seed).run();
        ASSERT_FALSE(testing::Test::HasFailure());
    }
}

}  // namespace
}  // namespace tagwire::test
