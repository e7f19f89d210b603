// SPDX-License-Identifier: BSD-3-Clause
// Where messages meet receives.
#include <algorithm>
#include <cassert>

#include "lib/tagwire/endpoint.h"

namespace tagwire {

using transport::IncomingMessage;
using State = UnexpectedMessage::State;

void Endpoint::message_arrived(IncomingMessage& message) noexcept {
    if (blocked()) [[unlikely]] {
        block(message, false);  // behind those that arrived before it
    } else if (!match(message)) [[unlikely]] {
        ++worker_.counters().blocked;
        worker_.add_blocked(*this);
        block(message, false);
    }
}

// False when the message belongs to a receive that cannot take it now.
bool Endpoint::match(IncomingMessage& message) noexcept {
    const transport::MessageHeader& header = transport::header_of(message);
    const transport::PeerId peer = transport::peer_of(message);
    const match::Slot slot =
        side_of(header.kind).posted->take(header.tag, peer, worker_.key_group_of(peer));
    if (slot == match::kNone) {
        keep(message);
        return true;
    }
    ReceiveRequest& request = worker_.receives()[slot];
    if (request.multi) [[unlikely]] {
        return feed(request, message);
    }
    ++worker_.counters().matched_posted;
    request.posted = false;
    if (request.context != nullptr) {
        worker_.contexts().erase(request);
    }
    deliver(request, message);
    return true;
}

void Endpoint::keep(IncomingMessage& message) noexcept {
    const transport::MessageHeader& header = transport::header_of(message);
    const transport::PeerId peer = transport::peer_of(message);
    Pool<UnexpectedMessage>& pool = worker_.unexpected();
    UnexpectedMessage* unexpected = pool.acquire();
    // The pool is as large as the number of messages that the transport announces at most.
    assert(unexpected != nullptr);
    transport::user_of(message) = unexpected;
    unexpected->endpoint = this;
    unexpected->message = &message;
    unexpected->state = State::kQueued;
    side_of(header.kind)
        .unexpected->append(pool.index_of(unexpected), header.tag, peer,
                            worker_.key_group_of(peer));
    worker_.transport().keep(message);
    CoreCounters& counters = worker_.counters();
    counters.unexpected_peak = std::max<uint64_t>(counters.unexpected_peak, pool.in_use());
}

// One that has left the queue: its entry goes, the message is for the caller.
IncomingMessage& Endpoint::take(UnexpectedMessage& unexpected) noexcept {
    IncomingMessage& message = *unexpected.message;
    transport::user_of(message) = nullptr;
    worker_.unexpected().release(&unexpected);
    return message;
}

void Endpoint::message_lost(UnexpectedMessage& unexpected, int status) noexcept {
    ++worker_.counters().lost;
    switch (unexpected.state) {
        case State::kQueued:
            side_of(transport::header_of(*unexpected.message).kind)
                .unexpected->remove(worker_.unexpected().index_of(&unexpected));
            break;
        case State::kBlocked:
            unlink_blocked(unexpected);
            break;
        case State::kClaimed:
            lose_claimed(unexpected, status);
            break;
    }
    take(unexpected);
}

void Endpoint::deliver(ReceiveRequest& request, IncomingMessage& message) noexcept {
    const Arrival arrival = arrival_of(message);
    const int result = worker_.transport().accept(message, request.operation);
    if (result == 0) {
        ++accepting_;
        return;
    }
    complete(request, arrival, std::min(result, 0));
}

}  // namespace tagwire
