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

// Names one stay of an entry in a queue: its slot, and above it a generation that
// is another one the next time. 0 names none.
using Handle = uint64_t;
constexpr Slot slot_of(Handle handle) {
    return static_cast<Slot>(handle);
}

// The largest capacity: links number the slots or buckets in 31 bits.
inline constexpr uint32_t kMaxCapacity = 1u << 24;

// Peers are numbered by the caller, below kMaxPeers. A receive names one of them, any, or a
// group of senders by their key (fi_tagged(3), FI_AUTH_KEY): key_group() of a number below
// kMaxKeys. A message names its sender, and the key group that its sender belongs to, if any.
inline constexpr uint32_t kAnySource = UINT32_MAX;
inline constexpr uint32_t kMaxPeers = 1u << 24;
inline constexpr uint32_t kMaxKeys = (1u << 24) - 1;
inline constexpr uint32_t kKeyFlag = 1u << 31;
constexpr uint32_t key_group(uint32_t key) {
    return kKeyFlag | key;
}
constexpr bool is_key_group(uint32_t source) {
    return source != kAnySource && (source & kKeyFlag) != 0;
}
inline constexpr uint32_t kNoKey = key_group(kMaxKeys);  // no receive names this group

// fi_tagged(3): (send_tag & ~ignore) == (recv_tag & ~ignore), with one operation less.
constexpr bool tags_match(uint64_t send_tag, uint64_t recv_tag, uint64_t ignore) {
    return ((send_tag ^ recv_tag) | ignore) == ignore;
}

// fi_tagged(3), src_addr: a directed receive takes messages of that peer, or of that group, only.
constexpr bool sources_match(uint32_t sender, uint32_t key, uint32_t wanted) {
    if (wanted == kAnySource) [[likely]] {
        return true;
    }
    return wanted == sender || wanted == key;
}

struct QueueConfig {
    uint32_t capacity = 0;     // slots, 1 to kMaxCapacity
    uint32_t max_classes = 0;  // mask classes that are hashed; 0 means as many as there can be
    uint64_t seed = 0;  // hash secret: peers choose the tags, so production takes a random one
};

// The finalizer of splitmix64: spreads a small number over 64 bits.
constexpr uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

}  // namespace tagwire::match
