// SPDX-License-Identifier: BSD-3-Clause
#include "lib/ucp/memory.h"
#include "lib/ucp/remote.h"
#include "lib/ucp/status.h"

namespace tagwire::ucp {
namespace {

using CoreCall = int (*)(tw_ep*, const tw_msg_rma*, uint64_t);

// As many operations of the core as the length takes.
int post(Request& request, CoreCall call, uint64_t flags) {
    Worker& worker = *request.worker;
    Peer& peer = *request.endpoint->peer();
    return post_parts(request, request.payload.length(), [&](size_t part) {
        iovec pieces[Payload::kPieces];
        const tw_rma_iov target{request.remote_address + request.posted, part, request.remote_key};
        tw_msg_rma message{};
        message.iov = pieces;
        message.iov_count = request.payload.cut(request.posted, part, pieces);
        message.addr = peer.channel_address;
        message.rma_iov = &target;
        message.rma_iov_count = 1;
        message.context = static_cast<Operation*>(&request);
        const int error =
            call(worker.channel_endpoint(), &message, flags | fence_flag(worker, peer));
        if (error == 0) {
            fence_observed(worker, peer);
        }
        return error;
    });
}

int post_put(Request& request) {
    return post(request, tw_writemsg, kRemoteFlags);
}

int post_get(Request& request) {
    return post(request, tw_readmsg, TW_COMPLETION);
}

// Of an operation in several parts, one that is refused must not be the last: what the key says
// of its memory is looked at before the first.
ucs_status_t check_parts(const Request& request, const ucp_rkey& rkey) {
    const size_t length = request.payload.length();
    const uint64_t offset = request.remote_address - rkey.address;
    const bool outside = offset > rkey.length || length > rkey.length - offset;
    return length > kLargestPart && outside ? UCS_ERR_OUT_OF_RANGE : UCS_OK;
}

// Leaves at once as a copy. An error of the target comes with the next flush.
bool put_short(Endpoint& endpoint, const void* buffer, size_t length, uint64_t address,
               const ucp_rkey& rkey) {
    const iovec piece{const_cast<void*>(buffer), length};
    const tw_rma_iov target{address, length, rkey.key};
    tw_msg_rma message{};
    message.iov = &piece;
    message.iov_count = 1;
    message.addr = endpoint.peer()->channel_address;
    message.rma_iov = &target;
    message.rma_iov_count = 1;
    message.context = static_cast<Operation*>(&endpoint.short_send());
    Worker& worker = endpoint.worker();
    const uint64_t fence = fence_flag(worker, *endpoint.peer());
    if (tw_writemsg(worker.channel_endpoint(), &message, TW_INJECT | kRemoteFlags | fence) == 0) {
        fence_observed(worker, *endpoint.peer());
        return true;
    }
    endpoint.short_send_failed();
    return false;
}

ucs_status_ptr_t begin(Endpoint& endpoint, void* buffer, size_t count, uint64_t address,
                       const ucp_rkey& rkey, const Call& call, Request::Post post) {
    Worker& worker = endpoint.worker();
    Request* request = new_request(worker, call, Request::Type::kRemote);
    if (request == nullptr) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    ucs_status_t status = post == post_get
                              ? request->payload.open_receive(buffer, count, call.datatype)
                              : request->payload.open_send(buffer, count, call.datatype);
    if (status == UCS_OK && request->payload.length() != 0) {
        request->remote_address = address;
        request->remote_key = rkey.key;
        request->post = post;
        status = check_parts(*request, rkey);
        status = status == UCS_OK ? endpoint.submit(*request) : status;
    }
    return answer(*request, call, status);
}

}  // namespace

ucs_status_ptr_t put(Endpoint& endpoint, const void* buffer, size_t count, uint64_t address,
                     const ucp_rkey& rkey, const Call& call, bool wants_request) {
    if (!endpoint.worker().context().has(UCP_FEATURE_RMA)) [[unlikely]] {
        return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
    }
    const bool contiguous = (call.datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_CONTIG;
    const size_t length = count * (call.datatype >> UCP_DATATYPE_SHIFT);
    if (contiguous && length != 0 && length <= TW_INJECT_SIZE && buffer != nullptr &&
        call.may_complete_now() && !wants_request && endpoint.direct() &&
        put_short(endpoint, buffer, length, address, rkey)) [[likely]] {
        return nullptr;
    }
    return begin(endpoint, const_cast<void*>(buffer), count, address, rkey, call, post_put);
}

ucs_status_ptr_t get(Endpoint& endpoint, void* buffer, size_t count, uint64_t address,
                     const ucp_rkey& rkey, const Call& call) {
    if (!endpoint.worker().context().has(UCP_FEATURE_RMA)) [[unlikely]] {
        return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
    }
    return begin(endpoint, buffer, count, address, rkey, call, post_get);
}

}  // namespace tagwire::ucp

using namespace tagwire::ucp;

namespace {

Call plain_call(ucp_send_callback_t callback) {
    Call call;
    if (callback != nullptr) {
        call.callback.kind = Callback::Kind::kSend;
        call.callback.send = callback;
    }
    return call;
}

// The program does not hear of the end but by a flush.
ucs_status_t implicit(ucs_status_ptr_t request) {
    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_RAW_STATUS(request);
    }
    Request::of(request).implicit = true;
    ucp_request_free(request);
    return UCS_INPROGRESS;
}

}  // namespace

ucs_status_t ucp_put_nbi(ucp_ep_h ep, const void* buffer, size_t length, uint64_t address,
                         ucp_rkey_h rkey) {
    const Worker::Guard guard(ep->worker());
    return implicit(put(*ep, buffer, length, address, *rkey, Call{}, false));
}

ucs_status_ptr_t ucp_put_nb(ucp_ep_h ep, const void* buffer, size_t length, uint64_t address,
                            ucp_rkey_h rkey, ucp_send_callback_t callback) {
    const Worker::Guard guard(ep->worker());
    return put(*ep, buffer, length, address, *rkey, plain_call(callback), false);
}

ucs_status_ptr_t ucp_put_nbx(ucp_ep_h ep, const void* buffer, size_t count, uint64_t address,
                             ucp_rkey_h rkey, const ucp_request_param_t* param) {
    const Worker::Guard guard(ep->worker());
    return put(*ep, buffer, count, address, *rkey, call_of(param, Callback::Kind::kSendX), false);
}

ucs_status_t ucp_get_nbi(ucp_ep_h ep, void* buffer, size_t length, uint64_t address,
                         ucp_rkey_h rkey) {
    const Worker::Guard guard(ep->worker());
    return implicit(get(*ep, buffer, length, address, *rkey, Call{}));
}

ucs_status_ptr_t ucp_get_nb(ucp_ep_h ep, void* buffer, size_t length, uint64_t address,
                            ucp_rkey_h rkey, ucp_send_callback_t callback) {
    const Worker::Guard guard(ep->worker());
    return get(*ep, buffer, length, address, *rkey, plain_call(callback));
}

ucs_status_ptr_t ucp_get_nbx(ucp_ep_h ep, void* buffer, size_t count, uint64_t address,
                             ucp_rkey_h rkey, const ucp_request_param_t* param) {
    const Worker::Guard guard(ep->worker());
    return get(*ep, buffer, count, address, *rkey, call_of(param, Callback::Kind::kSendX));
}

ucs_status_t ucp_worker_fence(ucp_worker_h worker) {
    const Worker::Guard guard(*worker);
    worker->begin_fence();
    return UCS_OK;
}
