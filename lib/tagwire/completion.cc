// SPDX-License-Identifier: BSD-3-Clause
// An operation ends: one entry in the completion queue, unless it succeeded and
// success was not asked for. The entry was reserved when the operation was posted,
// so that an error always has its place (fi_cq(3)).
#include <algorithm>

#include "lib/tagwire/endpoint.h"

namespace tagwire {

using transport::MessageKind;

namespace {

uint64_t kind_flag(MessageKind kind) {
    return kind == MessageKind::kTagged ? TW_TAGGED : TW_MSG;
}

}  // namespace

Endpoint::Arrival Endpoint::arrival_of(const transport::IncomingMessage& message) {
    return {transport::header_of(message), transport::peer_of(message)};
}

// What a message says of itself. Nothing is placed yet.
void Endpoint::fill(Completion& completion, void* context, const Arrival& arrival) noexcept {
    const transport::MessageHeader& header = arrival.header;
    const bool has_data = (header.flags & transport::kHasData) != 0;
    completion.entry.context = context;
    completion.entry.flags =
        TW_RECV | kind_flag(header.kind) | (has_data ? TW_REMOTE_CQ_DATA : uint64_t{0});
    completion.entry.length = 0;
    completion.entry.buffer = nullptr;
    completion.entry.data = has_data ? header.data : 0;
    completion.entry.tag = header.tag;
    completion.entry.source =
        arrival.peer != transport::kNoPeer ? worker_.address_of(arrival.peer) : TW_ADDR_NOTAVAIL;
    completion.message_length = header.length;
    completion.error = 0;
    completion.provider_error = 0;
}

void Endpoint::complete(ReceiveRequest& request, const Arrival& arrival, int status) noexcept {
    const uint64_t length = arrival.header.length;
    const uint64_t placed = std::min(length, request.operation.capacity);
    int error = -status;
    if (status == 0 && placed < length) [[unlikely]] {
        error = TW_ETRUNC;
        ++worker_.counters().truncated;
    }
    worker_.counters().receive_errors += error != 0;
    count(Counted::kReceive, error);
    ReceiveRequest* const parent = request.parent;
    Completion* completion = nullptr;
    if (error == 0 && request.silent) {
        receive_cq_->unreserve();
    } else {
        completion = &receive_cq_->write();
        fill(*completion, request.context, arrival);
        completion->entry.buffer = request.buffer;
        completion->entry.length = status == 0 ? placed : 0;
        completion->error = error;
        completion->provider_error = -status;
    }
    worker_.receives().release(&request);
    if (parent != nullptr) [[unlikely]] {
        part_ended(*parent, completion);
    }
}

void Endpoint::complete_cancelled(ReceiveRequest& request, int error) noexcept {
    Completion& completion = receive_cq_->write();
    completion = {};
    completion.entry.context = request.context;
    completion.entry.flags =
        TW_RECV | kind_flag(request.untagged ? MessageKind::kUntagged : MessageKind::kTagged) |
        (request.multi ? TW_MULTI_RECV : uint64_t{0});
    completion.entry.buffer = request.buffer;
    completion.entry.source = TW_ADDR_NOTAVAIL;
    completion.error = error;
    ++worker_.counters().receive_errors;
    count(Counted::kReceive, error);
    worker_.receives().release(&request);
}

void Endpoint::write_sent(SendRequest& request, int status) noexcept {
    Completion& completion = send_cq_->write();
    completion = {};
    completion.entry.context = request.context;
    completion.entry.flags = TW_SEND | kind_flag(request.operation.header.kind);
    completion.entry.buffer = const_cast<void*>(request.buffer);
    completion.entry.tag = request.operation.header.tag;
    completion.entry.source = TW_ADDR_NOTAVAIL;
    completion.message_length = request.operation.header.length;
    completion.error = -status;
    completion.provider_error = -status;
    count(Counted::kSend, -status);
}

// `count` that follow each other, from `first` on.
void Endpoint::sends_done(transport::SendOperation& first, uint32_t count, int status) noexcept {
    sends_ -= count;
    const bool usual = status == 0 && counters_[static_cast<size_t>(Counted::kSend)] == nullptr;
    Pool<SendRequest>& pool = worker_.sends();
    CompletionQueue::Writer writer(*send_cq_);
    transport::SendOperation* operation = &first;
    for (uint32_t left = count; left > 0; --left) {
        auto& request = *static_cast<SendRequest*>(operation->user);
        operation = operation->state.next;
        if (!usual || !request.ends.usual) [[unlikely]] {
            writer.pause();
            send_done(request, status);
            writer.resume();
            continue;
        }
        Completion& completion = writer.next();
        completion.entry.context = request.context;
        completion.entry.flags = TW_SEND | TW_TAGGED;
        completion.entry.length = 0;
        completion.entry.buffer = const_cast<void*>(request.buffer);
        completion.entry.data = 0;
        completion.entry.tag = request.operation.header.tag;
        completion.entry.source = TW_ADDR_NOTAVAIL;
        completion.error = 0;
        pool.release(&request);
    }
}

void Endpoint::send_done(SendRequest& request, int status) noexcept {
    worker_.counters().send_errors += status != 0;
    if (request.ends.completed) [[unlikely]] {
        worker_.sends().release(&request);
        return;
    }
    if (status == 0 && request.ends.silent) {
        send_cq_->unreserve();
        count(Counted::kSend, 0);
    } else {
        write_sent(request, status);
    }
    worker_.sends().release(&request);
}

void Endpoint::receive_done(ReceiveRequest& request, const transport::IncomingMessage& message,
                            int status) noexcept {
    --accepting_;
    complete(request, arrival_of(message), status);
}

}  // namespace tagwire
