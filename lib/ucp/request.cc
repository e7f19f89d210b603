// SPDX-License-Identifier: BSD-3-Clause
#include "lib/ucp/request.h"

#include <cstdio>
#include <cstdlib>
#include <new>

#include "lib/ucp/context.h"
#include "lib/ucp/endpoint.h"
#include "lib/ucp/log.h"
#include "lib/ucp/worker.h"

namespace tagwire::ucp {
namespace {

constexpr size_t kAlign = 64;
constexpr size_t kFirstChunk = 64;
constexpr size_t kLargestChunk = 4096;

size_t object_size(const Context& context) {
    return (sizeof(Request) + context.request_size + kAlign - 1) / kAlign * kAlign;
}

void call_back(Request& request) {
    const Callback& callback = request.callback;
    void* user = request.user();
    switch (callback.kind) {
        case Callback::Kind::kNone:
            break;
        case Callback::Kind::kSend:
            callback.send(user, request.status);
            break;
        case Callback::Kind::kSendX:
            callback.send_x(user, request.status, callback.user_data);
            break;
        case Callback::Kind::kTag:
            callback.tag(user, request.status, &request.info);
            break;
        case Callback::Kind::kTagX:
            callback.tag_x(user, request.status, &request.info, callback.user_data);
            break;
        case Callback::Kind::kStream:
            callback.stream(user, request.status, request.info.length);
            break;
        case Callback::Kind::kStreamX:
            callback.stream_x(user, request.status, request.info.length, callback.user_data);
            break;
        case Callback::Kind::kAmX:
            callback.am_x(user, request.status, request.info.length, callback.user_data);
            break;
    }
}

// For ucp_request_query: with UCX's own words, which programs look for.
const char* name_of(Request::Type type) {
    switch (type) {
        case Request::Type::kSend:
        case Request::Type::kAmOffer:
            return "send";
        case Request::Type::kTagReceive:
        case Request::Type::kStreamReceive:
        case Request::Type::kAmReceive:
            return "recv";
        case Request::Type::kRemote:
            return "remote memory operation";
        case Request::Type::kFlush:
            return "flush";
        case Request::Type::kClose:
            return "close";
        case Request::Type::kFree:
        case Request::Type::kPlain:
            break;
    }
    return "request";
}

// The program's error. In debug builds it ends here, where a debugger shows who does it.
void refuse_second_release(Request& request) {
    log_error("request %p is released twice", request.user());
#ifndef NDEBUG
    std::abort();
#endif
}

// What the request holds beside itself, and its place in the endpoint's books.
void settle(Request& request) {
    request.payload.close();
    std::free(request.header);
    request.header = nullptr;
    if (request.epoch != nullptr) {
        request.endpoint->operation_ended(request);
    }
}

}  // namespace

Call call_of(const ucp_request_param_t* param, Callback::Kind kind) {
    Call call;
    call.mask = param->op_attr_mask;
    if ((call.mask & UCP_OP_ATTR_FIELD_FLAGS) != 0) {
        call.flags = param->flags;
    }
    if ((call.mask & UCP_OP_ATTR_FIELD_DATATYPE) != 0) {
        call.datatype = param->datatype;
    }
    if ((call.mask & UCP_OP_ATTR_FIELD_REQUEST) != 0) {
        call.request = param->request;
    }
    if ((call.mask & UCP_OP_ATTR_FIELD_CALLBACK) != 0 && param->cb.send != nullptr) {
        call.callback.kind = kind;
        call.callback.send_x = param->cb.send;  // one of the union's pointers
        if ((call.mask & UCP_OP_ATTR_FIELD_USER_DATA) != 0) {
            call.callback.user_data = param->user_data;
        }
    }
    if ((call.mask & UCP_OP_ATTR_FIELD_RECV_INFO) != 0) {
        call.info = param->recv_info.tag_info;
    }
    return call;
}

RequestPool::~RequestPool() {
    for (const Free& chunk : chunks_) {
        if (context_.request_cleanup != nullptr) {
            for (size_t at = 0; at < chunk.size; at += object_size(context_)) {
                context_.request_cleanup(reinterpret_cast<Request*>(chunk.memory + at)->user());
            }
        }
        std::free(chunk.memory);
    }
}

size_t RequestPool::unreleased() const {
    size_t count = 0;
    for (const Free& chunk : chunks_) {
        for (size_t at = 0; at < chunk.size; at += object_size(context_)) {
            const auto& request = *reinterpret_cast<const Request*>(chunk.memory + at);
            count += request.type != Request::Type::kFree && !request.released ? 1 : 0;
        }
    }
    return count;
}

bool RequestPool::grow() {
    const size_t size = object_size(context_);
    size_t count = kFirstChunk << chunks_.size();
    count = count < kLargestChunk && count != 0 ? count : kLargestChunk;
    auto* memory = static_cast<char*>(std::aligned_alloc(kAlign, size * count));
    if (memory == nullptr) {
        return false;
    }
    chunks_.push_back({memory, size * count});
    for (size_t i = count; i-- != 0;) {
        auto* request = new (memory + i * size) Request;
        request->type = Request::Type::kFree;
        request->next = free_;
        free_ = request;
    }
    // In the order of addresses, and before any of them is used.
    for (size_t i = 0; context_.request_init != nullptr && i < count; ++i) {
        context_.request_init(reinterpret_cast<Request*>(memory + i * size)->user());
    }
    return true;
}

Request* RequestPool::get(Worker& worker) {
    if (free_ == nullptr && !grow()) [[unlikely]] {
        return nullptr;
    }
    Request* request = free_;
    free_ = request->next;
    ++in_use_;
    new (request) Request;
    request->kind = Operation::Kind::kRequest;
    request->worker = &worker;
    return request;
}

void RequestPool::put(Request& request) {
    if (request.type == Request::Type::kFree) [[unlikely]] {
        refuse_second_release(request);
        return;
    }
    request.type = Request::Type::kFree;
    request.next = free_;
    free_ = &request;
    --in_use_;
}

Request* new_request(Worker& worker, const Call& call, Request::Type type) {
    Request* request;
    if (call.request != nullptr) {
        request = new (&Request::of(call.request)) Request;
        request->kind = Operation::Kind::kRequest;
        request->worker = &worker;
    } else {
        request = worker.requests().get(worker);
    }
    if (request != nullptr) {
        request->type = type;
        request->callback = call.callback;
        request->flags = call.flags;
    }
    return request;
}

void drop_request(Request& request, const Call& call) {
    settle(request);
    if (call.request == nullptr) {
        request.worker->requests().put(request);
    }
}

ucs_status_ptr_t end_at_once(Request& request, const Call& call, ucs_status_t status) {
    settle(request);
    request.status = status;
    request.completed = true;
    if (!call.always_request && call.may_complete_now()) {
        if (call.request == nullptr) {
            request.worker->requests().put(request);
        }
        return UCS_STATUS_PTR(status);
    }
    void* user = request.user();
    call_back(request);  // may free it
    return user;
}

ucs_status_ptr_t answer(Request& request, const Call& call, ucs_status_t submitted) {
    if (submitted == UCS_INPROGRESS) [[likely]] {
        return request.user();
    }
    if (submitted == UCS_OK) {
        return end_at_once(request, call, UCS_OK);
    }
    drop_request(request, call);
    return UCS_STATUS_PTR(submitted);
}

void finish(Request& request, ucs_status_t status) {
    if (request.implicit && status != UCS_OK) [[unlikely]] {
        request.endpoint->note_error(status);
    }
    settle(request);
    request.status = status;
    request.completed = true;
    const bool released = request.released;
    call_back(request);
    if (released) {
        request.worker->requests().put(request);
    }
}

}  // namespace tagwire::ucp

