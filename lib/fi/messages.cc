// SPDX-License-Identifier: BSD-3-Clause
// Tagged and untagged messages: the core's calls under libfabric's names. Memory descriptors
// (`desc`) are ignored, since local memory needs no registration.
#include <rdma/fi_errno.h>

#include <type_traits>

#include "lib/fi/deferred.h"
#include "lib/fi/endpoint.h"
#include "lib/fi/flags.h"
#include "lib/fi/post.h"
#include "lib/fi/refusal.h"

namespace tagwire::fi {
namespace {

template <class Message>
ssize_t trigger_later(fid_ep* handle, const Message& msg, uint64_t flags, bool receive) {
    const uint64_t taken = receive ? kReceiveCallFlags & ~kAuthKey : kSendCallFlags;
    if ((flags & ~taken) != 0) {
        return refuse_flags("a triggered message", flags, taken);
    }
    auto& ep = object_of<Endpoint>(handle);
    const Guard guard(*ep.domain);
    Message plain = msg;
    if (!receive) {
        plain.addr = ep.dest(msg.addr);
    } else if (std::is_same_v<Message, fi_msg_tagged>) {
        plain.addr = ep.tagged_source(msg.addr);
    } else {
        plain.addr = ep.source(msg.addr);
    }
    return trigger(*ep.core, plain, flags, receive);
}

ssize_t tsend(fid_ep* ep, const void* buffer, size_t length, void*, fi_addr_t dest, uint64_t tag,
              void* context) {
    return send(ep, [&](Endpoint& e) {
        return tw_tsend(e.ep, buffer, length, e.dest(dest), tag, context);
    });
}

ssize_t tsendv(fid_ep* ep, const iovec* iov, void**, size_t count, fi_addr_t dest, uint64_t tag,
               void* context) {
    return send(
        ep, [&](Endpoint& e) { return tw_tsendv(e.ep, iov, count, e.dest(dest), tag, context); });
}

ssize_t tsendmsg(fid_ep* ep, const fi_msg_tagged* msg, uint64_t flags) {
    if ((flags & FI_TRIGGER) != 0) [[unlikely]] {
        return trigger_later(ep, *msg, flags & ~FI_TRIGGER, false);
    }
    if ((flags & ~kSendCallFlags) != 0) {
        return refuse_flags("fi_tsendmsg", flags, kSendCallFlags);
    }
    return send(
        ep,
        [&](Endpoint& e) {
            const tw_msg_tagged core{.iov = msg->msg_iov,
                                     .iov_count = msg->iov_count,
                                     .addr = e.dest(msg->addr),
                                     .tag = msg->tag,
                                     .ignore = 0,
                                     .context = msg->context,
                                     .data = msg->data};
            return tw_tsendmsg(e.ep, &core, send_flags(flags));
        },
        (flags & FI_MORE) != 0);
}

ssize_t tinject(fid_ep* ep, const void* buffer, size_t length, fi_addr_t dest, uint64_t tag) {
    return send(ep,
                [&](Endpoint& e) { return tw_tinject(e.ep, buffer, length, e.dest(dest), tag); });
}

ssize_t tsenddata(fid_ep* ep, const void* buffer, size_t length, void*, uint64_t data,
                  fi_addr_t dest, uint64_t tag, void* context) {
    return send(ep, [&](Endpoint& e) {
        return tw_tsenddata(e.ep, buffer, length, data, e.dest(dest), tag, context);
    });
}

ssize_t tinjectdata(fid_ep* ep, const void* buffer, size_t length, uint64_t data, fi_addr_t dest,
                    uint64_t tag) {
    return send(ep, [&](Endpoint& e) {
        return tw_tinjectdata(e.ep, buffer, length, data, e.dest(dest), tag);
    });
}

ssize_t trecv(fid_ep* ep, void* buffer, size_t length, void*, fi_addr_t source, uint64_t tag,
              uint64_t ignore, void* context) {
    return receive(ep, [&](Endpoint& e) {
        return tw_trecv(e.ep, buffer, length, e.tagged_source(source), tag, ignore, context);
    });
}

ssize_t trecvv(fid_ep* ep, const iovec* iov, void**, size_t count, fi_addr_t source, uint64_t tag,
               uint64_t ignore, void* context) {
    return receive(ep, [&](Endpoint& e) {
        return tw_trecvv(e.ep, iov, count, e.tagged_source(source), tag, ignore, context);
    });
}

ssize_t trecvmsg(fid_ep* ep, const fi_msg_tagged* msg, uint64_t flags) {
    if ((flags & FI_TRIGGER) != 0) [[unlikely]] {
        return trigger_later(ep, *msg, flags & ~FI_TRIGGER, true);
    }
    if ((flags & ~kReceiveCallFlags) != 0) {
        return refuse_flags("fi_trecvmsg", flags, kReceiveCallFlags);
    }
    return receive(ep, [&](Endpoint& e) {
        if ((flags & FI_PEEK) != 0) {
            // A program that looks again and again makes progress by it.
            e.domain->progress();
        }
        const tw_msg_tagged core{.iov = msg->msg_iov,
                                 .iov_count = msg->iov_count,
                                 .addr = (flags & kAuthKey) != 0 ? msg->addr - kKeyAddresses
                                                                 : e.tagged_source(msg->addr),
                                 .tag = msg->tag,
                                 .ignore = msg->ignore,
                                 .context = msg->context,
                                 .data = 0};
        return tw_trecvmsg(e.ep, &core, receive_flags(flags));
    });
}

ssize_t send_plain(fid_ep* ep, const void* buffer, size_t length, void*, fi_addr_t dest,
                   void* context) {
    return send(ep,
                [&](Endpoint& e) { return tw_send(e.ep, buffer, length, e.dest(dest), context); });
}

ssize_t sendv(fid_ep* ep, const iovec* iov, void**, size_t count, fi_addr_t dest, void* context) {
    return send(ep, [&](Endpoint& e) { return tw_sendv(e.ep, iov, count, e.dest(dest), context); });
}

tw_msg to_core(const fi_msg& msg, tw_addr address) {
    return {.iov = msg.msg_iov,
            .iov_count = msg.iov_count,
            .addr = address,
            .context = msg.context,
            .data = msg.data};
}

ssize_t sendmsg(fid_ep* ep, const fi_msg* msg, uint64_t flags) {
    if ((flags & FI_TRIGGER) != 0) [[unlikely]] {
        return trigger_later(ep, *msg, flags & ~FI_TRIGGER, false);
    }
    if ((flags & ~kSendCallFlags) != 0) {
        return refuse_flags("fi_sendmsg", flags, kSendCallFlags);
    }
    return send(
        ep,
        [&](Endpoint& e) {
            const tw_msg core = to_core(*msg, e.dest(msg->addr));
            return tw_sendmsg(e.ep, &core, send_flags(flags));
        },
        (flags & FI_MORE) != 0);
}

ssize_t inject(fid_ep* ep, const void* buffer, size_t length, fi_addr_t dest) {
    return send(ep, [&](Endpoint& e) { return tw_inject(e.ep, buffer, length, e.dest(dest)); });
}

ssize_t senddata(fid_ep* ep, const void* buffer, size_t length, void*, uint64_t data,
                 fi_addr_t dest, void* context) {
    return send(ep, [&](Endpoint& e) {
        return tw_senddata(e.ep, buffer, length, data, e.dest(dest), context);
    });
}

ssize_t injectdata(fid_ep* ep, const void* buffer, size_t length, uint64_t data, fi_addr_t dest) {
    return send(
        ep, [&](Endpoint& e) { return tw_injectdata(e.ep, buffer, length, data, e.dest(dest)); });
}

ssize_t recv(fid_ep* ep, void* buffer, size_t length, void*, fi_addr_t source, void* context) {
    return receive(
        ep, [&](Endpoint& e) { return tw_recv(e.ep, buffer, length, e.source(source), context); });
}

ssize_t recvv(fid_ep* ep, const iovec* iov, void**, size_t count, fi_addr_t source, void* context) {
    return receive(
        ep, [&](Endpoint& e) { return tw_recvv(e.ep, iov, count, e.source(source), context); });
}

ssize_t recvmsg(fid_ep* ep, const fi_msg* msg, uint64_t flags) {
    if ((flags & FI_TRIGGER) != 0) [[unlikely]] {
        return trigger_later(ep, *msg, flags & ~FI_TRIGGER, true);
    }
    if ((flags & ~kReceiveCallFlags) != 0) {
        return refuse_flags("fi_recvmsg", flags, kReceiveCallFlags);
    }
    return receive(ep, [&](Endpoint& e) {
        const tw_msg core = to_core(
            *msg, (flags & kAuthKey) != 0 ? msg->addr - kKeyAddresses : e.source(msg->addr));
        return tw_recvmsg(e.ep, &core, receive_flags(flags));
    });
}

}  // namespace

fi_ops_msg message_ops = {
    .size = sizeof(fi_ops_msg),
    .recv = recv,
    .recvv = recvv,
    .recvmsg = recvmsg,
    .send = send_plain,
    .sendv = sendv,
    .sendmsg = sendmsg,
    .inject = inject,
    .senddata = senddata,
    .injectdata = injectdata,
};

fi_ops_tagged tagged_ops = {
    .size = sizeof(fi_ops_tagged),
    .recv = trecv,
    .recvv = trecvv,
    .recvmsg = trecvmsg,
    .send = tsend,
    .sendv = tsendv,
    .sendmsg = tsendmsg,
    .inject = tinject,
    .senddata = tsenddata,
    .injectdata = tinjectdata,
};

}  // namespace tagwire::fi
