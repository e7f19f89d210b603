// SPDX-License-Identifier: BSD-3-Clause
#include <cerrno>

#include "lib/ucp/status.h"
#include "lib/ucp/tag.h"

namespace tagwire::ucp {
namespace {

constexpr uint32_t kSynchronous = 1;  // Request::flags

int post(Request& request) {
    Endpoint& endpoint = *request.endpoint;
    tw_msg_tagged message{};
    message.iov = request.payload.pieces();
    message.iov_count = request.payload.piece_count();
    message.addr = endpoint.peer()->tag_address;
    message.tag = request.tag;
    message.context = static_cast<Operation*>(&request);
    const uint64_t level = (request.mask & kSynchronous) != 0 ? TW_MATCH_COMPLETE : 0;
    const int error = tw_tsendmsg(request.worker->tag_endpoint(), &message, TW_COMPLETION | level);
    if (error == 0) {
        request.parts = 1;
        request.post = nullptr;
    }
    return error;
}

// A short message leaves as a copy: nothing to wait for, and no request. 0, or a negative errno.
int send_short(Endpoint& endpoint, const void* buffer, size_t length, uint64_t tag) {
    const iovec piece{const_cast<void*>(buffer), length};
    tw_msg_tagged message{};
    message.iov = &piece;
    message.iov_count = length != 0 ? 1 : 0;
    message.addr = endpoint.peer()->tag_address;
    message.tag = tag;
    message.context = static_cast<Operation*>(&endpoint.short_send());
    const int error =
        tw_tsendmsg(endpoint.worker().tag_endpoint(), &message, TW_INJECT | TW_COMPLETION);
    if (error != 0) [[unlikely]] {
        endpoint.short_send_failed();
    }
    return error;
}

// A short message to a peer that has not answered yet: its copy is on the way, but it is complete
// when there is somebody to take it. The turn that found that out has sent it.
int post_early(Request& request) {
    Peer& peer = *request.endpoint->peer();
    if (request.posted == 0) {
        const iovec& piece = *request.payload.pieces();
        const int error = send_short(*request.endpoint, piece.iov_base, piece.iov_len, request.tag);
        if (error != 0) {
            return error;
        }
        request.posted = 1;
    }
    if (!peer.reached && tw_ep_peer_is_up(request.worker->tag_endpoint(), peer.tag_address) <= 0) {
        return -EAGAIN;
    }
    peer.reached = true;
    request.post = nullptr;
    return 1;
}

ucs_status_ptr_t send(Endpoint& endpoint, const void* buffer, size_t count, uint64_t tag,
                      const Call& call, uint32_t mode) {
    Worker& worker = endpoint.worker();
    if (!worker.context().has(UCP_FEATURE_TAG)) [[unlikely]] {
        return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
    }
    const bool contiguous = (call.datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_CONTIG;
    const size_t length = count * (call.datatype >> UCP_DATATYPE_SHIFT);
    const bool is_short = contiguous && length <= TW_INJECT_SIZE && mode == 0;
    if (is_short && call.may_complete_now() && endpoint.direct() &&
        (buffer != nullptr || length == 0) && send_short(endpoint, buffer, length, tag) == 0)
        [[likely]] {
        return nullptr;
    }
    if ((call.mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL) != 0) {
        return UCS_STATUS_PTR(endpoint.failure() != UCS_OK ? endpoint.failure()
                                                           : UCS_ERR_NO_RESOURCE);
    }
    Request* request = new_request(worker, call, Request::Type::kSend);
    if (request == nullptr) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    ucs_status_t status = request->payload.open_send(buffer, count, call.datatype);
    if (status == UCS_OK) {
        request->tag = tag;
        request->mask = mode;
        request->post = is_short && !endpoint.is_reached() ? post_early : post;
        status = endpoint.submit(*request);
    }
    return answer(*request, call, status);
}

Call plain_call(ucp_datatype_t datatype, ucp_send_callback_t callback) {
    Call call;
    call.datatype = datatype;
    if (callback != nullptr) {
        call.callback.kind = Callback::Kind::kSend;
        call.callback.send = callback;
    }
    return call;
}

}  // namespace
}  // namespace tagwire::ucp

using namespace tagwire::ucp;

ucs_status_ptr_t ucp_tag_send_nb(ucp_ep_h ep, const void* buffer, size_t count,
                                 ucp_datatype_t datatype, ucp_tag_t tag,
                                 ucp_send_callback_t callback) {
    const Worker::Guard guard(ep->worker());
    return send(*ep, buffer, count, tag, plain_call(datatype, callback), 0);
}

ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h ep, const void* buffer, size_t count, ucp_tag_t tag,
                                  const ucp_request_param_t* param) {
    const Worker::Guard guard(ep->worker());
    return send(*ep, buffer, count, tag, call_of(param, Callback::Kind::kSendX), 0);
}

ucs_status_ptr_t ucp_tag_send_sync_nb(ucp_ep_h ep, const void* buffer, size_t count,
                                      ucp_datatype_t datatype, ucp_tag_t tag,
                                      ucp_send_callback_t callback) {
    const Worker::Guard guard(ep->worker());
    return send(*ep, buffer, count, tag, plain_call(datatype, callback), kSynchronous);
}

ucs_status_ptr_t ucp_tag_send_sync_nbx(ucp_ep_h ep, const void* buffer, size_t count, ucp_tag_t tag,
                                       const ucp_request_param_t* param) {
    const Worker::Guard guard(ep->worker());
    return send(*ep, buffer, count, tag, call_of(param, Callback::Kind::kSendX), kSynchronous);
}

ucs_status_t ucp_tag_send_nbr(ucp_ep_h ep, const void* buffer, size_t count,
                              ucp_datatype_t datatype, ucp_tag_t tag, void* request) {
    const Worker::Guard guard(ep->worker());
    Call call = plain_call(datatype, nullptr);
    call.request = request;
    ucs_status_ptr_t sent = send(*ep, buffer, count, tag, call, 0);
    return UCS_PTR_STATUS(sent);
}