using tagwire::ucp::Callback;
using tagwire::ucp::name_of;
using tagwire::ucp::refuse_second_release;
using tagwire::ucp::Request;
using tagwire::ucp::Worker;

ucs_status_t ucp_request_check_status(void* request) {
    const Request& r = Request::of(request);
    return r.completed ? r.status : UCS_INPROGRESS;
}

void* ucp_request_alloc(ucp_worker_h worker) {
    const Worker::Guard guard(*worker);
    Request* request = worker->requests().get(*worker);
    return request == nullptr ? nullptr : request->user();
}

// The operation goes on, and its callback is still called.
void ucp_request_release(void* request) {
    Request& r = Request::of(request);
    const Worker::Guard guard(*r.worker);
    if (r.completed || r.type <= Request::Type::kPlain) {
        r.worker->requests().put(r);
    } else if (r.released) [[unlikely]] {
        refuse_second_release(r);
    } else {
        r.released = true;
    }
}

// The operation goes on, and nobody is told.
void ucp_request_free(void* request) {
    Request& r = Request::of(request);
    const Worker::Guard guard(*r.worker);
    if (!r.completed) {
        r.callback.kind = Callback::Kind::kNone;
    }
    ucp_request_release(request);
}

ucs_status_t ucp_tag_recv_request_test(void* request, ucp_tag_recv_info_t* info) {
    const Request& r = Request::of(request);
    if (!r.completed) {
        return UCS_INPROGRESS;
    }
    if (info != nullptr && r.type == Request::Type::kTagReceive) {
        *info = r.info;
    }
    return r.status;
}

ucs_status_t ucp_stream_recv_request_test(void* request, size_t* length) {
    const Request& r = Request::of(request);
    if (!r.completed) {
        return UCS_INPROGRESS;
    }
    if (length != nullptr) {
        *length = r.info.length;
    }
    return r.status;
}

ucs_status_t ucp_request_query(void* request, ucp_request_attr_t* attr) {
    const Request& r = Request::of(request);
    if ((attr->field_mask & UCP_REQUEST_ATTR_FIELD_INFO_STRING) != 0) {
        if ((attr->field_mask & UCP_REQUEST_ATTR_FIELD_INFO_STRING_SIZE) == 0) {
            return UCS_ERR_INVALID_PARAM;
        }
        std::snprintf(attr->debug_string, attr->debug_string_size, "%s of %zu bytes, host memory",
                      name_of(r.type), r.payload.length());
    }
    if ((attr->field_mask & UCP_REQUEST_ATTR_FIELD_STATUS) != 0) {
        attr->status = ucp_request_check_status(request);
    }
    if ((attr->field_mask & UCP_REQUEST_ATTR_FIELD_MEM_TYPE) != 0) {
        attr->mem_type = UCS_MEMORY_TYPE_HOST;
    }
    return UCS_OK;
}
