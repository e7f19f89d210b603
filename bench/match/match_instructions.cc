// SPDX-License-Identifier: BSD-3-Clause
// Runs one matching operation many times at a fixed depth, for callgrind to count
// (scripts/bench-match.sh). Each step takes one entry out and puts another in, so
// the depth holds. The measured functions are not inlined and are called from the
// measured loop alone; building up the depth is not counted.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "lib/match/posted_queue.h"
#include "lib/match/unexpected_queue.h"

namespace {

using namespace tagwire::match;

struct Receive {
    uint64_t tag;
    uint64_t ignore;
    uint32_t source;
};

struct Release {
    void operator()(void* memory) const {
        ::operator delete (memory, std::align_val_t{Arena::kAlignment});
    }
};

std::unique_ptr<void, Release> allocate(size_t bytes) {
    return std::unique_ptr<void, Release>(
        ::operator new (bytes, std::align_val_t{Arena::kAlignment}));
}

constexpr uint32_t kPeers = 64;

// Random tags; or one tag for all, the case that a hash of entries degrades on.
class Workload {
  public:
    Workload(uint32_t classes, bool same_tag) : classes_(classes), same_tag_(same_tag) {}

    // Every second class is directed; the masks differ in the bits they ignore.
    Receive receive() {
        const auto cls = static_cast<uint32_t>(random_() % classes_);
        const uint64_t ignore = cls < 2 ? 0 : uint64_t{0xff} << cls;
        return {same_tag_ ? 42 : random_(), ignore, cls % 2 == 0 ? kAnySource : peer()};
    }

    uint32_t peer() { return static_cast<uint32_t>(random_() % kPeers); }
    uint32_t pick(size_t limit) { return static_cast<uint32_t>(random_() % limit); }
    uint64_t bits() { return random_(); }

  private:
    std::mt19937_64 random_{12345};
    uint32_t classes_;
    bool same_tag_;
};

}  // namespace

extern "C" {

[[gnu::noinline]] Slot measured_posted_match(PostedQueue& queue, uint64_t tag, uint32_t source) {
    return queue.take(tag, source);
}

[[gnu::noinline]] void measured_posted_post(PostedQueue& queue, Slot slot, const Receive& receive) {
    queue.post(slot, receive.tag, receive.ignore, receive.source);
}

[[gnu::noinline]] Slot measured_unexpected_match(UnexpectedQueue& queue, const Receive& receive) {
    return queue.take(receive.tag, receive.ignore, receive.source);
}

[[gnu::noinline]] void measured_unexpected_append(UnexpectedQueue& queue, Slot slot, uint64_t tag,
                                                  uint32_t source) {
    queue.append(slot, tag, source);
}
}

namespace {

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "match_instructions: %s\n", what);
    std::exit(1);
}

// A message for a receive picked at random meets the queue; what it took is posted anew.
void run_posted(Workload& workload, uint32_t depth, uint32_t steps) {
    const QueueConfig config{depth, 0, 99};
    const auto memory = allocate(PostedQueue::bytes_needed(config));
    PostedQueue queue(config, memory.get());
    std::vector<Receive> receives(depth);
    for (Slot slot = 0; slot < depth; ++slot) {
        receives[slot] = workload.receive();
        queue.post(slot, receives[slot].tag, receives[slot].ignore, receives[slot].source);
    }
    for (uint32_t step = 0; step < steps; ++step) {
        const Receive& wanted = receives[workload.pick(depth)];
        const uint64_t tag = wanted.tag ^ (workload.bits() & wanted.ignore);
        const uint32_t source = wanted.source == kAnySource ? workload.peer() : wanted.source;
        const Slot slot = measured_posted_match(queue, tag, source);
        if (slot == kNone) {
            fail("a message found no receive");
        }
        receives[slot] = workload.receive();
        measured_posted_post(queue, slot, receives[slot]);
    }
}

struct Sent {
    uint64_t tag;
    uint32_t source;
    uint64_t ignore;  // of the receive that will ask for it
    bool directed;
};

Sent send(Workload& workload) {
    const Receive receive = workload.receive();
    return {receive.tag, receive.source == kAnySource ? workload.peer() : receive.source,
            receive.ignore, receive.source != kAnySource};
}

// A receive asks for a message picked at random; another message takes its place. The queue
// is turned over twice before the count starts, so that the hashes of all classes are in use.
void run_unexpected(Workload& workload, uint32_t depth, uint32_t steps) {
    const QueueConfig config{depth, 0, 99};
    const auto memory = allocate(UnexpectedQueue::bytes_needed(config));
    UnexpectedQueue queue(config, memory.get());
    std::vector<Sent> messages(depth);
    for (Slot slot = 0; slot < depth; ++slot) {
        messages[slot] = send(workload);
        queue.append(slot, messages[slot].tag, messages[slot].source);
    }
    for (uint32_t step = 0; step < 2 * depth + steps; ++step) {
        const bool counted = step >= 2 * depth;
        const Sent& wanted = messages[workload.pick(depth)];
        const Receive receive{wanted.tag ^ (workload.bits() & wanted.ignore), wanted.ignore,
                              wanted.directed ? wanted.source : kAnySource};
        const Slot slot = counted ? measured_unexpected_match(queue, receive)
                                  : queue.take(receive.tag, receive.ignore, receive.source);
        if (slot == kNone) {
            fail("a receive found no message");
        }
        messages[slot] = send(workload);
        if (counted) {
            measured_unexpected_append(queue, slot, messages[slot].tag, messages[slot].source);
        } else {
            queue.append(slot, messages[slot].tag, messages[slot].source);
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6) {
        fail("usage: match_instructions posted|unexpected CLASSES DEPTH STEPS random|same");
    }
    const auto classes = static_cast<uint32_t>(std::stoul(argv[2]));
    const auto depth = static_cast<uint32_t>(std::stoul(argv[3]));
    const auto steps = static_cast<uint32_t>(std::stoul(argv[4]));
    if (classes < 1 || classes > MaskClasses::kMax || depth < 1 || depth > kMaxCapacity) {
        fail("CLASSES is 1 to 32, DEPTH at least 1");
    }
    Workload workload(classes, std::strcmp(argv[5], "same") == 0);
    if (std::strcmp(argv[1], "posted") == 0) {
        run_posted(workload, depth, steps);
    } else {
        run_unexpected(workload, depth, steps);
    }
    return 0;
}
