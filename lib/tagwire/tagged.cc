// SPDX-License-Identifier: BSD-3-Clause
// The calls of tagwire/tagged.h.
#include "tagwire/tagged.h"

#include "lib/tagwire/calls.h"
#include "lib/tagwire/guard.h"
#include "lib/tagwire/plain.h"

using namespace tagwire;
using transport::MessageKind;

namespace {

constexpr const char* kNoEndpoint = "a tagged call: ep cannot be NULL";

int send(tw_ep* ep, const iovec* iov, size_t count, tw_addr dest, uint64_t tag, uint64_t data,
         void* context, uint64_t flags) {
    const Guard guard(ep->worker());
    return ep->send({iov, count, dest, tag, data, context, flags, MessageKind::kTagged});
}

int receive(tw_ep* ep, const iovec* iov, size_t count, tw_addr source, uint64_t tag,
            uint64_t ignore, void* context, uint64_t flags) {
    const Guard guard(ep->worker());
    return ep->receive({iov, count, source, tag, ignore, context, flags, MessageKind::kTagged});
}

[[gnu::noinline]] int send(tw_ep* ep, const void* buffer, size_t length, tw_addr dest, uint64_t tag,
                           void* context) {
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    const iovec iov{const_cast<void*>(buffer), length};
    return send(ep, &iov, 1, dest, tag, 0, context, ep->send_flags());
}

[[gnu::noinline]] int receive(tw_ep* ep, void* buffer, size_t length, tw_addr source, uint64_t tag,
                              uint64_t ignore, void* context) {
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    const iovec iov{buffer, length};
    return receive(ep, &iov, 1, source, tag, ignore, context, ep->receive_flags());
}

}  // namespace

int tw_tsend(tw_ep* ep, const void* buffer, size_t length, tw_addr dest, uint64_t tag,
             void* context) {
    if (ep != nullptr && ep->takes_plain_send(buffer, length, dest)) [[likely]] {
        return ep->send_plain<false>(buffer, length, dest, tag, context, ep->plain_end());
    }
    return send(ep, buffer, length, dest, tag, context);
}

int tw_tsendv(tw_ep* ep, const iovec* iov, size_t count, tw_addr dest, uint64_t tag,
              void* context) {
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    return send(ep, iov, count, dest, tag, 0, context, ep->send_flags());
}

int tw_tsendmsg(tw_ep* ep, const tw_msg_tagged* msg, uint64_t flags) {
    if (ep != nullptr && msg != nullptr && ep->takes_plain_copy(*msg, flags)) {
        constexpr SendRequest::End kEnd{.usual = true, .silent = false, .completed = false};
        return ep->send_plain<true>(msg->iov->iov_base, msg->iov->iov_len, msg->addr, msg->tag,
                                    msg->context, kEnd);
    }
    if (ep == nullptr || msg == nullptr) {
        return refuse(EINVAL, "tw_tsendmsg: ep and msg cannot be NULL");
    }
    if (const int error = check_send_flags(flags); error != 0) {
        return error;
    }
    return send(ep, msg->iov, msg->iov_count, msg->addr, msg->tag, msg->data, msg->context,
                ep->message_send_flags(flags));
}

int tw_tinject(tw_ep* ep, const void* buffer, size_t length, tw_addr dest, uint64_t tag) {
    if (ep != nullptr && ep->takes_plain_inject(buffer, length, dest)) [[likely]] {
        constexpr SendRequest::End kEnd{.usual = false, .silent = true, .completed = false};
        return ep->send_plain<true>(buffer, length, dest, tag, nullptr, kEnd);
    }
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    const iovec iov{const_cast<void*>(buffer), length};
    return send(ep, &iov, 1, dest, tag, 0, nullptr, TW_INJECT);
}

int tw_tsenddata(tw_ep* ep, const void* buffer, size_t length, uint64_t data, tw_addr dest,
                 uint64_t tag, void* context) {
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    const iovec iov{const_cast<void*>(buffer), length};
    return send(ep, &iov, 1, dest, tag, data, context, ep->send_flags() | TW_REMOTE_CQ_DATA);
}

int tw_tinjectdata(tw_ep* ep, const void* buffer, size_t length, uint64_t data, tw_addr dest,
                   uint64_t tag) {
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    const iovec iov{const_cast<void*>(buffer), length};
    return send(ep, &iov, 1, dest, tag, data, nullptr, TW_INJECT | TW_REMOTE_CQ_DATA);
}

int tw_trecv(tw_ep* ep, void* buffer, size_t length, tw_addr source, uint64_t tag, uint64_t ignore,
             void* context) {
    if (ep != nullptr && ep->takes_plain_receive(buffer, length, source, MessageKind::kTagged))
        [[likely]] {
        return ep->receive_plain(buffer, length, source, tag, ignore, context,
                                 MessageKind::kTagged);
    }
    return receive(ep, buffer, length, source, tag, ignore, context);
}

int tw_trecvv(tw_ep* ep, const iovec* iov, size_t count, tw_addr source, uint64_t tag,
              uint64_t ignore, void* context) {
    if (ep == nullptr) {
        return refuse(EINVAL, kNoEndpoint);
    }
    if (count == 1 && iov != nullptr &&
        ep->takes_plain_receive(iov->iov_base, iov->iov_len, source, MessageKind::kTagged)) {
        return ep->receive_plain(iov->iov_base, iov->iov_len, source, tag, ignore, context,
                                 MessageKind::kTagged);
    }
    return receive(ep, iov, count, source, tag, ignore, context, ep->receive_flags());
}

int tw_trecvmsg(tw_ep* ep, const tw_msg_tagged* msg, uint64_t flags) {
    if (ep == nullptr || msg == nullptr) {
        return refuse(EINVAL, "tw_trecvmsg: ep and msg cannot be NULL");
    }
    if ((flags & ~kTaggedReceiveFlags) != 0) {
        return refuse(EINVAL,
                      "tw_trecvmsg takes TW_COMPLETION, TW_MORE, TW_MULTI_RECV, TW_AUTH_KEY, "
                      "TW_PEEK, TW_CLAIM and TW_DISCARD");
    }
    return receive(ep, msg->iov, msg->iov_count, msg->addr, msg->tag, msg->ignore, msg->context,
                   ep->message_receive_flags(flags));
}
