// SPDX-License-Identifier: BSD-3-Clause
// Gets and atomics are answered, each by a message of its own. What a get reads is sent
// straight from the region when it is long; a short one is copied at once, so that later
// puts of the same peer do not show in it.
#include <cstdlib>
#include <utility>

#include "lib/rma/execute.h"
#include "lib/rma/remote_memory.h"
#include "lib/transport/scatter.h"

namespace tagwire {

using transport::IncomingMessage;
using transport::MessageHeader;
using transport::MessageKind;
using transport::PeerId;
using transport::ReceiveOperation;

bool RemoteMemory::serve_get(Endpoint& endpoint, IncomingMessage& message) noexcept {
    const MessageHeader header = transport::header_of(message);
    if (header.length != sizeof(wire::GetRequest) || !transport::is_complete(message))
        [[unlikely]] {
        refuse_message(message, EPROTO);
        return true;
    }
    Reply* const reply = replies_.acquire();
    if (reply == nullptr) [[unlikely]] {
        return false;
    }
    wire::GetRequest get;
    ReceiveOperation receive;
    receive.iov[0] = {&get, sizeof(get)};
    receive.iov_count = 1;
    receive.capacity = sizeof(get);
    const PeerId peer = transport::peer_of(message);
    if (worker_.transport().accept(message, receive) != 1) [[unlikely]] {
        replies_.release(reply);
        return true;
    }
    const uint32_t length = get.length;
    transport::SendOperation& send = reply->send;
    send.header = {get.id, 0, length, MessageKind::kGetReply, 0};
    send.iov_count = 0;
    reply->endpoint = &endpoint;
    reply->region = nullptr;
    Region* region;
    if (const int error = find_region(header.tag, header.data, length, TW_REMOTE_READ, &region);
        error != 0) [[unlikely]] {
        refuse_request(*reply, error);
    } else if (length != 0) {
        send.iov_count = region->pieces(header.data, length, send.iov);
        if (length <= sizeof(reply->result)) {
            transport::gather(send.iov, 0, reply->result, length);
            send.iov[0] = {reply->result, length};
            send.iov_count = 1;
        } else {
            reply->region = region;
            link(*reply);
        }
    }
    if ((send.header.flags & transport::kHasData) == 0) [[likely]] {
        ++counters_.gets;
        count_read(endpoint, region);
    }
    send_reply(*reply, peer);
    return true;
}

bool RemoteMemory::serve_atomic(Endpoint& endpoint, PeerQueue& queue,
                                IncomingMessage& message) noexcept {
    const MessageHeader header = transport::header_of(message);
    if (header.length < sizeof(wire::AtomicRequest) || header.length > sizeof(Reply::request))
        [[unlikely]] {
        refuse_message(message, EPROTO);
        return true;
    }
    Reply* const reply = replies_.acquire();
    if (reply == nullptr) [[unlikely]] {
        return false;
    }
    reply->endpoint = &endpoint;
    reply->region = nullptr;
    reply->receive.iov[0] = {reply->request, header.length};
    reply->receive.iov_count = 1;
    reply->receive.capacity = header.length;
    reply->receive.user = reply;
    const PeerId peer = transport::peer_of(message);
    switch (worker_.transport().accept(message, reply->receive)) {
        case 1:
            execute(*reply, header, peer);
            break;
        case 0:
            ++queue.under_way;
            break;
        default:  // its session ended
            replies_.release(reply);
    }
    return true;
}

// A long one is here.
void RemoteMemory::atomic_done(Reply& reply, const IncomingMessage& message, int status) noexcept {
    const PeerId peer = transport::peer_of(message);
    if (status == 0) {
        execute(reply, transport::header_of(message), peer);
    } else {
        replies_.release(&reply);
    }
    one_ended(peer);
}

void RemoteMemory::execute(Reply& reply, const MessageHeader& header, PeerId peer) noexcept {
    const auto& request = *reinterpret_cast<const wire::AtomicRequest*>(reply.request);
    reply.send.header = {request.id, 0, 0, MessageKind::kAtomicReply, 0};
    reply.send.iov_count = 0;
    Region* region = nullptr;
    if (const int error = execute(reply, header, request, &region); error != 0) [[unlikely]] {
        refuse_request(reply, error);
    } else {
        ++counters_.atomics;
        if (request.form == static_cast<uint8_t>(wire::AtomicForm::kBase)) {
            reply.endpoint->count(Counted::kRemoteWrite, 0);
            region->count_write();
        } else {
            count_read(*reply.endpoint, region);
        }
    }
    send_reply(reply, peer);
}

// 0, or the positive errno of the refusal: nothing was touched then.
int RemoteMemory::execute(Reply& reply, const MessageHeader& header,
                          const wire::AtomicRequest& request, Region** region) noexcept {
    const auto datatype = static_cast<tw_datatype>(request.datatype);
    const auto op = static_cast<tw_op>(request.operation);
    const auto form = static_cast<wire::AtomicForm>(request.form);
    if (!is_atomic(datatype, op, form)) {
        return EOPNOTSUPP;
    }
    const uint64_t size = size_of(datatype);
    const uint64_t length = request.count * size;
    const uint64_t operands = op == TW_ATOMIC_READ                 ? 0
                              : form == wire::AtomicForm::kCompare ? 2 * length
                                                                   : length;
    if (request.count == 0 || length > TW_ATOMIC_SIZE ||
        header.length != sizeof(request) + operands) {
        return EPROTO;
    }
    uint64_t access = form == wire::AtomicForm::kBase ? 0 : TW_REMOTE_READ;
    access |= op == TW_ATOMIC_READ ? 0 : TW_REMOTE_WRITE;
    if (const int error = find_region(header.tag, header.data, length, access, region);
        error != 0) {
        return error;
    }
    iovec pieces[TW_IOV_LIMIT];
    const uint32_t count = (*region)->pieces(header.data, length, pieces);
    for (uint32_t i = 0; i < count; ++i) {
        if (reinterpret_cast<uint64_t>(pieces[i].iov_base) % size != 0 ||
            pieces[i].iov_len % size != 0) {
            return EINVAL;
        }
    }
    AtomicOperands at{reply.request + sizeof(request), reply.request + sizeof(request) + length,
                      reply.result};
    for (uint32_t i = 0; i < count; ++i) {
        execute_atomic(datatype, op, pieces[i].iov_base, pieces[i].iov_len / size, at);
        at.operand += pieces[i].iov_len;
        at.compare += pieces[i].iov_len;
        at.result += pieces[i].iov_len;
    }
    if (form != wire::AtomicForm::kBase) {
        reply.send.header.length = length;
        reply.send.iov[0] = {reply.result, length};
        reply.send.iov_count = 1;
    }
    return 0;
}

void RemoteMemory::count_read(Endpoint& endpoint, Region* region) noexcept {
    endpoint.count(Counted::kRemoteRead, 0);
    if (region != nullptr) {
        region->count_read();
    }
}

// The reply says why.
void RemoteMemory::refuse_request(Reply& reply, int error) noexcept {
    count_refusal(error);
    reply.send.header.data = static_cast<uint64_t>(error);
    reply.send.header.length = 0;
    reply.send.header.flags = transport::kHasData;
}

void RemoteMemory::send_reply(Reply& reply, PeerId peer) noexcept {
    reply.send.user = &reply;
    reply.endpoint->operation_began();
    worker_.answered();
    if (worker_.transport().send(peer, reply.send) != 0) [[unlikely]] {
        reply_sent(reply, -ECANCELED);  // the session closes, and the request with it
    }
}

void RemoteMemory::reply_sent(Reply& reply, int) noexcept {
    reply.endpoint->operation_ended();
    if (reply.region != nullptr) {
        unlink(reply);
    }
    if (reply.rescued != nullptr) [[unlikely]] {
        std::free(std::exchange(reply.rescued, nullptr));
    }
    replies_.release(&reply);
}

void RemoteMemory::link(Reply& reply) noexcept {
    reply.previous = nullptr;
    reply.next = reply.region->replies;
    if (reply.next != nullptr) {
        reply.next->previous = &reply;
    }
    reply.region->replies = &reply;
}

void RemoteMemory::unlink(Reply& reply) noexcept {
    (reply.previous != nullptr ? reply.previous->next : reply.region->replies) = reply.next;
    if (reply.next != nullptr) {
        reply.next->previous = reply.previous;
    }
}

}  // namespace tagwire
