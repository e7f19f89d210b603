// SPDX-License-Identifier: BSD-3-Clause
// Matching under callgrind, for scripts/bench-match.sh: one dump for each cell of its table. What
// counts is what the functions measured_... cost; building up the depth runs uninstrumented.
#include <valgrind/callgrind.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include "bench/match/peers.h"
#include "bench/match/workload.h"
#include "lib/match/posted_queue.h"
#include "lib/match/unexpected_queue.h"

namespace tagwire::bench {
namespace {

using match::PostedQueue;
using match::QueueConfig;
using match::UnexpectedQueue;

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "match_instructions: %s\n", what.c_str());
    std::exit(1);
}

// Sized as a worker does it: for what may be outstanding, not for what is.
constexpr uint32_t kCapacity = 65536;

class Tagwire {
  public:
    static constexpr const char* kName = "tagwire";

    explicit Tagwire(uint32_t depth)
        : config_{std::max(depth, kCapacity), 0, 99},
          memory_(new (std::align_val_t{match::Arena::kAlignment}) std::byte[bytes()]),
          posted_(config_, memory_.get()),
          unexpected_(config_, memory_.get() + PostedQueue::bytes_needed(config_)) {}

    void post(Slot slot, const Receive& receive) {
        posted_.post(slot, receive.tag, receive.ignore, receive.source);
    }
    Slot take_receive(uint64_t tag, uint32_t source) { return posted_.take(tag, source); }
    void append(Slot slot, uint64_t tag, uint32_t source) { unexpected_.append(slot, tag, source); }
    Slot take_message(const Receive& receive) {
        return unexpected_.take(receive.tag, receive.ignore, receive.source);
    }

  private:
    struct Release {
        void operator()(std::byte* memory) const {
            ::operator delete[](memory, std::align_val_t{match::Arena::kAlignment});
        }
    };
    size_t bytes() const {
        return PostedQueue::bytes_needed(config_) + UnexpectedQueue::bytes_needed(config_);
    }

    QueueConfig config_;
    std::unique_ptr<std::byte[], Release> memory_;
    PostedQueue posted_;
    UnexpectedQueue unexpected_;
};

template <typename Matcher>
[[gnu::noipa]] Slot measured_match(Matcher& matcher, uint64_t tag, uint32_t source) {
    return matcher.take_receive(tag, source);
}
template <typename Matcher>
[[gnu::noipa]] void measured_insert(Matcher& matcher, Slot slot, uint64_t tag, uint64_t ignore,
                                    uint32_t source) {
    matcher.post(slot, {tag, ignore, source});
}
template <typename Matcher>
[[gnu::noipa]] Slot measured_match(Matcher& matcher, uint64_t tag, uint64_t ignore,
                                   uint32_t source) {
    return matcher.take_message({tag, ignore, source});
}
template <typename Matcher>
[[gnu::noipa]] void measured_insert(Matcher& matcher, Slot slot, uint64_t tag, uint32_t source) {
    matcher.append(slot, tag, source);
}

// The slots of what is in the queue, in random order or from the oldest on.
class Picks {
  public:
    Picks(const Workload& workload, uint32_t depth) : workload_(workload), depth_(depth) {}
    Slot next(Generator& generator) {
        return workload_.order == Workload::Order::kOldest ? step_++ % depth_
                                                           : generator.below(depth_);
    }

  private:
    Workload workload_;
    uint32_t depth_;
    uint32_t step_ = 0;
};

// A message for one of the receives meets the queue; what it took is posted anew.
template <typename Matcher>
void run_posted(const Workload& workload, uint32_t depth, uint32_t warm_up, uint32_t steps) {
    Matcher matcher(depth);
    Generator generator(workload);
    Picks picks(workload, depth);
    std::vector<Receive> receives(depth);
    for (Slot slot = 0; slot < depth; ++slot) {
        receives[slot] = generator.receive();
        matcher.post(slot, receives[slot]);
    }
    for (uint32_t step = 0; step < warm_up + steps; ++step) {
        if (step == warm_up) {
            CALLGRIND_START_INSTRUMENTATION;
        }
        const Receive& wanted = receives[picks.next(generator)];
        const uint32_t source = wanted.source == kAnySource ? generator.peer() : wanted.source;
        const Slot slot = measured_match(matcher, generator.message_tag(wanted), source);
        if (slot == kNone) {
            fail("a message found no receive");
        }
        receives[slot] = generator.receive();
        measured_insert(matcher, slot, receives[slot].tag, receives[slot].ignore,
                        receives[slot].source);
    }
    CALLGRIND_STOP_INSTRUMENTATION;
}

