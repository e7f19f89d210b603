// SPDX-License-Identifier: BSD-3-Clause
// Where messages meet receives, and operations become completions.
#include <algorithm>
#include <cassert>

#include "lib/tagwire/endpoint.h"

namespace tagwire {

using transport::IncomingMessage;

void Endpoint::message_arrived(IncomingMessage& message) noexcept {
    const uint64_t tag = transport::header_of(message).tag;
    const transport::PeerId peer = transport::peer_of(message);
    const match::Slot slot = posted_->take(tag, peer);
    if (slot != match::kNone) {
        ++worker_.counters().matched_posted;
        ReceiveRequest& request = worker_.receives()[slot];
        request.posted = false;
        deliver(request, message);
        return;
    }
    Pool<UnexpectedMessage>& pool = worker_.unexpected();
    UnexpectedMessage* unexpected = pool.acquire();
    // The pool is as large as the number of messages that the transport announces at most.
    assert(unexpected != nullptr);
    unexpected->endpoint = this;
    unexpected->message = &message;
    transport::user_of(message) = unexpected;
    unexpected_->append(pool.index_of(unexpected), tag, peer);
    worker_.transport().keep(message);
    CoreCounters& counters = worker_.counters();
    counters.unexpected_peak = std::max<uint64_t>(counters.unexpected_peak, pool.in_use());
}

// The message stays the transport's: the caller discards it, or it is lost.
void Endpoint::forget(UnexpectedMessage& unexpected) noexcept {
    unexpected_->remove(worker_.unexpected().index_of(&unexpected));
    transport::user_of(*unexpected.message) = nullptr;
    worker_.unexpected().release(&unexpected);
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

void Endpoint::receive_done(ReceiveRequest& request, const IncomingMessage& message,
                            int status) noexcept {
    --accepting_;
    complete(request, arrival_of(message), status);
}

Endpoint::Arrival Endpoint::arrival_of(const IncomingMessage& message) {
    return {transport::header_of(message), transport::peer_of(message)};
}

void Endpoint::complete(ReceiveRequest& request, const Arrival& arrival, int status) noexcept {
    const transport::MessageHeader& header = arrival.header;
    const uint64_t placed = std::min(header.length, request.operation.capacity);
    const bool has_data = (header.flags & transport::kHasData) != 0;
    Completion& completion = receive_cq_->write();
    completion.entry.context = request.context;
    completion.entry.flags = TW_RECV | TW_TAGGED | (has_data ? TW_REMOTE_CQ_DATA : 0);
    completion.entry.length = status == 0 ? placed : 0;
    completion.entry.buffer = request.buffer;
    completion.entry.data = has_data ? header.data : 0;
    completion.entry.tag = header.tag;
    completion.entry.source = worker_.address_of(arrival.peer);
    completion.message_length = header.length;
    completion.error = -status;
    completion.provider_error = -status;
    if (status == 0 && placed < header.length) [[unlikely]] {
        completion.error = TW_ETRUNC;
        ++worker_.counters().truncated;
    }
    worker_.counters().receive_errors += completion.error != 0;
    worker_.receives().release(&request);
}

void Endpoint::complete_cancelled(ReceiveRequest& request) noexcept {
    request.posted = false;
    Completion& completion = receive_cq_->write();
    completion = {};
    completion.entry.context = request.context;
    completion.entry.flags = TW_RECV | TW_TAGGED;
    completion.entry.buffer = request.buffer;
    completion.entry.source = TW_ADDR_NOTAVAIL;
    completion.error = ECANCELED;
    ++worker_.counters().receive_errors;
    worker_.receives().release(&request);
}

void Endpoint::send_done(SendRequest& request, int status) noexcept {
    --sends_;
    Completion& completion = send_cq_->write();
    completion = {};
    completion.entry.context = request.context;
    completion.entry.flags = TW_SEND | TW_TAGGED;
    completion.entry.buffer = const_cast<void*>(request.buffer);
    completion.entry.tag = request.operation.header.tag;
    completion.entry.source = TW_ADDR_NOTAVAIL;
    completion.message_length = request.operation.header.length;
    completion.error = -status;
    completion.provider_error = -status;
    worker_.counters().send_errors += status != 0;
    worker_.sends().release(&request);
}

}  // namespace tagwire
