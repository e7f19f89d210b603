// SPDX-License-Identifier: BSD-3-Clause
// Incoming messages and what they hold of the packets that brought them.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/transport/transport.h"

struct rte_mbuf;

namespace tagwire::transport {

// A piece of payload that waits in its packet for accept().
struct Fragment {
    Fragment* next;
    rte_mbuf* packet;  // one reference is ours; nullptr in the free list
    const uint8_t* data;
    uint32_t offset;
    uint32_t length;
};

inline constexpr uint32_t kInlinePayload = 64;  // up to this a message is copied out of its packet

enum IncomingState : uint16_t {
    kHeaderKnown = 1u << 0,
    kAnnounced = 1u << 1,
    kAccepted = 1u << 2,
    kInline = 1u << 3,       // the payload is in inline_payload
    kIndexed = 1u << 4,      // in the index of messages that expect fragments
    kPartial = 1u << 5,      // in its session's list of announced, incomplete messages
    kGrantQueued = 1u << 6,  // in its session's list of grants to send
    kFreeAfterGrant = 1u << 7,
    kLost = 1u << 8,            // its session ended
    kKept = 1u << 9,            // the core has no receive for it yet
    kAnnouncesOnly = 1u << 10,  // its rest waits for a grant, however short it is
};

struct IncomingMessage {
    // With one small packet everything up to the inline payload is written once.
    MessageHeader header;
    void* user;
    PeerId peer;
    uint32_t id;
    uint32_t received;  // payload bytes here, of those below `limit`
    uint32_t limit;     // payload bytes wanted: all, or what the buffer holds
    uint32_t units;     // of the receive budget
    uint16_t state;

    // From here on: of messages that are not whole records.
    uint16_t grant_flags;  // of the grant to send: wire::GrantFlags
    uint32_t granted;
    uint32_t session;  // the generation of the session that it came by
    uint16_t refusal;  // errno, with wire::kGrantRefused
    Fragment* fragments;
    ReceiveOperation* receive;
    IncomingMessage* next;  // in the free list, or in the list that `state` names
    IncomingMessage* previous;
    IncomingMessage* next_indexed;
    IncomingMessage* next_grant;

    alignas(16) uint8_t inline_payload[kInlinePayload];

    bool is(IncomingState bit) const noexcept { return (state & bit) != 0; }
    void set(IncomingState bit) noexcept { state = static_cast<uint16_t>(state | bit); }
    void clear(IncomingState bit) noexcept { state = static_cast<uint16_t>(state & ~bit); }
    bool complete() const noexcept { return is(kHeaderKnown) && received == limit; }
};

// Fixed storage, taken and given back in stack order so that it stays cached.
template <typename T>
class Pool {
  public:
    explicit Pool(uint32_t count) : storage_(new T[count]{}), size_(count), free_(count) {
        for (uint32_t i = 0; i < count; ++i) {
            storage_[i].next = i + 1 < count ? &storage_[i + 1] : nullptr;
        }
        head_ = count > 0 ? &storage_[0] : nullptr;
    }

    uint32_t available() const noexcept { return free_; }

    template <typename Visit>
    void for_each(Visit visit) noexcept {
        for (uint32_t i = 0; i < size_; ++i) {
            visit(storage_[i]);
        }
    }

    T* take() noexcept {  // the caller has checked available()
        T* item = head_;
        head_ = item->next;
        --free_;
        return item;
    }

    void give(T* item) noexcept {
        item->next = head_;
        head_ = item;
        ++free_;
    }

  private:
    std::unique_ptr<T[]> storage_;
    T* head_ = nullptr;
    uint32_t size_;
    uint32_t free_;
};

// What a MessageIndex has to know of its entries.
struct IncomingLinks {  // messages that expect fragments
    using Entry = IncomingMessage;
    static PeerId peer(const Entry& entry) noexcept { return entry.peer; }
    static uint32_t id(const Entry& entry) noexcept { return entry.id; }
    static Entry*& next(Entry& entry) noexcept { return entry.next_indexed; }
    static void mark(Entry& entry, bool indexed) noexcept {
        indexed ? entry.set(kIndexed) : entry.clear(kIndexed);
    }
};
struct OutgoingLinks {  // messages that expect grants
    using Entry = SendOperation;
    static PeerId peer(const Entry& entry) noexcept { return entry.state.peer; }
    static uint32_t id(const Entry& entry) noexcept { return entry.state.message_id; }
    static Entry*& next(Entry& entry) noexcept { return entry.state.next_indexed; }
    static void mark(Entry& entry, bool indexed) noexcept { entry.state.indexed = indexed; }
};

// Messages by peer and message id.
template <typename Links>
class MessageIndex {
  public:
    using Entry = typename Links::Entry;

    explicit MessageIndex(uint32_t messages)
        : mask_(std::bit_ceil(messages) - 1), buckets_(new Entry* [size_t{mask_} + 1] {}) {}

    Entry* find(PeerId peer, uint32_t id) const noexcept {
        Entry* entry = *bucket(peer, id);
        while (entry != nullptr && (Links::id(*entry) != id || Links::peer(*entry) != peer)) {
            entry = Links::next(*entry);
        }
        return entry;
    }

    void insert(Entry* entry) noexcept {
        Entry** head = bucket(Links::peer(*entry), Links::id(*entry));
        Links::next(*entry) = *head;
        *head = entry;
        Links::mark(*entry, true);
    }

    void erase(Entry* entry) noexcept {
        Entry** at = bucket(Links::peer(*entry), Links::id(*entry));
        while (*at != entry) {
            at = &Links::next(**at);
        }
        *at = Links::next(*entry);
        Links::mark(*entry, false);
    }

  private:
    Entry** bucket(PeerId peer, uint32_t id) const noexcept {
        // Ids of one peer are consecutive: they spread by themselves.
        return &buckets_[(id + peer * 0x9e3779b1u) & mask_];
    }

    uint32_t mask_;
    std::unique_ptr<Entry*[]> buckets_;
};

}  // namespace tagwire::transport
