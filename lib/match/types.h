// SPDX-License-Identifier: BSD-3-Clause
// Terms shared by both sides of tag matching.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tagwire::match {

// An entry is named by its slot: a number below the queue's capacity that the
// caller chose. The caller keeps its own data in an array with the same index,
// so the queues need no allocation and no back pointer.
using Slot = uint32_t;
inline constexpr Slot kNone = UINT32_MAX;

// Peers are numbered by the caller; a receive may name one of them or any.
inline constexpr uint32_t kAnySource = UINT32_MAX;

// The largest capacity: links number the slots or buckets of 32 classes in 31 bits.
inline constexpr uint32_t kMaxCapacity = 1u << 24;

// fi_tagged(3): (send_tag & ~ignore) == (recv_tag & ~ignore).
constexpr bool tags_match(uint64_t send_tag, uint64_t recv_tag, uint64_t ignore) {
    return ((send_tag ^ recv_tag) & ~ignore) == 0;
}

// fi_tagged(3), src_addr: a directed receive takes messages of that peer only.
constexpr bool sources_match(uint32_t sender, uint32_t wanted) {
    return wanted == kAnySource || wanted == sender;
}

struct QueueConfig {
    uint32_t capacity = 0;     // slots, 1 to kMaxCapacity
    uint32_t max_classes = 0;  // mask classes that are hashed; 0 means as many as there can be
    uint64_t seed = 0;  // hash secret: peers choose the tags, so production takes a random one
};

}  // namespace tagwire::match
