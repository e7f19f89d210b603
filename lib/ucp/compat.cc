// SPDX-License-Identifier: BSD-3-Clause
// The deprecated calls of ucp_compat.h, each on what replaced it. The blocking ones make
// progress until the operation has ended; a peer that died or stopped ends it with an error
// after the worker's peer timeout.
#include "lib/ucp/remote.h"

using namespace tagwire::ucp;

namespace {

// Numbers of 4 and of 8 bytes.
template <typename T>
ucs_status_t add(ucp_ep_h ep, T operand, uint64_t address, ucp_rkey_h rkey) {
    return ucp_atomic_post(ep, UCP_ATOMIC_POST_OP_ADD, operand, sizeof(T), address, rkey);
}

template <typename T>
ucs_status_t fetch(ucp_ep_h ep, ucp_atomic_fetch_op_t op, T operand, uint64_t address,
                   ucp_rkey_h rkey, T* result) {
    return ep->worker().wait(
        ucp_atomic_fetch_nb(ep, op, operand, result, sizeof(T), address, rkey, nullptr));
}

// The newer call takes the new value where it leaves the old one.
template <typename T>
ucs_status_t compare_and_swap(ucp_ep_h ep, T compare, T swap, uint64_t address, ucp_rkey_h rkey,
                              T* result) {
    T value = swap;
    const ucs_status_t status =
        fetch(ep, UCP_ATOMIC_FETCH_OP_CSWAP, compare, address, rkey, &value);
    *result = status == UCS_OK ? value : *result;
    return status;
}

}  // namespace

int ucp_request_is_completed(void* request) {
    return ucp_request_check_status(request) != UCS_INPROGRESS;
}

ucs_status_t ucp_request_test(void* request, ucp_tag_recv_info_t* info) {
    return ucp_tag_recv_request_test(request, info);
}

ucs_status_ptr_t ucp_disconnect_nb(ucp_ep_h ep) {
    return ucp_ep_close_nb(ep, UCP_EP_CLOSE_MODE_FLUSH);
}

void ucp_ep_destroy(ucp_ep_h ep) {
    Worker& worker = ep->worker();
    worker.wait(ucp_disconnect_nb(ep));
}

ucs_status_t ucp_ep_flush(ucp_ep_h ep) {
    return ep->worker().wait(ucp_ep_flush_nb(ep, 0, nullptr));
}

ucs_status_t ucp_worker_flush(ucp_worker_h worker) {
    return worker->wait(ucp_worker_flush_nb(worker, 0, nullptr));
}

// Waits for the target, so that its answer (a bad key, a range that is not mapped) is the call's.
ucs_status_t ucp_put(ucp_ep_h ep, const void* buffer, size_t length, uint64_t address,
                     ucp_rkey_h rkey) {
    ucs_status_ptr_t request;
    {
        const Worker::Guard guard(ep->worker());
        request = put(*ep, buffer, length, address, *rkey, Call{}, true);
    }
    return ep->worker().wait(request);
}

ucs_status_t ucp_get(ucp_ep_h ep, void* buffer, size_t length, uint64_t address, ucp_rkey_h rkey) {
    return ep->worker().wait(ucp_get_nb(ep, buffer, length, address, rkey, nullptr));
}

ucs_status_t ucp_atomic_add32(ucp_ep_h ep, uint32_t operand, uint64_t address, ucp_rkey_h rkey) {
    return add(ep, operand, address, rkey);
}

ucs_status_t ucp_atomic_add64(ucp_ep_h ep, uint64_t operand, uint64_t address, ucp_rkey_h rkey) {
    return add(ep, operand, address, rkey);
}

ucs_status_t ucp_atomic_fadd32(ucp_ep_h ep, uint32_t operand, uint64_t address, ucp_rkey_h rkey,
                               uint32_t* result) {
    return fetch(ep, UCP_ATOMIC_FETCH_OP_FADD, operand, address, rkey, result);
}

ucs_status_t ucp_atomic_fadd64(ucp_ep_h ep, uint64_t operand, uint64_t address, ucp_rkey_h rkey,
                               uint64_t* result) {
    return fetch(ep, UCP_ATOMIC_FETCH_OP_FADD, operand, address, rkey, result);
}

ucs_status_t ucp_atomic_swap32(ucp_ep_h ep, uint32_t swap, uint64_t address, ucp_rkey_h rkey,
                               uint32_t* result) {
    return fetch(ep, UCP_ATOMIC_FETCH_OP_SWAP, swap, address, rkey, result);
}

ucs_status_t ucp_atomic_swap64(ucp_ep_h ep, uint64_t swap, uint64_t address, ucp_rkey_h rkey,
                               uint64_t* result) {
    return fetch(ep, UCP_ATOMIC_FETCH_OP_SWAP, swap, address, rkey, result);
}

ucs_status_t ucp_atomic_cswap32(ucp_ep_h ep, uint32_t compare, uint32_t swap, uint64_t address,
                                ucp_rkey_h rkey, uint32_t* result) {
    return compare_and_swap(ep, compare, swap, address, rkey, result);
}

ucs_status_t ucp_atomic_cswap64(ucp_ep_h ep, uint64_t compare, uint64_t swap, uint64_t address,
                                ucp_rkey_h rkey, uint64_t* result) {
    return compare_and_swap(ep, compare, swap, address, rkey, result);
}
