// SPDX-License-Identifier: BSD-3-Clause
// The matching of others, written anew from their algorithms, without what does not belong to
// matching (locks, counters, hardware offload): what is left out makes them cheaper.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/match/workload.h"

namespace tagwire::bench {

// libfabric, util_srx: receives stand in one list in posting order, and directed ones in a list
// for each peer; messages in a list in arrival order.
class SrxList {
  public:
    static constexpr const char* kName = "list";

    explicit SrxList(uint32_t depth) : receives_(depth), messages_(depth), of_peer_(kPeers) {}

    void post(Slot slot, const Receive& receive) {
        Posted& entry = receives_[slot];
        entry = {nullptr, receive.tag, receive.ignore, next_sequence_++};
        List& list = receive.source == kAnySource ? any_ : of_peer_[receive.source];
        (list.last == nullptr ? list.first : list.last->next) = &entry;
        list.last = &entry;
    }

    Slot take_receive(uint64_t tag, uint32_t source) {
        List& own = of_peer_[source];
        Found directed{nullptr, nullptr};
        if (own.first != nullptr) {
            directed = search(own, tag, UINT64_MAX);
        }
        const Found any = directed.entry == nullptr ? search(any_, tag)
                                                    : search(any_, tag, directed.entry->sequence);
        if (any.entry != nullptr) {
            return extract(any_, any);
        }
        return directed.entry != nullptr ? extract(own, directed) : kNone;
    }

    void append(Slot slot, uint64_t tag, uint32_t source) {
        Message& message = messages_[slot];
        message = {{&unexpected_, unexpected_.prev}, tag, source};
        unexpected_.prev->next = &message;
        unexpected_.prev = &message;
    }

    Slot take_message(const Receive& receive) {
        for (Link* link = unexpected_.next; link != &unexpected_; link = link->next) {
            auto& message = static_cast<Message&>(*link);
            if (((message.tag ^ receive.tag) & ~receive.ignore) == 0 &&
                (receive.source == kAnySource || receive.source == message.source)) {
                link->prev->next = link->next;
                link->next->prev = link->prev;
                return static_cast<Slot>(&message - messages_.data());
            }
        }
        return kNone;
    }

  private:
    struct Posted {
        Posted* next;
        uint64_t tag;
        uint64_t ignore;
        uint64_t sequence;
    };
    struct List {
        Posted* first = nullptr;
        Posted* last = nullptr;
    };
    struct Found {
        Posted* entry;
        Posted* previous;
    };
    struct Link {
        Link* next;
        Link* prev;
    };
    struct Message : Link {
        uint64_t tag;
        uint32_t source;
    };

    static Found search(const List& list, uint64_t tag) {
        Posted* previous = nullptr;
        Posted* entry = list.first;
        while (entry != nullptr && ((entry->tag ^ tag) & ~entry->ignore) != 0) {
            previous = entry;
            entry = entry->next;
        }
        return {entry, previous};
    }

    // As search, among the receives that were posted before one.
    static Found search(const List& list, uint64_t tag, uint64_t before) {
        Posted* previous = nullptr;
        for (Posted* entry = list.first; entry != nullptr; previous = entry, entry = entry->next) {
            if (entry->sequence > before) {
                break;
            }
            if (((entry->tag ^ tag) & ~entry->ignore) == 0) {
                return {entry, previous};
            }
        }
        return {nullptr, nullptr};
    }

    Slot extract(List& list, const Found& found) {
        (found.previous == nullptr ? list.first : found.previous->next) = found.entry->next;
        if (list.last == found.entry) {
            list.last = found.previous;
        }
        return static_cast<Slot>(found.entry - receives_.data());
    }

    std::vector<Posted> receives_;
    std::vector<Message> messages_;
    std::vector<List> of_peer_;
    List any_;
    Link unexpected_{&unexpected_, &unexpected_};
    uint64_t next_sequence_ = 0;
};

// UCX, ucp tag_match: receives with a full mask stand in a queue for each hash of the tag, the
// others in one wildcard queue, and a sequence number decides between the two; messages stand in
// a list of all and in a list for each hash.
class UcpHash {
  public:
    static constexpr const char* kName = "hash";

    explicit UcpHash(uint32_t depth)
        : receives_(depth), messages_(depth), expected_(kBuckets), unexpected_(kBuckets) {
        for (Queue& queue : expected_) {
            queue.tail = &queue.head;
        }
        wildcard_.tail = &wildcard_.head;
        for (Link& list : unexpected_) {
            list = {&list, &list};
        }
    }

