// SPDX-License-Identifier: BSD-3-Clause
// Streams: bytes in order between two endpoints, in pieces of the channel. What no receive
// took yet stays in the blocks that it came in, or in a copy when it is little.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lib/ucp/am.h"
#include "lib/ucp/endpoint.h"
#include "lib/ucp/worker.h"

namespace tagwire::ucp {
namespace {

constexpr size_t kWorthABlock = kMaxEager / 4;

// As much as the core takes; the rest after progress.
int post(Request& request) {
    Meta meta;
    meta.kind = Meta::Kind::kStream;
    meta.destination = request.endpoint->destination();
    while (request.offset < request.payload.length()) {
        iovec pieces[Payload::kPieces];
        const size_t length =
            std::min(kMaxEager, request.payload.length() - static_cast<size_t>(request.offset));
        const size_t count = request.payload.cut(request.offset, length, pieces);
        Channel& channel = request.worker->channel();
        const bool is_short = length <= TW_INJECT_SIZE && request.endpoint->peer()->reached;
        const int error = is_short ? channel.send_short(*request.endpoint, meta, pieces, count)
                                   : channel.send(request, meta, pieces, count);
        if (error != 0) {
            return error;
        }
        request.offset += length;
    }
    request.post = nullptr;
    return request.parts == 0 ? 1 : 0;
}

ucs_status_ptr_t send(Endpoint& endpoint, const void* buffer, size_t count, const Call& call) {
    Worker& worker = endpoint.worker();
    if (!worker.context().has(UCP_FEATURE_STREAM)) {
        return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
    }
    Request* request = new_request(worker, call, Request::Type::kSend);
    if (request == nullptr) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    ucs_status_t status = request->payload.open_send(buffer, count, call.datatype);
    if (status == UCS_OK) {
        request->post = post;
        status = endpoint.submit(*request);
    }
    return answer(*request, call, status);
}

}  // namespace

char* StreamChunk::data() const {
    return (block != nullptr ? static_cast<char*>(block->data()) : bytes.get()) + offset;
}

// True: the block is kept.
bool Endpoint::stream_arrived(Block& block, size_t length) {
    const bool keeps = length >= kWorthABlock;
    if (length == 0) {
        return false;
    }
    StreamChunk chunk{keeps ? &block : nullptr, nullptr, 0, length};
    if (!keeps) {
        chunk.bytes = std::make_unique<char[]>(length);
        std::memcpy(chunk.bytes.get(), block.data(), length);
    }
    chunks_.push_back(std::move(chunk));
    while (!stream_receives_.empty() && stream_feed(*stream_receives_.front())) {
        Request& request = *stream_receives_.front();
        stream_receives_.pop_front();
        finish(request, UCS_OK);
    }
    if (has_bytes() && !listed_) {
        listed_ = true;
        worker_.readable().push_back(this);
    }
    return keeps;
}

size_t Endpoint::stream_available(size_t enough) const {
    size_t available = 0;
    for (const StreamChunk& chunk : chunks_) {
        available += chunk.length;
        if (available >= enough) {
            break;
        }
    }
    return available;
}

void Endpoint::stream_consume(size_t length) {
    while (length != 0) {
        StreamChunk& chunk = chunks_.front();
        const size_t part = std::min(length, chunk.length);
        chunk.offset += part;
        chunk.length -= part;
        length -= part;
        if (chunk.length == 0) {
            if (chunk.block != nullptr) {
                // It may be the one that the channel is delivering now: stream_arrived keeps it.
                delete_block(chunk.block);
            }
            chunks_.pop_front();
        }
    }
}

// True: the receive has what it asked for. Elements of the datatype are not torn apart.
bool Endpoint::stream_feed(Request& request) {
    const size_t room = request.payload.length() - static_cast<size_t>(request.offset);
    const bool all = (request.flags & UCP_STREAM_RECV_FLAG_WAITALL) != 0;
    size_t length = std::min(room, stream_available(room));
    if (request.payload.is_generic() && !all && length != 0) {
        // As in UCX: a datatype of the program's own unpacks what one send packed.
        length = std::min(length, chunks_.front().length);
    }
    if (!all && request.payload.element() != 0) {
        length -= length % request.payload.element();
    }
    for (size_t left = length; left != 0;) {
        const size_t part = std::min(left, chunks_.front().length);
        request.payload.place(request.offset, chunks_.front().data(), part);
        stream_consume(part);
        request.offset += part;
        left -= part;
    }
    request.info.length = request.offset;
    return all ? request.offset == request.payload.length()
               : request.offset != 0 || request.payload.length() == 0;
}

ucs_status_ptr_t Endpoint::stream_receive(void* buffer, size_t count, size_t* length,
                                          const Call& call) {
    if (!worker_.context().has(UCP_FEATURE_STREAM)) {
        return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
    }
    Request* request = new_request(worker_, call, Request::Type::kStreamReceive);
    if (request == nullptr) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    const ucs_status_t status = request->payload.open_receive(buffer, count, call.datatype);
    if (status != UCS_OK) {
        drop_request(*request, call);
        return UCS_STATUS_PTR(status);
    }
    request->endpoint = this;
    if (stream_receives_.empty() && stream_feed(*request)) {
        if (length != nullptr) {
            *length = request->info.length;
        }
        if (!has_bytes() && listed_) {
            listed_ = false;
            std::erase(worker_.readable(), this);
        }
        return end_at_once(*request, call, UCS_OK);
    }
    if (failure_ != UCS_OK) {
        drop_request(*request, call);
        return UCS_STATUS_PTR(failure_);
    }
    stream_receives_.push_back(request);
    return request->user();
}

ucs_status_ptr_t Endpoint::stream_take(size_t* length) {
    if (!worker_.context().has(UCP_FEATURE_STREAM)) {
        return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
    }
    if (chunks_.empty()) {
        return failure_ != UCS_OK ? UCS_STATUS_PTR(failure_) : nullptr;
    }
    void* data = chunks_.front().data();
    *length = chunks_.front().length;
    lent_.emplace(data, std::move(chunks_.front()));
    chunks_.pop_front();
    if (chunks_.empty() && listed_) {
        listed_ = false;
        std::erase(worker_.readable(), this);
    }
    return data;
}

void Endpoint::stream_release(void* data) {
    const auto found = lent_.find(data);
    if (found == lent_.end()) {
        return;
    }
    if (found->second.block != nullptr) {
        delete_block(found->second.block);
    }
    lent_.erase(found);
}

void Endpoint::fail_receives(ucs_status_t status) {
    std::deque<Request*> receives;
    receives.swap(stream_receives_);
    for (Request* request : receives) {
        finish(*request, status);
    }
}

}  // namespace tagwire::ucp

