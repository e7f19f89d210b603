// SPDX-License-Identifier: BSD-3-Clause
// Receives and messages that the measured queues hold and look for.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "lib/match/types.h"

namespace tagwire::bench {

using match::kAnySource;
using match::kNone;
using match::Slot;

inline constexpr uint32_t kPeers = 64;

struct Receive {
    uint64_t tag;
    uint64_t ignore;
    uint32_t source;
};

struct Workload {
    enum class Tags { kRandom, kSame };     // same: one tag for all, hard for a hash of entries
    enum class Order { kRandom, kOldest };  // which entry of the queue the next search is for
    uint32_t classes = 1;                   // ignore masks: one is 0, the others differ
    bool directed = false;                  // every second class names its source
    Tags tags = Tags::kRandom;
    Order order = Order::kRandom;
};

class Generator {
  public:
    explicit Generator(const Workload& workload) : workload_(workload) {}

    Receive receive() {
        const uint32_t cls = below(workload_.classes);
        const uint32_t exact = workload_.directed ? 2 : 1;  // classes that ignore nothing
        return {workload_.tags == Workload::Tags::kSame ? 42 : random_(),
                cls < exact ? 0 : uint64_t{0xff} << cls,
                workload_.directed && cls % 2 != 0 ? peer() : kAnySource};
    }

    // A tag that differs in the bits that the receive ignores.
    uint64_t message_tag(const Receive& receive) {
        return receive.tag ^ (random_() & receive.ignore);
    }

    uint32_t peer() { return below(kPeers); }
    uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }

  private:
    std::mt19937_64 random_{12345};
    Workload workload_;
};

}  // namespace tagwire::bench
