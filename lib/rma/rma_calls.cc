// SPDX-License-Identifier: BSD-3-Clause
// The calls of tagwire/rma.h.
#include "tagwire/rma.h"

#include "lib/rma/remote_memory.h"
#include "lib/tagwire/calls.h"
#include "lib/tagwire/guard.h"

using namespace tagwire;

namespace {

constexpr const char* kNoEndpoint = "a call on remote memory: ep cannot be NULL";
constexpr uint64_t kReadFlags = TW_COMPLETION | TW_MORE | TW_FENCE | kCompletionLevels;

uint64_t length_of(const iovec* iov, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; iov != nullptr && i < count && i < TW_IOV_LIMIT; ++i) {
        sum += iov[i].iov_len;
    }
    return sum;
}

int put(tw_ep* ep, const iovec* iov, size_t count, uint64_t data, tw_addr dest, uint64_t address,
        uint64_t key, void* context, uint64_t flags) {
    const tw_rma_iov remote{address, length_of(iov, count), key};
    const Guard guard(ep->worker());
    return RemoteMemory::of(ep->worker())
        .put(*ep, {iov, count, dest, &remote, 1, data, context, flags});
}

}  // namespace

int tw_write(tw_ep* ep, const void* buffer, size_t length, tw_addr dest, uint64_t remote_address,
             uint64_t key, void* context) {
    const iovec iov{const_cast<void*>(buffer), length};
    return tw_writev(ep, &iov, 1, dest, remote_address, key, context);
}

int tw_writev(tw_ep* ep, const iovec* iov, size_t count, tw_addr dest, uint64_t remote_address,
              uint64_t key, void* context) {
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    return put(ep, iov, count, 0, dest, remote_address, key, context, ep->send_flags());
}

int tw_writemsg(tw_ep* ep, const tw_msg_rma* msg, uint64_t flags) {
    if (ep == nullptr || msg == nullptr) {
        return refuse(EINVAL, "tw_writemsg: ep and msg cannot be NULL");
    }
    if (const int error = check_send_flags(flags); error != 0) {
        return error;
    }
    const Guard guard(ep->worker());
    return RemoteMemory::of(ep->worker())
        .put(*ep, {msg->iov, msg->iov_count, msg->addr, msg->rma_iov, msg->rma_iov_count, msg->data,
                   msg->context, ep->message_send_flags(flags)});
}

int tw_inject_write(tw_ep* ep, const void* buffer, size_t length, tw_addr dest,
                    uint64_t remote_address, uint64_t key) {
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    const iovec iov{const_cast<void*>(buffer), length};
    return put(ep, &iov, 1, 0, dest, remote_address, key, nullptr, TW_INJECT);
}

int tw_writedata(tw_ep* ep, const void* buffer, size_t length, uint64_t data, tw_addr dest,
                 uint64_t remote_address, uint64_t key, void* context) {
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    const iovec iov{const_cast<void*>(buffer), length};
    return put(ep, &iov, 1, data, dest, remote_address, key, context,
               ep->send_flags() | TW_REMOTE_CQ_DATA);
}

int tw_inject_writedata(tw_ep* ep, const void* buffer, size_t length, uint64_t data, tw_addr dest,
                        uint64_t remote_address, uint64_t key) {
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    const iovec iov{const_cast<void*>(buffer), length};
    return put(ep, &iov, 1, data, dest, remote_address, key, nullptr,
               TW_INJECT | TW_REMOTE_CQ_DATA);
}

int tw_read(tw_ep* ep, void* buffer, size_t length, tw_addr source, uint64_t remote_address,
            uint64_t key, void* context) {
    const iovec iov{buffer, length};
    return tw_readv(ep, &iov, 1, source, remote_address, key, context);
}

int tw_readv(tw_ep* ep, const iovec* iov, size_t count, tw_addr source, uint64_t remote_address,
             uint64_t key, void* context) {
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    const tw_rma_iov remote{remote_address, length_of(iov, count), key};
    const Guard guard(ep->worker());
    return RemoteMemory::of(ep->worker())
        .get(*ep, {iov, count, source, &remote, 1, 0, context, ep->send_flags()});
}

int tw_readmsg(tw_ep* ep, const tw_msg_rma* msg, uint64_t flags) {
    if (ep == nullptr || msg == nullptr) {
        return refuse(EINVAL, "tw_readmsg: ep and msg cannot be NULL");
    }
    if ((flags & ~kReadFlags) != 0 || !one_level_at_most(flags)) {
        return refuse(EINVAL,
                      "tw_readmsg takes TW_COMPLETION, TW_MORE, TW_FENCE and one completion level "
                      "at most");
    }
    const Guard guard(ep->worker());
    return RemoteMemory::of(ep->worker())
        .get(*ep, {msg->iov, msg->iov_count, msg->addr, msg->rma_iov, msg->rma_iov_count, 0,
                   msg->context, ep->message_send_flags(flags)});
}

int tw_ep_flush(tw_ep* ep, tw_addr dest, void* context) {
    if (ep == nullptr) {
        return refuse(EINVAL, "tw_ep_flush: ep cannot be NULL");
    }
    const Guard guard(ep->worker());
    return RemoteMemory::of(ep->worker()).flush(*ep, dest, context);
}
