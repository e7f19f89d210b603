// SPDX-License-Identifier: BSD-3-Clause
// A hash from (masked tag, class and source) to a first-in first-out run of nodes. All
// mask classes share its buckets.
//
// A bucket is a doubly linked chain of runs. Entries with equal keys stand next
// to each other in the order of insertion, and the first of a run knows the
// last, so a search steps over a run of any length at once and an insertion
// appends in constant time: 8,192 receives with one tag cost no more than 8,192
// receives with a tag each.
#pragma once

#include <bit>
#include <cassert>

#include "lib/match/arena.h"
#include "lib/match/types.h"

namespace tagwire::match {

class RunIndex {
  public:
    // Two nodes to a cache line.
    struct Node {
        uint64_t tag;    // tag & ~ignore
        uint64_t order;  // the caller's
        uint32_t who;    // class and source
        uint32_t next;
        uint32_t prev;  // a node, or kFlag | bucket for the first of a chain
        uint32_t peer;  // first of a run: the last; last: kFlag | the first; alone: itself
    };
    static_assert(sizeof(Node) == 32);

    struct Key {
        uint64_t tag;    // tag & ~ignore
        uint64_t place;  // what class and source add to the tag before it is hashed
        uint32_t who;    // class and source
    };

    // At least twice as many buckets as entries.
    static uint32_t buckets_for(uint64_t entries) {
        return static_cast<uint32_t>(std::bit_ceil(entries < 8 ? 8 : entries) * 2);
    }

    RunIndex(Node* nodes, uint32_t* buckets, uint32_t bucket_count, uint64_t seed)
        : nodes_(nodes),
          buckets_(buckets),
          factor_(mix(seed + 1) | 1),
          shift_(static_cast<uint32_t>(64 - std::countr_zero(bucket_count))) {
        assert(std::has_single_bit(bucket_count) && bucket_count > 1);
        std::memset(buckets, 0xff, size_t{bucket_count} * sizeof(*buckets));
    }

    Node& node(Slot slot) { return nodes_[slot]; }
    const Node& node(Slot slot) const { return nodes_[slot]; }

    // The oldest entry with this key, or kNone. It is the first of its run.
    Slot find(const Key& key) const { return walk(key, buckets_[bucket_of(key)]); }

    // The entry with the same key that was inserted next, or kNone.
    Slot next_in_run(Slot slot) const {
        const Node& node = nodes_[slot];
        const bool last = node.peer == slot || (node.peer != kInterior && (node.peer & kFlag) != 0);
        return last ? kNone : node.next;
    }

    void insert(Slot slot, const Key& key) {
        uint32_t& bucket = buckets_[bucket_of(key)];
        Node& node = nodes_[slot];
        node.tag = key.tag;
        node.who = key.who;
        const Slot first = bucket;
        const Slot head = walk(key, first);
        if (head != kNone) {
            append(slot, head);
            return;
        }
        node.peer = slot;
        node.prev = kFlag | static_cast<uint32_t>(&bucket - buckets_);
        node.next = first;
        bucket = slot;
        if (first != kNone) {
            nodes_[first].prev = slot;
        }
    }

    // Removes what find() returned.
    void remove_first(Slot slot) {
        const Node& node = nodes_[slot];
        if (node.peer != slot) {
            pass_on_first(node);
        }
        unlink(node);
    }

    void remove(Slot slot) {
        const Node& node = nodes_[slot];
        if (node.peer != slot && node.peer != kInterior) {
            if (node.peer & kFlag) {
                pass_on_last(node);
            } else {
                pass_on_first(node);
            }
        }
        unlink(node);
    }

  private:
    static constexpr uint32_t kFlag = 1u << 31;
    static constexpr uint32_t kInterior = UINT32_MAX;

    // Multiply-shift with a secret odd factor: keys chosen without knowing it
    // collide with a probability of at most two in the number of buckets.
    uint64_t bucket_of(const Key& key) const { return (key.tag + key.place) * factor_ >> shift_; }

    Slot walk(const Key& key, Slot head) const {
        while (head != kNone) {
            const Node& node = nodes_[head];
            if (node.tag == key.tag && node.who == key.who) {
                break;
            }
            head = nodes_[node.peer].next;
        }
        return head;
    }

    void append(Slot slot, Slot head) {
        Node& node = nodes_[slot];
        const Slot last = nodes_[head].peer;
        node.prev = last;
        node.next = nodes_[last].next;
        node.peer = kFlag | head;
        nodes_[last].next = slot;
        if (node.next != kNone) {
            nodes_[node.next].prev = slot;
        }
        if (last != head) {
            nodes_[last].peer = kInterior;
        }
        nodes_[head].peer = slot;
    }

    void pass_on_first(const Node& node) {
        const Slot last = node.peer;
        const Slot heir = node.next;
        nodes_[heir].peer = last;
        if (heir != last) {
            nodes_[last].peer = kFlag | heir;
        }
    }

    void pass_on_last(const Node& node) {
        const Slot first = node.peer & ~kFlag;
        const Slot heir = node.prev;
        if (heir != first) {
            nodes_[heir].peer = kFlag | first;
        }
        nodes_[first].peer = heir;
    }

    void unlink(const Node& node) {
        if (node.prev & kFlag) {
            buckets_[node.prev & ~kFlag] = node.next;
        } else {
            nodes_[node.prev].next = node.next;
        }
        if (node.next != kNone) {
            nodes_[node.next].prev = node.prev;
        }
    }

    Node* nodes_;
    uint32_t* buckets_;
    uint64_t factor_;
    uint32_t shift_;
};

}  // namespace tagwire::match
