// SPDX-License-Identifier: BSD-3-Clause
// The calls of tagwire/msg.h.
#include "tagwire/msg.h"

#include "lib/tagwire/calls.h"
#include "lib/tagwire/guard.h"
#include "lib/tagwire/plain.h"

using namespace tagwire;
using transport::MessageKind;

namespace {

constexpr const char* kNoEndpoint = "an untagged call: ep cannot be NULL";

int send(tw_ep* ep, const iovec* iov, size_t count, tw_addr dest, uint64_t data, void* context,
         uint64_t flags) {
    const Guard guard(ep->worker());
    return ep->send({iov, count, dest, 0, data, context, flags, MessageKind::kUntagged});
}

int receive(tw_ep* ep, const iovec* iov, size_t count, tw_addr source, void* context,
            uint64_t flags) {
    const Guard guard(ep->worker());
    return ep->receive({iov, count, source, 0, UINT64_MAX, context, flags, MessageKind::kUntagged});
}

[[gnu::noinline]] int receive(tw_ep* ep, void* buffer, size_t length, tw_addr source,
                              void* context) {
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    const iovec iov{buffer, length};
    return receive(ep, &iov, 1, source, context, ep->receive_flags());
}

}  // namespace

int tw_send(tw_ep* ep, const void* buffer, size_t length, tw_addr dest, void* context) {
    const iovec iov{const_cast<void*>(buffer), length};
    return tw_sendv(ep, &iov, 1, dest, context);
}

int tw_sendv(tw_ep* ep, const iovec* iov, size_t count, tw_addr dest, void* context) {
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    return send(ep, iov, count, dest, 0, context, ep->send_flags());
}

int tw_sendmsg(tw_ep* ep, const tw_msg* msg, uint64_t flags) {
    if (ep == nullptr || msg == nullptr) {
        return refuse(EINVAL, "tw_sendmsg: ep and msg cannot be NULL");
    }
    if (const int error = check_send_flags(flags); error != 0) {
        return error;
    }
    return send(ep, msg->iov, msg->iov_count, msg->addr, msg->data, msg->context,
                ep->message_send_flags(flags));
}

int tw_inject(tw_ep* ep, const void* buffer, size_t length, tw_addr dest) {
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    const iovec iov{const_cast<void*>(buffer), length};
    return send(ep, &iov, 1, dest, 0, nullptr, TW_INJECT);
}

int tw_senddata(tw_ep* ep, const void* buffer, size_t length, uint64_t data, tw_addr dest,
                void* context) {
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    const iovec iov{const_cast<void*>(buffer), length};
    return send(ep, &iov, 1, dest, data, context, ep->send_flags() | TW_REMOTE_CQ_DATA);
}

int tw_injectdata(tw_ep* ep, const void* buffer, size_t length, uint64_t data, tw_addr dest) {
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    const iovec iov{const_cast<void*>(buffer), length};
    return send(ep, &iov, 1, dest, data, nullptr, TW_INJECT | TW_REMOTE_CQ_DATA);
}

int tw_recv(tw_ep* ep, void* buffer, size_t length, tw_addr source, void* context) {
    if (ep != nullptr && ep->takes_plain_receive(buffer, length, source, MessageKind::kUntagged))
        [[likely]] {
        return ep->receive_plain(buffer, length, source, 0, UINT64_MAX, context,
                                 MessageKind::kUntagged);
    }
    return receive(ep, buffer, length, source, context);
}

int tw_recvv(tw_ep* ep, const iovec* iov, size_t count, tw_addr source, void* context) {
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    return receive(ep, iov, count, source, context, ep->receive_flags());
}

int tw_recvmsg(tw_ep* ep, const tw_msg* msg, uint64_t flags) {
    if (ep == nullptr || msg == nullptr) {
        return refuse(EINVAL, "tw_recvmsg: ep and msg cannot be NULL");
    }
    if ((flags & ~kReceiveFlags) != 0) {
        return refuse(EINVAL,
                      "tw_recvmsg takes TW_COMPLETION, TW_MORE, TW_MULTI_RECV, TW_AUTH_KEY");
    }
    return receive(ep, msg->iov, msg->iov_count, msg->addr, msg->context,
                   ep->message_receive_flags(flags));
}
