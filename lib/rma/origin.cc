// SPDX-License-Identifier: BSD-3-Clause
// Puts and gets are posted. A call takes full effect or none: everything that can refuse
// it comes before the first message. What reaches for several places of the target is
// made of parts, each with a message of its own.
#include <cassert>
#include <utility>

#include "lib/rma/remote_memory.h"
#include "lib/tagwire/error.h"
#include "lib/tagwire/iov.h"
#include "lib/transport/scatter.h"

namespace tagwire {

using transport::MessageKind;
using transport::SendOperation;

namespace {

constexpr const char* kNotEnabled = "the endpoint is not enabled: call tw_ep_enable first";

}  // namespace

// The next `wanted` bytes of the caller's buffers. Returns the number of pieces.
uint32_t RemoteMemory::Local::take(uint64_t wanted, iovec* to) {
    uint32_t pieces = 0;
    while (wanted > 0) {
        iovec& from = iov[at];
        const uint64_t part = std::min<uint64_t>(wanted, from.iov_len);
        to[pieces++] = {from.iov_base, part};
        from.iov_base = static_cast<uint8_t*>(from.iov_base) + part;
        from.iov_len -= part;
        wanted -= part;
        at += from.iov_len == 0;
    }
    return pieces;
}

int RemoteMemory::check(const RmaCall& call, Local& local) noexcept {
    if (const int error = take_iov(call.iov, call.count, local.iov, &local.count, &local.length);
        error != 0) [[unlikely]] {
        return error;
    }
    if (call.remote == nullptr || call.remote_count == 0 || call.remote_count > TW_IOV_LIMIT)
        [[unlikely]] {
        return refuse(EINVAL, "rma_iov has 1 to TW_IOV_LIMIT (8) entries");
    }
    uint64_t remote = 0;
    for (size_t i = 0; i < call.remote_count; ++i) {
        if (__builtin_add_overflow(remote, call.remote[i].length, &remote)) [[unlikely]] {
            return refuse(EINVAL, "the lengths of rma_iov exceed the address space");
        }
    }
    if (remote != local.length) [[unlikely]] {
        return refuse(EINVAL, "rma_iov is as long in all as iov");
    }
    if (local.length > TW_MAX_MESSAGE_SIZE) [[unlikely]] {
        return refuse(EMSGSIZE, "a put or get has at most TW_MAX_MESSAGE_SIZE (2^32 - 2^16) bytes");
    }
    return 0;
}

// The peer, a request and its place in the completion queue.
int RemoteMemory::begin(Endpoint& endpoint, tw_addr address, size_t requests, PeerId* peer,
                        RmaRequest** request) noexcept {
    if (!endpoint.enabled()) [[unlikely]] {
        return refuse(TW_EOPBADSTATE, kNotEnabled);
    }
    if (const int error = endpoint.peer_for(address, peer); error != 0) [[unlikely]] {
        return error;
    }
    return begin(endpoint, requests, request);
}

// The first of as many requests.
int RemoteMemory::begin(Endpoint& endpoint, size_t requests, RmaRequest** request) noexcept {
    if (!endpoint.enabled()) [[unlikely]] {
        return refuse(TW_EOPBADSTATE, kNotEnabled);
    }
    if (requests_.capacity() - requests_.in_use() < requests) [[unlikely]] {
        return refuse(EAGAIN,
                      "max_operations are outstanding: call tw_progress and read completions");
    }
    if (!endpoint.send_queue().reserve()) [[unlikely]] {
        return refuse(
            EAGAIN,
            "the completion queue has no room for another operation: read it, or open it larger");
    }
    RmaRequest& taken = *requests_.acquire();
    taken.endpoint = &endpoint;
    taken.parent = nullptr;
    taken.parts = 0;
    taken.status = 0;
    taken.completed = taken.receiving = taken.answered = taken.sent = false;
    *request = &taken;
    return 0;
}

RmaRequest& RemoteMemory::part_of(RmaRequest& request) noexcept {
    RmaRequest& part = *requests_.acquire();  // begin() has seen that there are enough
    part.endpoint = request.endpoint;
    part.parent = &request;
    part.status = 0;
    part.completed = part.receiving = part.answered = part.sent = false;
    ++request.parts;
    return part;
}

void RemoteMemory::release(RmaRequest& request) noexcept {
    ++request.sequence;
    request.waits = false;
    if (request.operands != nullptr) [[unlikely]] {
        operands_.release(std::exchange(request.operands, nullptr));
    }
    requests_.release(&request);
}

int RemoteMemory::start(RmaRequest& request, PeerId peer) noexcept {
    request.peer = peer;
    request.send.user = &request;
    const int error = worker_.transport().send(peer, request.send);
    return error == 0 ? 0
                      : refuse(-error, error == -EAGAIN
                                           ? "the peer's session closes: call tw_progress and try "
                                             "again"
                                           : "the transport refused the message");
}

// Nothing was sent for it.
int RemoteMemory::abandon(RmaRequest& part, int error) noexcept {
    RmaRequest& request = part.parent != nullptr ? *part.parent : part;
    assert(request.parts <= 1);
    request.endpoint->send_queue().unreserve();
    if (&part != &request) {
        release(part);
    }
    release(request);
    return error;
}

int RemoteMemory::put(Endpoint& endpoint, const RmaCall& call) noexcept {
    Local local;
    if (const int error = check(call, local); error != 0) [[unlikely]] {
        return error;
    }
    const bool injects = (call.flags & TW_INJECT) != 0;
    if (injects && local.length > TW_INJECT_SIZE) [[unlikely]] {
        return refuse(EINVAL, "an injected put has at most TW_INJECT_SIZE (256) bytes");
    }
    PeerId peer;
    RmaRequest* request;
    if (const int error =
            begin(endpoint, call.peer, requests_for(call.remote_count), &peer, &request);
        error != 0) [[unlikely]] {
        return error;
    }
    describe(*request, call.context, call.flags, TW_RMA | TW_WRITE);
    request->buffer = local.count != 0 ? local.iov[0].iov_base : nullptr;
    request->length = local.length;
    if (injects && local.length != 0) {
        transport::gather(local.iov, 0, request->copy, static_cast<uint32_t>(local.length));
        local.iov[0] = {request->copy, local.length};
        local.count = 1;
    }
    for (size_t i = 0; i < call.remote_count; ++i) {
        RmaRequest& part = call.remote_count == 1 ? *request : part_of(*request);
        const tw_rma_iov& remote = call.remote[i];
        SendOperation& send = part.send;
        send.header = {remote.key, remote.address, remote.length, MessageKind::kPut,
                       transport::kWantsDeliveryNote};
        send.iov_count = 0;
        if ((call.flags & TW_REMOTE_CQ_DATA) != 0 && i + 1 == call.remote_count) {
            *reinterpret_cast<wire::PutData*>(part.head) = {call.data};
            send.iov[send.iov_count++] = {part.head, sizeof(wire::PutData)};
            send.header.length += sizeof(wire::PutData);
            send.header.flags |= transport::kHasData;
        }
        if ((call.flags & TW_FENCE) != 0 && i == 0) {
            send.header.flags |= transport::kFence;
        }
        send.iov_count += local.take(remote.length, send.iov + send.iov_count);
        if (const int error = start(part, peer); error != 0) [[unlikely]] {
            return abandon(part, error);
        }
    }
    endpoint.operation_began();
    complete_at_once(*request, call.flags);
    return 0;
}

int RemoteMemory::get(Endpoint& endpoint, const RmaCall& call) noexcept {
    Local local;
    if (const int error = check(call, local); error != 0) [[unlikely]] {
        return error;
    }
    PeerId peer;
    RmaRequest* request;
    if (const int error =
            begin(endpoint, call.peer, requests_for(call.remote_count), &peer, &request);
        error != 0) [[unlikely]] {
        return error;
    }
    describe(*request, call.context, call.flags, TW_RMA | TW_READ);
    request->buffer = local.count != 0 ? local.iov[0].iov_base : nullptr;
    request->length = local.length;
    for (size_t i = 0; i < call.remote_count; ++i) {
        RmaRequest& part = call.remote_count == 1 ? *request : part_of(*request);
        const tw_rma_iov& remote = call.remote[i];
        part.receive.iov_count = local.take(remote.length, part.receive.iov);
        part.receive.capacity = remote.length;
        *reinterpret_cast<wire::GetRequest*>(part.head) = {
            await_reply(part), static_cast<uint32_t>(remote.length), 0u};
        part.send.header = {remote.key, remote.address, sizeof(wire::GetRequest),
                            MessageKind::kGetRequest, transport::kWantsAnswer};
        if ((call.flags & TW_FENCE) != 0 && i == 0) {
            part.send.header.flags |= transport::kFence;
        }
        part.send.iov[0] = {part.head, sizeof(wire::GetRequest)};
        part.send.iov_count = 1;
        if (const int error = start(part, peer); error != 0) [[unlikely]] {
            return abandon(part, error);
        }
    }
    endpoint.operation_began();
    return 0;
}

void RemoteMemory::describe(RmaRequest& request, void* context, uint64_t flags,
                            uint64_t completion) noexcept {
    request.context = context;
    request.flags = completion;
    request.silent = (flags & TW_COMPLETION) == 0;
    request.counted = (completion & TW_READ) != 0 ? Counted::kRead : Counted::kWrite;
}

// The id that the reply repeats.
uint64_t RemoteMemory::await_reply(RmaRequest& request) noexcept {
    request.waits = true;
    request.receive.user = &request;
    return uint64_t{request.sequence ^ salt_} << 32 | requests_.index_of(&request);
}

// fi_cq(3): an inject completion may come before the data is on the network.
void RemoteMemory::complete_at_once(RmaRequest& request, uint64_t flags) noexcept {
    constexpr uint64_t kAtOnce = TW_INJECT | TW_INJECT_COMPLETE;
    if ((flags & kAtOnce) == kAtOnce && !request.silent) [[unlikely]] {
        write(request, 0);
        request.completed = true;
    }
}

}  // namespace tagwire