// A receive asks for one of the messages; another message takes its place.
template <typename Matcher>
void run_unexpected(const Workload& workload, uint32_t depth, uint32_t warm_up, uint32_t steps) {
    struct Sent {
        Receive receive;  // that will ask for it
        uint32_t source;
    };
    Matcher matcher(depth);
    Generator generator(workload);
    Picks picks(workload, depth);
    std::vector<Sent> sent(depth);
    const auto send = [&] {
        const Receive receive = generator.receive();
        return Sent{receive, receive.source == kAnySource ? generator.peer() : receive.source};
    };
    for (Slot slot = 0; slot < depth; ++slot) {
        sent[slot] = send();
        matcher.append(slot, sent[slot].receive.tag, sent[slot].source);
    }
    for (uint32_t step = 0; step < warm_up + steps; ++step) {
        if (step == warm_up) {
            CALLGRIND_START_INSTRUMENTATION;
        }
        const Receive& receive = sent[picks.next(generator)].receive;
        const uint64_t tag = generator.message_tag(receive);
        const Slot slot = measured_match(matcher, tag, receive.ignore, receive.source);
        if (slot == kNone) {
            fail("a receive found no message");
        }
        sent[slot] = send();
        measured_insert(matcher, slot, sent[slot].receive.tag, sent[slot].source);
    }
    CALLGRIND_STOP_INSTRUMENTATION;
}

// A list is so slow on a deep queue that few steps must do.
template <typename Matcher>
void run_cell(const std::string& side, const std::string& name, const Workload& workload,
              uint32_t depth, uint32_t steps) {
    constexpr bool kOurs = std::is_same_v<Matcher, Tagwire>;
    const uint32_t counted = kOurs ? steps : std::max(std::min(steps, 4'000'000 / depth), 100u);
    // Twice through the queue, so that the hashes of all classes are in use.
    const uint32_t warm_up = kOurs || depth <= 1024 ? 2 * depth : 0;
    if (side == "posted") {
        run_posted<Matcher>(workload, depth, warm_up, counted);
    } else {
        run_unexpected<Matcher>(workload, depth, warm_up, counted);
    }
    const std::string label = side + " " + name + " " + std::to_string(workload.classes) + " " +
                              std::to_string(depth) + " " + Matcher::kName + " " +
                              std::to_string(counted);
    CALLGRIND_DUMP_STATS_AT(label.c_str());
}

void run_all(const std::string& side, const std::string& name, const Workload& workload,
             uint32_t depth, uint32_t steps) {
    run_cell<Tagwire>(side, name, workload, depth, steps);
    run_cell<SrxList>(side, name, workload, depth, steps);
    run_cell<UcpHash>(side, name, workload, depth, steps);
}

}  // namespace
}  // namespace tagwire::bench

int main(int argc, char** argv) {
    using namespace tagwire::bench;
    if (argc < 3) {
        fail("usage: match_instructions compare|limits|DEPTH STEPS");
    }
    const std::string what = argv[1];
    const auto steps = static_cast<uint32_t>(std::stoul(argv[2]));
    for (const std::string side : {"posted", "unexpected"}) {
        if (what == "limits") {
            for (const uint32_t classes : {1, 2, 8}) {
                run_cell<Tagwire>(side, "random", {classes, true}, 8192, steps);
                run_cell<Tagwire>(side, "same", {classes, true, Workload::Tags::kSame}, 8192,
                                  steps);
            }
            continue;
        }
        for (const uint32_t classes : {1, 2, 8, 32}) {
            for (const uint32_t depth : {16, 1024, 8192, 65536}) {
                if (what == "compare" || what == std::to_string(depth)) {
                    run_all(side, "random", {classes}, depth, steps);
                }
            }
            if (what == "compare" || what == "16") {
                run_all(side, "oldest",
                        {classes, false, Workload::Tags::kRandom, Workload::Order::kOldest}, 16,
                        steps);
            }
        }
    }
    return 0;
}