    void post(Slot slot, const Receive& receive) {
        Posted& entry = receives_[slot];
        entry = {nullptr, receive.tag, ~receive.ignore, next_sequence_++};
        Queue& queue = receive.ignore == 0 ? expected_[hash(receive.tag)] : wildcard_;
        *queue.tail = &entry;
        queue.tail = &entry.next;
    }

    Slot take_receive(uint64_t tag, uint32_t) {
        Queue& queue = expected_[hash(tag)];
        if (wildcard_.head != nullptr) {
            return take_from_both(queue, tag);
        }
        for (Posted** at = &queue.head; *at != nullptr; at = &(*at)->next) {
            if ((((*at)->tag ^ tag) & (*at)->mask) == 0) {
                return extract(queue, at);
            }
        }
        return kNone;
    }

    void append(Slot slot, uint64_t tag, uint32_t) {
        Message& message = messages_[slot];
        message.tag = tag;
        append(all_, message.in_all);
        append(unexpected_[hash(tag)], message.in_hash);
    }

    Slot take_message(const Receive& receive) {
        if (receive.ignore == 0) {
            Link& list = unexpected_[hash(receive.tag)];
            for (Link* link = list.next; link != &list; link = link->next) {
                auto& message = *reinterpret_cast<Message*>(reinterpret_cast<char*>(link) -
                                                            offsetof(Message, in_hash));
                if (message.tag == receive.tag) {
                    return extract(message);
                }
            }
            return kNone;
        }
        for (Link* link = all_.next; link != &all_; link = link->next) {
            auto& message = *reinterpret_cast<Message*>(link);
            if (((message.tag ^ receive.tag) & ~receive.ignore) == 0) {
                return extract(message);
            }
        }
        return kNone;
    }

  private:
    static constexpr uint32_t kModulus = 1021;
    static constexpr uint32_t kBuckets = 1024;  // the hash joins two remainders bit by bit

    struct Posted {
        Posted* next;
        uint64_t tag;
        uint64_t mask;
        uint64_t sequence;
    };
    struct Queue {
        Posted* head = nullptr;
        Posted** tail = nullptr;
    };
    struct Link {
        Link* next;
        Link* prev;
    };
    struct Message {
        Link in_all;
        Link in_hash;
        uint64_t tag;
    };

    static uint32_t hash(uint64_t tag) {
        return static_cast<uint32_t>(tag) % kModulus ^ static_cast<uint32_t>(tag >> 32) % kModulus;
    }

    static uint64_t sequence_of(const Posted* entry) {
        return entry == nullptr ? UINT64_MAX : entry->sequence;
    }

    Slot take_from_both(Queue& exact, uint64_t tag) {
        Posted** exact_at = &exact.head;
        Posted** wild_at = &wildcard_.head;
        uint64_t exact_sequence = sequence_of(*exact_at);
        uint64_t wild_sequence = sequence_of(*wild_at);
        while (exact_sequence != wild_sequence) {
            const bool first = exact_sequence < wild_sequence;
            Posted**& at = first ? exact_at : wild_at;
            if ((((*at)->tag ^ tag) & (*at)->mask) == 0) {
                return extract(first ? exact : wildcard_, at);
            }
            at = &(*at)->next;
            (first ? exact_sequence : wild_sequence) = sequence_of(*at);
        }
        return kNone;
    }

    Slot extract(Queue& queue, Posted** at) {
        Posted* entry = *at;
        *at = entry->next;
        if (queue.tail == &entry->next) {
            queue.tail = at;
        }
        return static_cast<Slot>(entry - receives_.data());
    }

    static void append(Link& list, Link& link) {
        link = {&list, list.prev};
        list.prev->next = &link;
        list.prev = &link;
    }

    Slot extract(Message& message) {
        for (Link* link : {&message.in_all, &message.in_hash}) {
            link->prev->next = link->next;
            link->next->prev = link->prev;
        }
        return static_cast<Slot>(&message - messages_.data());
    }

    std::vector<Posted> receives_;
    std::vector<Message> messages_;
    std::vector<Queue> expected_;
    Queue wildcard_;
    std::vector<Link> unexpected_;
    Link all_{&all_, &all_};
    uint64_t next_sequence_ = 0;
};

}  // namespace tagwire::bench
