// SPDX-License-Identifier: BSD-3-Clause
// The calls of tagwire/atomic.h.
#include "tagwire/atomic.h"

#include "lib/rma/execute.h"
#include "lib/rma/remote_memory.h"
#include "lib/tagwire/calls.h"
#include "lib/tagwire/guard.h"

using namespace tagwire;
using wire::AtomicForm;

namespace {

constexpr const char* kNoEndpoint = "an atomic call: ep cannot be NULL";

int post(tw_ep* ep, const AtomicCall& call) {
    const Guard guard(ep->worker());
    return RemoteMemory::of(ep->worker()).atomic(*ep, call);
}

uint64_t elements(const tw_ioc* ioc, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; ioc != nullptr && i < count && i < TW_IOV_LIMIT; ++i) {
        sum += ioc[i].count;
    }
    return sum;
}

// A call with a message: everything but its operands' companions is in it.
int post_message(tw_ep* ep, const tw_msg_atomic* msg, const tw_ioc* compares, size_t compare_count,
                 const tw_ioc* results, size_t result_count, uint64_t flags, AtomicForm form) {
    if (ep == nullptr || msg == nullptr) {
        return refuse(EINVAL, "an atomic call with a message: ep and msg cannot be NULL");
    }
    constexpr uint64_t kFlags = TW_COMPLETION | TW_MORE | TW_INJECT | TW_FENCE | kCompletionLevels;
    if ((flags & ~kFlags) != 0 || !one_level_at_most(flags)) {
        return refuse(EINVAL,
                      "an atomic takes TW_COMPLETION, TW_MORE, TW_INJECT, TW_FENCE and one "
                      "completion level at most");
    }
    return post(ep, {msg->ioc, msg->ioc_count, compares, compare_count, results, result_count,
                     msg->addr, msg->rma_ioc, msg->rma_ioc_count, msg->datatype, msg->op,
                     msg->context, ep->message_send_flags(flags), form});
}

}  // namespace

int tw_atomic(tw_ep* ep, const void* buffer, size_t count, tw_addr dest, uint64_t remote_address,
              uint64_t key, tw_datatype datatype, tw_op op, void* context) {
    const tw_ioc ioc{const_cast<void*>(buffer), count};
    return tw_atomicv(ep, &ioc, 1, dest, remote_address, key, datatype, op, context);
}

int tw_atomicv(tw_ep* ep, const tw_ioc* ioc, size_t ioc_count, tw_addr dest,
               uint64_t remote_address, uint64_t key, tw_datatype datatype, tw_op op,
               void* context) {
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    const tw_rma_ioc remote{remote_address, elements(ioc, ioc_count), key};
    return post(ep, {ioc, ioc_count, nullptr, 0, nullptr, 0, dest, &remote, 1, datatype, op,
                     context, ep->send_flags(), AtomicForm::kBase});
}

int tw_atomicmsg(tw_ep* ep, const tw_msg_atomic* msg, uint64_t flags) {
    return post_message(ep, msg, nullptr, 0, nullptr, 0, flags, AtomicForm::kBase);
}

int tw_inject_atomic(tw_ep* ep, const void* buffer, size_t count, tw_addr dest,
                     uint64_t remote_address, uint64_t key, tw_datatype datatype, tw_op op) {
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    const tw_ioc ioc{const_cast<void*>(buffer), count};
    const tw_rma_ioc remote{remote_address, count, key};
    return post(ep, {&ioc, 1, nullptr, 0, nullptr, 0, dest, &remote, 1, datatype, op, nullptr,
                     TW_INJECT, AtomicForm::kBase});
}

int tw_fetch_atomic(tw_ep* ep, const void* buffer, size_t count, void* result, tw_addr dest,
                    uint64_t remote_address, uint64_t key, tw_datatype datatype, tw_op op,
                    void* context) {
    const tw_ioc ioc{const_cast<void*>(buffer), count};
    const tw_ioc results{result, count};
    return tw_fetch_atomicv(ep, &ioc, 1, &results, 1, dest, remote_address, key, datatype, op,
                            context);
}

int tw_fetch_atomicv(tw_ep* ep, const tw_ioc* ioc, size_t ioc_count, const tw_ioc* results,
                     size_t result_count, tw_addr dest, uint64_t remote_address, uint64_t key,
                     tw_datatype datatype, tw_op op, void* context) {
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    const tw_rma_ioc remote{remote_address, elements(results, result_count), key};
    return post(ep, {ioc, ioc_count, nullptr, 0, results, result_count, dest, &remote, 1, datatype,
                     op, context, ep->send_flags(), AtomicForm::kFetch});
}

int tw_fetch_atomicmsg(tw_ep* ep, const tw_msg_atomic* msg, const tw_ioc* results,
                       size_t result_count, uint64_t flags) {
    return post_message(ep, msg, nullptr, 0, results, result_count, flags, AtomicForm::kFetch);
}

int tw_compare_atomic(tw_ep* ep, const void* buffer, size_t count, const void* compare,
                      void* result, tw_addr dest, uint64_t remote_address, uint64_t key,
                      tw_datatype datatype, tw_op op, void* context) {
    const tw_ioc ioc{const_cast<void*>(buffer), count};
    const tw_ioc compares{const_cast<void*>(compare), count};
    const tw_ioc results{result, count};
    return tw_compare_atomicv(ep, &ioc, 1, &compares, 1, &results, 1, dest, remote_address, key,
                              datatype, op, context);
}

int tw_compare_atomicv(tw_ep* ep, const tw_ioc* ioc, size_t ioc_count, const tw_ioc* compares,
                       size_t compare_count, const tw_ioc* results, size_t result_count,
                       tw_addr dest, uint64_t remote_address, uint64_t key, tw_datatype datatype,
                       tw_op op, void* context) {
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    const tw_rma_ioc remote{remote_address, elements(ioc, ioc_count), key};
    return post(ep, {ioc, ioc_count, compares, compare_count, results, result_count, dest, &remote,
                     1, datatype, op, context, ep->send_flags(), AtomicForm::kCompare});
}

int tw_compare_atomicmsg(tw_ep* ep, const tw_msg_atomic* msg, const tw_ioc* compares,
                         size_t compare_count, const tw_ioc* results, size_t result_count,
                         uint64_t flags) {
    return post_message(ep, msg, compares, compare_count, results, result_count, flags,
                        AtomicForm::kCompare);
}

int tw_atomic_valid(const tw_ep*, tw_datatype datatype, tw_op op, uint64_t kind, size_t* count) {
    if (count == nullptr) {
        return refuse(EINVAL, "tw_atomic_valid: count cannot be NULL");
    }
    if (kind != 0 && kind != TW_FETCH_ATOMIC && kind != TW_COMPARE_ATOMIC) {
        return refuse(EINVAL, "tw_atomic_valid: kind is 0, TW_FETCH_ATOMIC or TW_COMPARE_ATOMIC");
    }
    const AtomicForm form = kind == 0                 ? AtomicForm::kBase
                            : kind == TW_FETCH_ATOMIC ? AtomicForm::kFetch
                                                      : AtomicForm::kCompare;
    if (!is_atomic(datatype, op, form)) {
        return refuse(EOPNOTSUPP, "tw_atomic_valid: there is no such atomic for this datatype");
    }
    *count = TW_ATOMIC_SIZE / size_of(datatype);
    return 0;
}
