// SPDX-License-Identifier: BSD-3-Clause
#include <cerrno>
#include <new>

#include "lib/ucp/status.h"
#include "lib/ucp/tag.h"

namespace tagwire::ucp {
namespace {

int post(Request& request) {
    const int error = tw_trecvv(request.worker->tag_endpoint(), request.payload.pieces(),
                                request.payload.piece_count(), TW_ADDR_UNSPEC, request.tag,
                                ~request.mask, static_cast<Operation*>(&request));
    if (error == 0) {
        request.post = nullptr;
    }
    return error;
}

ucs_status_ptr_t receive(Worker& worker, void* buffer, size_t count, uint64_t tag, uint64_t mask,
                         const Call& call) {
    if (!worker.context().has(UCP_FEATURE_TAG)) [[unlikely]] {
        return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
    }
    Request* request = new_request(worker, call, Request::Type::kTagReceive);
    if (request == nullptr) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    if (const ucs_status_t status = request->payload.open_receive(buffer, count, call.datatype);
        status != UCS_OK) {
        drop_request(*request, call);
        return UCS_STATUS_PTR(status);
    }
    request->tag = tag;
    request->mask = mask;
    request->post = post;
    // Receives are matched in the order of these calls.
    const int error = worker.receives_wait() ? -EAGAIN : post(*request);
    if (error == -EAGAIN) [[unlikely]] {
        worker.keep_receive(*request);
        return request->user();
    }
    if (error != 0) {
        drop_request(*request, call);
        return UCS_STATUS_PTR(status_of(error));
    }
    Done done;
    if (!worker.collect(static_cast<Operation*>(request), &done)) {
        return request->user();
    }
    const ucs_status_t status = take_receive(*request, done);
    if (call.info != nullptr) {
        *static_cast<ucp_tag_recv_info_t*>(call.info) = request->info;
    }
    return end_at_once(*request, call, status);
}

Call plain_call(ucp_datatype_t datatype, ucp_tag_recv_callback_t callback) {
    Call call;
    call.datatype = datatype;
    call.always_request = true;
    if (callback != nullptr) {
        call.callback.kind = Callback::Kind::kTag;
        call.callback.tag = callback;
    }
    return call;
}

ucs_status_ptr_t receive_claimed(Worker& worker, void* buffer, size_t count,
                                 ucp_tag_message_h message, const Call& call) {
    Request* request = new_request(worker, call, Request::Type::kTagReceive);
    if (request == nullptr) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    ucs_status_t status = request->payload.open_receive(buffer, count, call.datatype);
    if (status == UCS_OK) {
        tw_msg_tagged claim{};
        claim.iov = request->payload.pieces();
        claim.iov_count = request->payload.piece_count();
        claim.addr = TW_ADDR_UNSPEC;
        claim.context = &message->context;
        status = status_of(tw_trecvmsg(worker.tag_endpoint(), &claim, TW_CLAIM | TW_COMPLETION));
    }
    if (status != UCS_OK) {
        drop_request(*request, call);
        return UCS_STATUS_PTR(status);
    }
    auto* claimed = new (&message->context) Claimed;
    claimed->kind = Operation::Kind::kClaimed;
    claimed->request = request;
    Done done;
    if (!worker.collect(claimed, &done)) {
        return request->user();
    }
    delete message;
    status = take_receive(*request, done);
    if (call.info != nullptr) {
        *static_cast<ucp_tag_recv_info_t*>(call.info) = request->info;
    }
    return end_at_once(*request, call, status);
}

}  // namespace

ucs_status_t take_receive(Request& request, const Done& done) {
    request.info.sender_tag = done.tag;
    request.info.length = done.message_length;
    if (done.error != 0) [[unlikely]] {
        return status_of(done.error);
    }
    return request.payload.deliver(done.length);
}

void end_tag_receive(Request& request, const Done& done) {
    finish(request, take_receive(request, done));
}

void end_claimed(Operation& operation, const Done& done) {
    Request& request = *static_cast<Claimed&>(operation).request;
    delete reinterpret_cast<ucp_recv_desc*>(&operation);
    finish(request, take_receive(request, done));
}

}  // namespace tagwire::ucp

using namespace tagwire::ucp;

ucs_status_ptr_t ucp_tag_recv_nb(ucp_worker_h worker, void* buffer, size_t count,
                                 ucp_datatype_t datatype, ucp_tag_t tag, ucp_tag_t mask,
                                 ucp_tag_recv_callback_t callback) {
    const Worker::Guard guard(*worker);
    return receive(*worker, buffer, count, tag, mask, plain_call(datatype, callback));
}

ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void* buffer, size_t count, ucp_tag_t tag,
                                  ucp_tag_t mask, const ucp_request_param_t* param) {
    const Worker::Guard guard(*worker);
    return receive(*worker, buffer, count, tag, mask, call_of(param, Callback::Kind::kTagX));
}

ucs_status_t ucp_tag_recv_nbr(ucp_worker_h worker, void* buffer, size_t count,
                              ucp_datatype_t datatype, ucp_tag_t tag, ucp_tag_t mask,
                              void* request) {
    const Worker::Guard guard(*worker);
    Call call = plain_call(datatype, nullptr);
    call.request = request;
    ucs_status_ptr_t posted = receive(*worker, buffer, count, tag, mask, call);
    return UCS_PTR_IS_ERR(posted) ? UCS_PTR_RAW_STATUS(posted) : UCS_OK;
}

ucs_status_ptr_t ucp_tag_msg_recv_nb(ucp_worker_h worker, void* buffer, size_t count,
                                     ucp_datatype_t datatype, ucp_tag_message_h message,
                                     ucp_tag_recv_callback_t callback) {
    const Worker::Guard guard(*worker);
    return receive_claimed(*worker, buffer, count, message, plain_call(datatype, callback));
}

ucs_status_ptr_t ucp_tag_msg_recv_nbx(ucp_worker_h worker, void* buffer, size_t count,
                                      ucp_tag_message_h message, const ucp_request_param_t* param) {
    const Worker::Guard guard(*worker);
    return receive_claimed(*worker, buffer, count, message, call_of(param, Callback::Kind::kTagX));
}

// A receive that a message has met completes as usual; so does everything that is no receive.
void ucp_request_cancel(ucp_worker_h worker, void* request) {
    const Worker::Guard guard(*worker);
    Request& r = Request::of(request);
    if (r.completed || r.type != Request::Type::kTagReceive) {
        return;
    }
    Done done;
    if (worker->forget_receive(r)) {
        finish(r, UCS_ERR_CANCELED);
    } else if (tw_cancel(worker->tag_endpoint(), static_cast<Operation*>(&r)) == 0 &&
               worker->collect(static_cast<Operation*>(&r), &done)) {
        finish(r, UCS_ERR_CANCELED);
    }
}
