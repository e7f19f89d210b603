// SPDX-License-Identifier: BSD-3-Clause
// Puts and gets: the core's calls under libfabric's names.
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <algorithm>

#include "lib/fi/flags.h"
#include "lib/fi/info.h"
#include "lib/fi/post.h"

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

tw_msg_rma to_core(const fi_msg_rma& msg) {
    return {.iov = msg.msg_iov,
            .iov_count = msg.iov_count,
            .addr = msg.addr,
            .rma_iov = to_core(msg.rma_iov),
            .rma_iov_count = msg.rma_iov_count,
            .context = msg.context,
            .data = msg.data};
}

ssize_t read(fid_ep* ep, void* buffer, size_t length, void*, fi_addr_t source, uint64_t address,
             uint64_t key, void* context) {
    return send(ep, [&](Endpoint& e) {
        return tw_read(e.ep, buffer, length, source, address, key, context);
    });
}

ssize_t readv(fid_ep* ep, const iovec* iov, void**, size_t count, fi_addr_t source,
              uint64_t address, uint64_t key, void* context) {
    return send(
        ep, [&](Endpoint& e) { return tw_readv(e.ep, iov, count, source, address, key, context); });
}

ssize_t readmsg(fid_ep* ep, const fi_msg_rma* msg, uint64_t flags) {
    if ((flags & ~kReadCallFlags) != 0) {
        return -FI_EINVAL;
    }
    const tw_msg_rma core = to_core(*msg);
    return send(
        ep, [&](Endpoint& e) { return tw_readmsg(e.ep, &core, send_flags(flags)); },
        (flags & FI_MORE) != 0);
}

ssize_t write(fid_ep* ep, const void* buffer, size_t length, void*, fi_addr_t dest,
              uint64_t address, uint64_t key, void* context) {
    return send(ep, [&](Endpoint& e) {
        return tw_write(e.ep, buffer, length, dest, address, key, context);
    });
}

ssize_t writev(fid_ep* ep, const iovec* iov, void**, size_t count, fi_addr_t dest, uint64_t address,
               uint64_t key, void* context) {
    return send(
        ep, [&](Endpoint& e) { return tw_writev(e.ep, iov, count, dest, address, key, context); });
}

ssize_t writemsg(fid_ep* ep, const fi_msg_rma* msg, uint64_t flags) {
    if ((flags & ~kSendCallFlags) != 0) {
        return -FI_EINVAL;
    }
    const tw_msg_rma core = to_core(*msg);
    return send(
        ep, [&](Endpoint& e) { return tw_writemsg(e.ep, &core, send_flags(flags)); },
        (flags & FI_MORE) != 0);
}

ssize_t inject(fid_ep* ep, const void* buffer, size_t length, fi_addr_t dest, uint64_t address,
               uint64_t key) {
    return send(
        ep, [&](Endpoint& e) { return tw_inject_write(e.ep, buffer, length, dest, address, key); });
}

ssize_t writedata(fid_ep* ep, const void* buffer, size_t length, void*, uint64_t data,
                  fi_addr_t dest, uint64_t address, uint64_t key, void* context) {
    return send(ep, [&](Endpoint& e) {
        return tw_writedata(e.ep, buffer, length, data, dest, address, key, context);
    });
}

ssize_t injectdata(fid_ep* ep, const void* buffer, size_t length, uint64_t data, fi_addr_t dest,
                   uint64_t address, uint64_t key) {
    return send(ep, [&](Endpoint& e) {
        return tw_inject_writedata(e.ep, buffer, length, data, dest, address, key);
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