using namespace tagwire::ucp;

ucs_status_ptr_t ucp_stream_send_nb(ucp_ep_h ep, const void* buffer, size_t count,
                                    ucp_datatype_t datatype, ucp_send_callback_t callback,
                                    unsigned flags) {
    const Worker::Guard guard(ep->worker());
    if (flags != 0) {
        return UCS_STATUS_PTR(UCS_ERR_NOT_IMPLEMENTED);
    }
    Call call;
    call.datatype = datatype;
    if (callback != nullptr) {
        call.callback.kind = Callback::Kind::kSend;
        call.callback.send = callback;
    }
    return send(*ep, buffer, count, call);
}

ucs_status_ptr_t ucp_stream_send_nbx(ucp_ep_h ep, const void* buffer, size_t count,
                                     const ucp_request_param_t* param) {
    const Worker::Guard guard(ep->worker());
    return send(*ep, buffer, count, call_of(param, Callback::Kind::kSendX));
}

ucs_status_ptr_t ucp_stream_recv_nb(ucp_ep_h ep, void* buffer, size_t count,
                                    ucp_datatype_t datatype, ucp_stream_recv_callback_t callback,
                                    size_t* length, unsigned flags) {
    const Worker::Guard guard(ep->worker());
    Call call;
    call.datatype = datatype;
    call.flags = flags;
    if (callback != nullptr) {
        call.callback.kind = Callback::Kind::kStream;
        call.callback.stream = callback;
    }
    return ep->stream_receive(buffer, count, length, call);
}

ucs_status_ptr_t ucp_stream_recv_nbx(ucp_ep_h ep, void* buffer, size_t count, size_t* length,
                                     const ucp_request_param_t* param) {
    const Worker::Guard guard(ep->worker());
    return ep->stream_receive(buffer, count, length, call_of(param, Callback::Kind::kStreamX));
}

ucs_status_ptr_t ucp_stream_recv_data_nb(ucp_ep_h ep, size_t* length) {
    const Worker::Guard guard(ep->worker());
    return ep->stream_take(length);
}

void ucp_stream_data_release(ucp_ep_h ep, void* data) {
    const Worker::Guard guard(ep->worker());
    ep->stream_release(data);
}

ssize_t ucp_stream_worker_poll(ucp_worker_h worker, ucp_stream_poll_ep_t* polled, size_t max,
                               unsigned /* flags: none defined */) {
    const Worker::Guard guard(*worker);
    std::deque<Endpoint*>& readable = worker->readable();
    ssize_t count = 0;
    for (size_t left = readable.size(); left != 0 && static_cast<size_t>(count) < max; --left) {
        Endpoint* endpoint = readable.front();
        readable.pop_front();
        if (endpoint->is_internal()) {
            readable.push_back(endpoint);  // the program will see it when it has made its own
            continue;
        }
        endpoint->unlist();
        polled[count++] = {static_cast<ucp_ep*>(endpoint), endpoint->user_data(), 0, {}};
    }
    return count;
}
