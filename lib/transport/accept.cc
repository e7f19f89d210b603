// SPDX-License-Identifier: BSD-3-Clause
// The core took a message, or does not want it.
#include <rte_mbuf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lib/transport/engine.h"
#include "lib/transport/scatter.h"

namespace tagwire::transport {

int Engine::accept(IncomingMessage& message, ReceiveOperation& operation) noexcept {
    const auto limit = static_cast<uint32_t>(std::min(message.header.length, operation.capacity));
    if (message.is(kInline)) [[likely]] {
        if (limit == 8 && operation.iov_count == 1) [[likely]] {
            std::memcpy(operation.iov[0].iov_base, message.inline_payload, 8);
        } else {
            scatter(operation.iov, 0, message.inline_payload, limit);
        }
        if ((message.header.flags & kWantsDeliveryNote) != 0) [[unlikely]] {
            answer(sessions_[message.peer], message, 0, wire::kGrantDelivered);
        }
        free_message(&message);
        return 1;
    }
    if (message.is(kLost)) {
        return -ECONNRESET;
    }
    Session& s = sessions_[message.peer];
    const bool was_busy = s.busy();
    message.receive = &operation;
    message.limit = limit;
    message.set(kAccepted);
    deliver_held(message);
    const bool more_to_come = message.is(kIndexed);
    const bool ask = more_to_come && awaits_grant(s, message);
    if (message.received == limit) {
        if (more_to_come) {
            stop_expecting(s, message);
        }
        answer(
            s, message, ask ? limit : 0,
            wire::kGrantMatched | wire::kGrantDelivered | (more_to_come ? wire::kGrantFinal : 0));
        free_message(&message);
        return 1;
    }
    ++s.receives;
    answer(s, message, ask ? limit : 0,
           wire::kGrantMatched | (limit < message.header.length ? wire::kGrantFinal : 0));
    watch(s, was_busy);
    return 0;
}

void Engine::keep(IncomingMessage& message) noexcept {
    if (message.is(kInline) || message.is(kLost)) {
        return;
    }
    message.set(kKept);
    if (message.complete()) {
        answer(sessions_[message.peer], message, 0, wire::kGrantDelivered);
    }
}

void Engine::discard(IncomingMessage& message) noexcept {
    drop(message, wire::kGrantMatched | wire::kGrantDelivered, 0);
}

void Engine::refuse(IncomingMessage& message, uint16_t error) noexcept {
    drop(message, wire::kGrantRefused, error);
}

void Engine::drop(IncomingMessage& message, uint16_t notes, uint16_t refusal) noexcept {
    if (message.is(kLost)) {
        return;  // its kMessageLost is on the way
    }
    Session& s = sessions_[message.peer];
    drop_held(message);
    if (!message.is(kInline) || message.header.kind > MessageKind::kUntagged) {
        uint16_t flags = notes;
        if (message.is(kIndexed)) {
            stop_expecting(s, message);
            flags |= wire::kGrantFinal;
        }
        message.refusal = refusal;
        answer(s, message, 0, flags);
    }
    free_message(&message);
}

bool Engine::revoke(IncomingMessage& message, uint16_t error) noexcept {
    if (message.is(kLost) || message.received == message.limit) {
        return false;
    }
    Session& s = sessions_[message.peer];
    stop_expecting(s, message);
    --s.receives;
    message.receive = nullptr;
    message.refusal = error;
    answer(s, message, 0, wire::kGrantRefused | wire::kGrantFinal);
    free_message(&message);
    return true;
}

// Tells the sender what it waits for: how far it may send, and the notes that it wants.
void Engine::answer(Session& s, IncomingMessage& message, uint32_t granted,
                    uint16_t flags) noexcept {
    uint8_t& wants = message.header.flags;
    uint16_t wanted = 0;
    if ((wants & kWantsMatchNote) != 0) {
        wanted |= wire::kGrantMatched | wire::kGrantRefused;
    }
    if ((wants & kWantsDeliveryNote) != 0) {
        wanted |= wire::kGrantDelivered | wire::kGrantRefused;
    }
    if (message.header.kind == MessageKind::kGetRequest ||
        message.header.kind == MessageKind::kAtomicRequest) {
        wanted |= wire::kGrantRefused;  // instead of the reply
    }
    if ((flags & wire::kGrantFinal) != 0 && awaits_grant(s, message)) {
        wanted |= wire::kGrantFinal | wire::kGrantRefused;
    }
    flags &= wanted;
    // Message ids of a session that ended mean nothing in the next one.
    if ((flags == 0 && granted == 0) || !is_current(message)) {
        return;
    }
    if ((flags & wire::kGrantMatched) != 0) {
        wants &= static_cast<uint8_t>(~kWantsMatchNote);
    }
    if ((flags & wire::kGrantDelivered) != 0) {
        wants &= static_cast<uint8_t>(~kWantsDeliveryNote);
    }
    queue_grant(s, message, granted, flags);
}

void Engine::deliver_held(IncomingMessage& message) noexcept {
    message.received = 0;
    for (const Fragment* fragment = message.fragments; fragment != nullptr;
         fragment = fragment->next) {
        deliver(message, fragment->data, fragment->offset, fragment->length);
    }
    drop_held(message);
}

void Engine::drop_held(IncomingMessage& message) noexcept {
    while (message.fragments != nullptr) {
        Fragment* fragment = message.fragments;
        message.fragments = fragment->next;
        rte_pktmbuf_free(fragment->packet);
        fragment->packet = nullptr;
        fragments_.give(fragment);
    }
    if (message.units > 1) {  // one stays for the message itself
        release_units(sessions_[message.peer], message.units - 1);
        message.units = 1;
    }
}

void Engine::release_units(Session& s, uint32_t units) noexcept {
    budget_.release(s.committed, units);
    held_units_ -= units;
    if (s.credit_low) [[unlikely]] {
        release_credit(s);
    }
}

void Engine::release_credit(Session& s) noexcept {
    if (s.state == SessionState::kEstablished) {
        need_ack(s, AckNeed::kSoon);  // carries the new credit
    }
}

void Engine::free_message(IncomingMessage* message) noexcept {
    if (message->is(kGrantQueued)) [[unlikely]] {
        message->set(kFreeAfterGrant);
        return;
    }
    release_units(sessions_[message->peer], message->units);
    messages_.give(message);
}

// No fragment that may still come belongs to it.
void Engine::stop_expecting(Session& s, IncomingMessage& message) noexcept {
    index_.erase(&message);
    if (s.assembling == &message) {
        s.assembling = nullptr;
    }
    if (message.is(kPartial)) {
        unlist_partial(s, message);
    }
}

// One that still waits to be sent takes up what is new.
void Engine::queue_grant(Session& s, IncomingMessage& message, uint32_t granted,
                         uint16_t flags) noexcept {
    if (message.is(kGrantQueued)) {
        message.granted = std::max(message.granted, granted);
        message.grant_flags |= flags;
        return;
    }
    message.granted = granted;
    message.grant_flags = flags;
    message.set(kGrantQueued);
    message.next_grant = nullptr;
    (s.grants != nullptr ? s.grants_last->next_grant : s.grants) = &message;
    s.grants_last = &message;
    make_ready(s);
}

// The message itself stays until its event was seen.
void Engine::finish_receive(IncomingMessage& message, int status) noexcept {
    Event event;
    event.type = EventType::kReceiveDone;
    event.status = status;
    event.peer = message.peer;
    event.message = &message;
    event.receive = message.receive;
    events_.push(event);
    message.next = finished_;
    finished_ = &message;
}

void Engine::list_partial(Session& s, IncomingMessage& message) noexcept {
    message.set(kPartial);
    message.previous = nullptr;
    message.next = s.partial;
    if (s.partial != nullptr) {
        s.partial->previous = &message;
    }
    s.partial = &message;
}

void Engine::unlist_partial(Session& s, IncomingMessage& message) noexcept {
    message.clear(kPartial);
    (message.previous != nullptr ? message.previous->next : s.partial) = message.next;
    if (message.next != nullptr) {
        message.next->previous = message.previous;
    }
}

}  // namespace tagwire::transport
