// SPDX-License-Identifier: BSD-3-Clause
// Puts and gets: the core's calls under libfabric's names.
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <algorithm>

#include "lib/fi/deferred.h"
#include "lib/fi/flags.h"
#include "lib/fi/info.h"
#include "lib/fi/post.h"
#include "lib/fi/refusal.h"

namespace tagwire::fi {
namespace {

constexpr uint64_t kReadCallFlags = FI_COMPLETION | FI_MORE | FI_FENCE | FI_TRANSMIT_COMPLETE |
                                    FI_DELIVERY_COMPLETE | FI_INJECT_COMPLETE;

static_assert(sizeof(fi_rma_iov) == sizeof(tw_rma_iov));

// The same fields in the same order.
const tw_rma_iov* to_core(const fi_rma_iov* iov) {
    static_assert(offsetof(fi_rma_iov, len) == offsetof(tw_rma_iov, length) &&
                  offsetof(fi_rma_iov, key) == offsetof(tw_rma_iov, key));
    return reinterpret_cast<const tw_rma_iov*>(iov);
}

tw_msg_rma to_core(const Endpoint& ep, const fi_msg_rma& msg) {
    return {.iov = msg.msg_iov,
            .iov_count = msg.iov_count,
            .addr = ep.dest(msg.addr),
            .rma_iov = to_core(msg.rma_iov),
            .rma_iov_count = msg.rma_iov_count,
            .context = msg.context,
            .data = msg.data};
}

ssize_t trigger_later(fid_ep* handle, const fi_msg_rma& msg, uint64_t flags, bool read) {
    const uint64_t taken = read ? kReadCallFlags : kSendCallFlags;
    if ((flags & ~taken) != 0) {
        return refuse_flags("a triggered put or get", flags, taken);
    }
    auto& ep = object_of<Endpoint>(handle);
    const Guard guard(*ep.domain);
    fi_msg_rma plain = msg;
    plain.addr = ep.dest(msg.addr);
    return trigger(*ep.core, plain, flags, read);
}

ssize_t read(fid_ep* ep, void* buffer, size_t length, void*, fi_addr_t source, uint64_t address,
             uint64_t key, void* context) {
    return send(ep, [&](Endpoint& e) {
        return tw_read(e.ep, buffer, length, e.dest(source), address, key, context);
    });
}

ssize_t readv(fid_ep* ep, const iovec* iov, void**, size_t count, fi_addr_t source,
              uint64_t address, uint64_t key, void* context) {
    return send(ep, [&](Endpoint& e) {
        return tw_readv(e.ep, iov, count, e.dest(source), address, key, context);
    });
}

ssize_t readmsg(fid_ep* ep, const fi_msg_rma* msg, uint64_t flags) {
    if ((flags & FI_TRIGGER) != 0) [[unlikely]] {
        return trigger_later(ep, *msg, flags & ~FI_TRIGGER, true);
    }
    if ((flags & ~kReadCallFlags) != 0) {
        return refuse_flags("fi_readmsg", flags, kReadCallFlags);
    }
    return send(
        ep,
        [&](Endpoint& e) {
            const tw_msg_rma core = to_core(e, *msg);
            return tw_readmsg(e.ep, &core, send_flags(flags));
        },
        (flags & FI_MORE) != 0);
}

ssize_t write(fid_ep* ep, const void* buffer, size_t length, void*, fi_addr_t dest,
              uint64_t address, uint64_t key, void* context) {
    return send(ep, [&](Endpoint& e) {
        return tw_write(e.ep, buffer, length, e.dest(dest), address, key, context);
    });
}

ssize_t writev(fid_ep* ep, const iovec* iov, void**, size_t count, fi_addr_t dest, uint64_t address,
               uint64_t key, void* context) {
    return send(ep, [&](Endpoint& e) {
        return tw_writev(e.ep, iov, count, e.dest(dest), address, key, context);
    });
}

ssize_t writemsg(fid_ep* ep, const fi_msg_rma* msg, uint64_t flags) {
    if ((flags & FI_TRIGGER) != 0) [[unlikely]] {
        return trigger_later(ep, *msg, flags & ~FI_TRIGGER, false);
    }
    if ((flags & ~kSendCallFlags) != 0) {
        return refuse_flags("fi_writemsg", flags, kSendCallFlags);
    }
    return send(
        ep,
        [&](Endpoint& e) {
            const tw_msg_rma core = to_core(e, *msg);
            return tw_writemsg(e.ep, &core, send_flags(flags));
        },
        (flags & FI_MORE) != 0);
}

ssize_t inject(fid_ep* ep, const void* buffer, size_t length, fi_addr_t dest, uint64_t address,
               uint64_t key) {
    return send(ep, [&](Endpoint& e) {
        return tw_inject_write(e.ep, buffer, length, e.dest(dest), address, key);
    });
}

ssize_t writedata(fid_ep* ep, const void* buffer, size_t length, void*, uint64_t data,
                  fi_addr_t dest, uint64_t address, uint64_t key, void* context) {
    return send(ep, [&](Endpoint& e) {
        return tw_writedata(e.ep, buffer, length, data, e.dest(dest), address, key, context);
    });
}

ssize_t injectdata(fid_ep* ep, const void* buffer, size_t length, uint64_t data, fi_addr_t dest,
                   uint64_t address, uint64_t key) {
    return send(ep, [&](Endpoint& e) {
        return tw_inject_writedata(e.ep, buffer, length, data, e.dest(dest), address, key);
    });
}

}  // namespace

fi_ops_rma rma_ops = {
    .size = sizeof(fi_ops_rma),
    .read = read,
    .readv = readv,
    .readmsg = readmsg,
    .write = write,
    .writev = writev,
    .writemsg = writemsg,
    .inject = inject,
    .writedata = writedata,
    .injectdata = injectdata,
};

}  // namespace tagwire::fi
