// SPDX-License-Identifier: BSD-3-Clause
// Random tagged traffic between two programs, and what must hold of its outcome.
#pragma once

#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "test/tagwire/sim_peer.h"

namespace tagwire::test {

// A message's tag is its number and four bits that receives match on. So a completion
// tells which message it took.
inline constexpr uint64_t kNumberMask = 0xffff'ffff'0000;

struct Message {
    uint64_t tag;
    std::string payload;
    int ended = 0;
    int error = 0;

    uint64_t number() const { return (tag & kNumberMask) >> 16; }
};

struct Receive {
    uint64_t tag;
    uint64_t ignore;
    std::string buffer;
    int ended = 0;
    int error = 0;
    uint64_t took = 0;  // the message's tag

    bool matches(uint64_t message_tag) const { return ((message_tag ^ tag) & ~ignore) == 0; }
};

// One direction: the messages of one life of the sender, the receives of one life of the receiver.
class Traffic {
  public:
    Traffic(SimPeer& from, SimPeer& to, uint64_t seed, uint64_t first_number)
        : from_(from), to_(to), random_(seed), next_number_(first_number) {}

    void send_one();
    void receive_one();
    // A receive that takes whatever is left.
    void receive_any();

    // Sorts the programs' new completions to the operations; those of other traffic stay.
    void collect_sends();
    void collect_receives();

    size_t sends_pending() const;
    size_t received() const;

    // The message with that tag, or null.
    const Message* find(uint64_t tag) const;

    // Holds at any time, also after restarts.
    void expect_contents() const;
    // A receive that took a message did so only after every earlier message that it matches,
    // and that arrived, had gone to a receive posted before it.
    void expect_order() const;
    // With nothing lost the outcome is the oracle's, whatever came first: receives in posting
    // order, each takes the first message left that matches. (Both sides rank the other side
    // by one common order; then there is only one stable outcome.)
    void expect_oracle() const;

    std::deque<Message> messages;
    std::deque<Receive> receives;

  private:
    uint64_t matched_bits();

    SimPeer& from_;
    SimPeer& to_;
    std::mt19937_64 random_;
    uint64_t next_number_;
};

}  // namespace tagwire::test
