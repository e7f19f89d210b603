// SPDX-License-Identifier: BSD-3-Clause
// Flush, fence and close: requests that wait until operations of before have ended. An
// operation ends when the peer has it (put and atomics: when it is done there).
#include <algorithm>

#include "lib/ucp/endpoint.h"
#include "lib/ucp/sockets.h"
#include "lib/ucp/worker.h"

namespace tagwire::ucp {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(500);

bool is_flushed(const Request& request) {
    if (request.endpoint != nullptr) {
        return request.endpoint->flushed(request.tag);
    }
    return request.parts == 0;  // of a worker: its parts are flushes of endpoints
}

}  // namespace

void Worker::end_flushes() {
    for (Request* request : flushes_) {
        if (request->type == Request::Type::kClose && request->endpoint->out_of_patience()) {
            abandon(*request->endpoint->peer());
        }
    }
    std::vector<Request*> ended;
    std::erase_if(flushes_, [&](Request* request) {
        if (!is_flushed(*request)) {
            return false;
        }
        ended.push_back(request);
        return true;
    });
    for (Request* request : ended) {
        Endpoint* endpoint = request->endpoint;
        auto* whole = static_cast<Request*>(request->result);
        ucs_status_t status = request->status;
        const bool closes = request->type == Request::Type::kClose;
        if (endpoint != nullptr && !(closes && endpoint->is_closed_by_force())) {
            const bool alone = whole == nullptr && endpoint->failure() != UCS_OK;
            status = alone ? endpoint->failure() : endpoint->take_error();
        }
        if (closes) {
            delete static_cast<ucp_ep*>(endpoint);
        }
        finish(*request, status);
        if (whole != nullptr) {
            --whole->parts;
            whole->status = whole->status == UCS_OK ? status : whole->status;
        }
    }
}

namespace {

ucs_status_ptr_t flush_endpoint(Endpoint& endpoint, const Call& call) {
    Worker& worker = endpoint.worker();
    Request* request = new_request(worker, call, Request::Type::kFlush);
    if (request == nullptr) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    if (endpoint.idle()) {
        const ucs_status_t failure = endpoint.failure();
        return end_at_once(*request, call, failure != UCS_OK ? failure : endpoint.take_error());
    }
    request->endpoint = &endpoint;
    request->tag = endpoint.begin_flush();
    worker.add_flush(*request);
    return request->user();
}

ucs_status_ptr_t flush_worker(Worker& worker, const Call& call) {
    Request* request = new_request(worker, call, Request::Type::kFlush);
    if (request == nullptr) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    for (const auto& [number, endpoint] : worker.endpoints()) {
        if (endpoint->idle() || endpoint->closing()) {
            const ucs_status_t status = endpoint->take_error();
            request->status = request->status == UCS_OK ? status : request->status;
            continue;
        }
        Request* part = new_request(worker, Call{}, Request::Type::kFlush);
        if (part == nullptr) {
            continue;
        }
        part->released = true;
        part->endpoint = endpoint;
        part->tag = endpoint->begin_flush();
        part->result = request;
        ++request->parts;
        worker.add_flush(*part);
    }
    if (request->parts == 0) {
        return end_at_once(*request, call, request->status);
    }
    worker.add_flush(*request);
    return request->user();
}

Call plain_call(ucp_send_callback_t callback) {
    Call call;
    if (callback != nullptr) {
        call.callback.kind = Callback::Kind::kSend;
        call.callback.send = callback;
    }
    return call;
}

}  // namespace

// True once: operations of an endpoint that was closed by force are still under way.
bool Endpoint::out_of_patience() {
    constexpr auto kNone = std::chrono::steady_clock::time_point{};
    if (patience_ == kNone || std::chrono::steady_clock::now() < patience_) {
        return false;
    }
    patience_ = kNone;
    return requests_ != 0;
}

ucs_status_ptr_t Endpoint::close(const Call& call, bool force) {
    Request* request = new_request(worker_, call, Request::Type::kClose);
    if (request == nullptr) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    closing_ = true;
    closed_by_force_ = force;
    if (force) {
        if (failure_ == UCS_OK) {
            failure_ = UCS_ERR_CANCELED;
        }
        cancel_pending(UCS_ERR_CANCELED);
        if (peer_ != nullptr && requests_ != 0) {
            // A session belongs to all endpoints to its worker, and the core ends operations with
            // it only. Other endpoints are spared, unless ours do not end by themselves.
            if (worker_.has_others(*peer_)) {
                patience_ = std::chrono::steady_clock::now() + kPatience;
            } else {
                worker_.abandon(*peer_);
            }
        }
    } else {
        fail_receives(UCS_ERR_CANCELED);
    }
    if (idle()) {
        delete static_cast<ucp_ep*>(this);
        return end_at_once(*request, call, UCS_OK);
    }
    if (force && requests_ == 0) {
        // Nothing of the program's is left; short messages that it thinks sent still go out.
        Request* rest = new_request(worker_, Call{}, Request::Type::kClose);
        if (rest != nullptr) {
            rest->released = true;
            rest->endpoint = this;
            rest->tag = begin_flush();
            worker_.add_flush(*rest);
        }
        return end_at_once(*request, call, UCS_OK);
    }
    request->endpoint = this;
    request->tag = begin_flush();
    worker_.add_flush(*request);
    return request->user();
}

}  // namespace tagwire::ucp

using namespace tagwire::ucp;

ucs_status_ptr_t ucp_ep_flush_nb(ucp_ep_h ep, unsigned /* flags: none defined */,
                                 ucp_send_callback_t callback) {
    const Worker::Guard guard(ep->worker());
    return flush_endpoint(*ep, plain_call(callback));
}

ucs_status_ptr_t ucp_ep_flush_nbx(ucp_ep_h ep, const ucp_request_param_t* param) {
    const Worker::Guard guard(ep->worker());
    return flush_endpoint(*ep, call_of(param, Callback::Kind::kSendX));
}

ucs_status_ptr_t ucp_worker_flush_nb(ucp_worker_h worker, unsigned /* flags: none defined */,
                                     ucp_send_callback_t callback) {
    const Worker::Guard guard(*worker);
    return flush_worker(*worker, plain_call(callback));
}

ucs_status_ptr_t ucp_worker_flush_nbx(ucp_worker_h worker, const ucp_request_param_t* param) {
    const Worker::Guard guard(*worker);
    return flush_worker(*worker, call_of(param, Callback::Kind::kSendX));
}

ucs_status_ptr_t ucp_ep_close_nb(ucp_ep_h ep, unsigned mode) {
    Worker& worker = ep->worker();
    const Worker::Guard guard(worker);
    if (mode != UCP_EP_CLOSE_MODE_FORCE && mode != UCP_EP_CLOSE_MODE_FLUSH) {
        return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
    }
    if (mode == UCP_EP_CLOSE_MODE_FORCE && !ep->has_peer_errors()) {
        return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
    }
    return ep->close(Call{}, mode == UCP_EP_CLOSE_MODE_FORCE);
}

ucs_status_ptr_t ucp_ep_close_nbx(ucp_ep_h ep, const ucp_request_param_t* param) {
    Worker& worker = ep->worker();
    const Worker::Guard guard(worker);
    const Call call = call_of(param, Callback::Kind::kSendX);
    const bool force = (call.flags & UCP_EP_CLOSE_FLAG_FORCE) != 0;
    if (force && (!ep->has_peer_errors() || !call.may_complete_now())) {
        return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
    }
    return ep->close(call, force);
}
