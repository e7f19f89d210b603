// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include "lib/ucp/memory.h"
#include "lib/ucp/remote.h"
#include "lib/ucp/status.h"

namespace tagwire::ucp {
namespace {

tw_op op_of(uint64_t op) {
    switch (op) {
        case UCP_ATOMIC_OP_ADD:
            return TW_SUM;
        case UCP_ATOMIC_OP_AND:
            return TW_BAND;
        case UCP_ATOMIC_OP_OR:
            return TW_BOR;
        case UCP_ATOMIC_OP_XOR:
            return TW_BXOR;
        case UCP_ATOMIC_OP_CSWAP:
            return TW_CSWAP;
        default:
            return TW_ATOMIC_WRITE;
    }
}

tw_datatype type_of(size_t size) {
    return size == sizeof(uint32_t) ? TW_UINT32 : TW_UINT64;
}

// Request: tag is the operation, info.length the size, operand[0] the operand, operand[1] what a
// compare-and-swap writes.
int post(Request& request) {
    Endpoint& endpoint = *request.endpoint;
    tw_ep* core = request.worker->channel_endpoint();
    const size_t size = request.info.length;
    const auto op = static_cast<ucp_atomic_op_t>(request.tag);
    const bool compares = op == UCP_ATOMIC_OP_CSWAP;
    const tw_ioc operand{&request.operand[compares ? 1 : 0], 1};
    const tw_ioc compare{&request.operand[0], 1};
    const tw_ioc result{request.result, 1};
    const tw_rma_ioc target{request.remote_address, 1, request.remote_key};
    tw_msg_atomic message{};
    message.ioc = &operand;
    message.ioc_count = 1;
    message.addr = endpoint.peer()->channel_address;
    message.rma_ioc = &target;
    message.rma_ioc_count = 1;
    message.datatype = type_of(size);
    message.op = op_of(op);
    message.context = static_cast<Operation*>(&request);
    const uint64_t fence = fence_flag(*request.worker, *endpoint.peer());
    int error;
    if (compares) {
        error =
            tw_compare_atomicmsg(core, &message, &compare, 1, &result, 1, TW_COMPLETION | fence);
    } else if (request.result != nullptr) {
        error = tw_fetch_atomicmsg(core, &message, &result, 1, TW_COMPLETION | fence);
    } else {
        error = tw_atomicmsg(core, &message, kRemoteFlags | fence);
    }
    if (error == 0) {
        fence_observed(*request.worker, *endpoint.peer());
        request.parts = 1;
        request.post = nullptr;
    }
    return error;
}

bool is_valid(const Endpoint& endpoint, const AtomicCall& call) {
    const Context& context = endpoint.worker().context();
    const bool sized = call.size == sizeof(uint32_t) || call.size == sizeof(uint64_t);
    const bool needs_result = call.op == UCP_ATOMIC_OP_SWAP || call.op == UCP_ATOMIC_OP_CSWAP;
    return context.has(UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64) && sized &&
           call.address % call.size == 0 && call.op < UCP_ATOMIC_OP_LAST &&
           (call.result != nullptr || !needs_result);
}

}  // namespace

ucs_status_ptr_t atomic(Endpoint& endpoint, const AtomicCall& atomic, const Call& call) {
    if (!is_valid(endpoint, atomic)) {
        return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
    }
    Request* request = new_request(endpoint.worker(), call, Request::Type::kRemote);
    if (request == nullptr) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    request->tag = atomic.op;
    request->info.length = atomic.size;
    request->operand[0] = atomic.operand;
    if (atomic.op == UCP_ATOMIC_OP_CSWAP) {
        std::memcpy(&request->operand[1], atomic.result, atomic.size);
    }
    request->result = atomic.result;
    request->remote_address = atomic.address;
    request->remote_key = atomic.rkey->key;
    request->post = post;
    return answer(*request, call, endpoint.submit(*request));
}

}  // namespace tagwire::ucp

using namespace tagwire::ucp;

ucs_status_t ucp_atomic_post(ucp_ep_h ep, ucp_atomic_post_op_t opcode, uint64_t value,
                             size_t op_size, uint64_t address, ucp_rkey_h rkey) {
    const Worker::Guard guard(ep->worker());
    static constexpr ucp_atomic_op_t kOps[] = {UCP_ATOMIC_OP_ADD, UCP_ATOMIC_OP_AND,
                                               UCP_ATOMIC_OP_OR, UCP_ATOMIC_OP_XOR};
    if (static_cast<unsigned>(opcode) >= UCP_ATOMIC_POST_OP_LAST) {
        return UCS_ERR_INVALID_PARAM;
    }
    ucs_status_ptr_t request =
        atomic(*ep, {kOps[opcode], value, op_size, nullptr, address, rkey}, Call{});
    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_RAW_STATUS(request);
    }
    Request::of(request).implicit = true;
    ucp_request_free(request);
    return UCS_OK;
}

ucs_status_ptr_t ucp_atomic_fetch_nb(ucp_ep_h ep, ucp_atomic_fetch_op_t opcode, uint64_t value,
                                     void* result, size_t op_size, uint64_t address,
                                     ucp_rkey_h rkey, ucp_send_callback_t callback) {
    const Worker::Guard guard(ep->worker());
    static constexpr ucp_atomic_op_t kOps[] = {UCP_ATOMIC_OP_ADD,   UCP_ATOMIC_OP_SWAP,
                                               UCP_ATOMIC_OP_CSWAP, UCP_ATOMIC_OP_AND,
                                               UCP_ATOMIC_OP_OR,    UCP_ATOMIC_OP_XOR};
    if (static_cast<unsigned>(opcode) >= UCP_ATOMIC_FETCH_OP_LAST || result == nullptr) {
        return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
    }
    Call call;
    if (callback != nullptr) {
        call.callback.kind = Callback::Kind::kSend;
        call.callback.send = callback;
    }
    return atomic(*ep, {kOps[opcode], value, op_size, result, address, rkey}, call);
}

ucs_status_ptr_t ucp_atomic_op_nbx(ucp_ep_h ep, ucp_atomic_op_t opcode, const void* buffer,
                                   size_t count, uint64_t address, ucp_rkey_h rkey,
                                   const ucp_request_param_t* param) {
    const Worker::Guard guard(ep->worker());
    const Call call = call_of(param, Callback::Kind::kSendX);
    const size_t size = call.datatype >> UCP_DATATYPE_SHIFT;
    if ((call.datatype & UCP_DATATYPE_CLASS_MASK) != UCP_DATATYPE_CONTIG || count != 1 ||
        buffer == nullptr || (size != sizeof(uint32_t) && size != sizeof(uint64_t))) {
        return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
    }
    uint64_t operand = 0;
    std::memcpy(&operand, buffer, size);
    void* result =
        (call.mask & UCP_OP_ATTR_FIELD_REPLY_BUFFER) != 0 ? param->reply_buffer : nullptr;
    return atomic(*ep, {opcode, operand, size, result, address, rkey}, call);
}
