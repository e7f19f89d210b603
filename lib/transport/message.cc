// SPDX-License-Identifier: BSD-3-Clause
#include "lib/transport/message.h"

#include <bit>

namespace tagwire::transport {

MessageIndex::MessageIndex(uint32_t messages)
    : mask_(std::bit_ceil(messages) - 1), buckets_(new IncomingMessage* [mask_ + 1] {}) {}

IncomingMessage** MessageIndex::bucket(PeerId peer, uint32_t id) const noexcept {
    // Ids of one peer are consecutive: they spread by themselves.
    return &buckets_[(id + peer * 0x9e3779b1u) & mask_];
}

IncomingMessage* MessageIndex::find(PeerId peer, uint32_t id) const noexcept {
    IncomingMessage* message = *bucket(peer, id);
    while (message != nullptr && (message->id != id || message->peer != peer)) {
        message = message->next_indexed;
    }
    return message;
}

void MessageIndex::insert(IncomingMessage* message) noexcept {
    IncomingMessage** head = bucket(message->peer, message->id);
    message->next_indexed = *head;
    *head = message;
    message->set(kIndexed);
}

void MessageIndex::erase(IncomingMessage* message) noexcept {
    IncomingMessage** at = bucket(message->peer, message->id);
    while (*at != message) {
        at = &(*at)->next_indexed;
    }
    *at = message->next_indexed;
    message->clear(kIndexed);
}

const MessageHeader& header_of(const IncomingMessage& message) noexcept {
    return message.header;
}
PeerId peer_of(const IncomingMessage& message) noexcept {
    return message.peer;
}
void*& user_of(IncomingMessage& message) noexcept {
    return message.user;
}
bool is_complete(const IncomingMessage& message) noexcept {
    return message.complete();
}

}  // namespace tagwire::transport
