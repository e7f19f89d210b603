// SPDX-License-Identifier: BSD-3-Clause
// Where messages meet receives.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "lib/tagwire/endpoint.h"
#include "lib/transport/records.h"
#include "lib/transport/scatter.h"

namespace tagwire {

using transport::IncomingMessage;
using State = UnexpectedMessage::State;

// The small messages of a frame. One whose receive waits goes from the frame into its buffer;
// any other becomes a message of its own. But when receives have met messages here and none is
// left, the application, which will read completions now, most often posts the next ones then; and
// a message that comes before its receive costs twice as much. So the rest stays in the frame for a
// turn, if it may: the event says then what is left.
bool Endpoint::records_arrived(transport::Event& event, tw_addr source, uint32_t key,
                               bool rest_may_wait) noexcept {
    const uint8_t* at = event.records.first;
    bool usual = !blocked() && counters_[static_cast<size_t>(Counted::kReceive)] == nullptr &&
                 !worker_.contexts().active();
    uint32_t held = 0;
    uint32_t taken = 0;
    CompletionQueue::Writer writer(*receive_cq_);
    for (; taken < event.count; ++taken) {
        const transport::TaggedRecord record(at);
        if (!usual || !record.usual()) [[unlikely]] {
            writer.pause();
            at = take_record(event, taken, at, key, held);
            writer.resume();
            usual = usual && !blocked();
            continue;
        }
        const match::Slot slot = sides_[0].posted->take(record.tag(), event.peer, key);
        ReceiveRequest* const request = slot != match::kNone ? &worker_.receives()[slot] : nullptr;
        if (request == nullptr || !request->plain || record.length() > request->operation.capacity)
            [[unlikely]] {
            if (request == nullptr && rest_may_wait && taken != held && !has_posted()) {
                break;
            }
            writer.pause();
            at = take_record(event, taken, at, request, held);
            writer.resume();
            usual = !blocked();
            continue;
        }
        const uint32_t length = record.length();
        at = record.payload() + length;
        if (length == 8) [[likely]] {
            std::memcpy(request->buffer, record.payload(), 8);
        } else {
            std::memcpy(request->buffer, record.payload(), length);
        }
        Completion& completion = writer.next();
        completion.entry.context = request->context;
        completion.entry.flags = TW_RECV | TW_TAGGED;
        completion.entry.length = length;
        completion.entry.buffer = request->buffer;
        completion.entry.data = 0;
        completion.entry.tag = record.tag();
        completion.entry.source = source;
        completion.error = 0;
        worker_.receives().release(request);
    }
    worker_.counters().matched_posted += taken - held;
    if (taken != event.count) [[unlikely]] {
        worker_.transport().records_taken(event, taken, held, at);
        return false;
    }
    worker_.transport().records_done(event, held);
    return true;
}

// One that is not as most are. Returns where the next one is.
const uint8_t* Endpoint::take_record(const transport::Event& event, uint32_t index,
                                     const uint8_t* at, uint32_t key, uint32_t& held) noexcept {
    transport::MessageHeader header;
    transport::read_record(at, header);
    const match::Slot slot =
        blocked() ? match::kNone : side_of(header.kind).posted->take(header.tag, event.peer, key);
    return take_record(event, index, at, slot != match::kNone ? &worker_.receives()[slot] : nullptr,
                       held);
}

// `request`: the receive that it meets, or nullptr.
const uint8_t* Endpoint::take_record(const transport::Event& event, uint32_t index,
                                     const uint8_t* at, ReceiveRequest* request,
                                     uint32_t& held) noexcept {
    transport::MessageHeader header;
    const uint8_t* const payload = transport::read_record(at, header);
    if (request != nullptr && !request->multi) {
        request->posted = false;
        if (request->context != nullptr && worker_.contexts().active()) {
            worker_.contexts().erase(*request);
        }
        fit(*request, header.length);
        const auto placed =
            static_cast<uint32_t>(std::min(header.length, request->operation.capacity));
        transport::scatter(request->operation.iov, 0, payload, placed);
        complete(*request, {header, event.peer}, 0);
        return payload + header.length;
    }
    ++held;
    IncomingMessage& message = worker_.transport().hold_record(event, index, header, payload);
    if (blocked()) {
        block(message, false);  // behind those that arrived before it
    } else if (request == nullptr) {
        keep(message);
    } else if (!feed(*request, message)) {
        ++worker_.counters().blocked;
        worker_.add_blocked(*this);
        block(message, false);
    }
    return payload + header.length;
}

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
    if (request.context != nullptr && worker_.contexts().active()) [[unlikely]] {
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
    fit(request, arrival.header.length);
    const int result = worker_.transport().accept(message, request.operation);
    if (result == 0) {
        ++accepting_;
        return;
    }
    complete(request, arrival, std::min(result, 0));
}

// A receive of whole messages has no room for a longer one.
void Endpoint::fit(ReceiveRequest& request, uint64_t length) noexcept {
    if (length > request.operation.capacity && whole_messages_ && request.parent == nullptr)
        [[unlikely]] {
        request.operation.capacity = 0;
    }
}

}  // namespace tagwire
