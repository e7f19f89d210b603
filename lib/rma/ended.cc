// SPDX-License-Identifier: BSD-3-Clause
// An operation ends at its origin: the transport is done with its message, and what it
// asked for is here. One entry in the completion queue, unless success was not asked for.
#include "lib/rma/remote_memory.h"

namespace tagwire {

using transport::MessageHeader;
using transport::MessageKind;

void RemoteMemory::send_done(transport::SendOperation& operation, int status) noexcept {
    const MessageKind kind = operation.header.kind;
    if (kind == MessageKind::kGetReply || kind == MessageKind::kAtomicReply) {
        reply_sent(*static_cast<Reply*>(operation.user), status);
        return;
    }
    auto& request = *static_cast<RmaRequest*>(operation.user);
    if (request.receiving) [[unlikely]] {  // the session ended: so does what is being received
        request.sent = true;
        request.status = status;
        return;
    }
    complete(request, request.answered ? request.status : status);
}

void RemoteMemory::receive_done(transport::ReceiveOperation& operation,
                                const IncomingMessage& message, int status) noexcept {
    switch (transport::header_of(message).kind) {
        case MessageKind::kPut:
            put_done(*static_cast<Placement*>(operation.user), message, status);
            break;
        case MessageKind::kAtomicRequest:
            atomic_done(*static_cast<Reply*>(operation.user), message, status);
            break;
        default: {
            auto& request = *static_cast<RmaRequest*>(operation.user);
            request.receiving = false;
            if (request.sent) {
                complete(request, request.status);
            } else if (status == 0) {
                answer(request, 0);
            }  // else its kSendDone is on the way, with the same status
        }
    }
}

void RemoteMemory::reply_arrived(IncomingMessage& message) noexcept {
    const MessageHeader& header = transport::header_of(message);
    const auto index = static_cast<uint32_t>(header.tag);
    const auto sequence = static_cast<uint32_t>(header.tag >> 32) ^ salt_;
    RmaRequest* request = index < requests_.touched() ? &requests_[index] : nullptr;
    if (request == nullptr || !request->waits || request->sequence != sequence ||
        request->peer != transport::peer_of(message)) [[unlikely]] {
        ++counters_.stale_replies;
        worker_.transport().discard(message);
        return;
    }
    request->waits = false;
    if ((header.flags & transport::kHasData) != 0 || header.length != request->receive.capacity)
        [[unlikely]] {
        constexpr uint64_t kHighestError = 4095;
        const bool refused = header.data >= 1 && header.data <= kHighestError;
        const int status = refused ? -static_cast<int>(header.data) : -EPROTO;
        worker_.transport().discard(message);
        answer(*request, status);
        return;
    }
    switch (worker_.transport().accept(message, request->receive)) {
        case 1:
            answer(*request, 0);
            break;
        case 0:
            request->receiving = true;
            break;
        default:
            break;  // the session ended: so does the request
    }
}

void RemoteMemory::answer(RmaRequest& request, int status) noexcept {
    request.answered = true;
    request.status = status;
    if (worker_.transport().answered(request.send) == 1) [[likely]] {
        complete(request, status);
    }
}

void RemoteMemory::complete(RmaRequest& request, int status) noexcept {
    if (RmaRequest* const parent = request.parent; parent != nullptr) [[unlikely]] {
        release(request);
        parent->status = parent->status != 0 ? parent->status : status;
        if (--parent->parts == 0) {
            complete(*parent, parent->status);
        }
        return;
    }
    Endpoint& endpoint = *request.endpoint;
    endpoint.operation_ended();
    counters_.errors += status != 0;
    if (!request.completed) [[likely]] {
        if (status == 0 && request.silent) {
            endpoint.send_queue().unreserve();
            count(request, 0);
        } else {
            write(request, status);
        }
    }
    release(request);
}

void RemoteMemory::count(const RmaRequest& request, int status) noexcept {
    if ((request.flags & TW_FLUSH) == 0) {
        request.endpoint->count(request.counted, -status);
    }
}

void RemoteMemory::write(RmaRequest& request, int status) noexcept {
    Completion& completion = request.endpoint->send_queue().write();
    completion = {};
    completion.entry.context = request.context;
    completion.entry.flags = request.flags;
    completion.entry.length = status == 0 && request.counted == Counted::kRead ? request.length : 0;
    completion.entry.buffer = const_cast<void*>(request.buffer);
    completion.entry.source = TW_ADDR_NOTAVAIL;
    completion.message_length = request.length;
    completion.error = -status;
    completion.provider_error = -status;
    count(request, status);
}

}  // namespace tagwire
