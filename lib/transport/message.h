// SPDX-License-Identifier: BSD-3-Clause
// Incoming messages and what they hold of the packets that brought them.
#pragma once

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
    kGrantLast = 1u << 7,    // the grant says that nothing past it is wanted
    kFreeAfterGrant = 1u << 8,
    kLost = 1u << 9,  // its session ended
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

    uint32_t granted;
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

// Messages that expect fragments, by peer and message id.
class MessageIndex {
  public:
    explicit MessageIndex(uint32_t messages);

    IncomingMessage* find(PeerId peer, uint32_t id) const noexcept;
    void insert(IncomingMessage* message) noexcept;
    void erase(IncomingMessage* message) noexcept;

  private:
    IncomingMessage** bucket(PeerId peer, uint32_t id) const noexcept;

    uint32_t mask_;
    std::unique_ptr<IncomingMessage*[]> buckets_;
};

}  // namespace tagwire::transport
