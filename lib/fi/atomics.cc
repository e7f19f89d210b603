// SPDX-License-Identifier: BSD-3-Clause
// Atomics: the core's calls under libfabric's names; datatypes and operations have its numbers.
#include <fmt/format.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>

#include "lib/fi/deferred.h"
#include "lib/fi/flags.h"
#include "lib/fi/post.h"
#include "lib/fi/refusal.h"

namespace tagwire::fi {
namespace {

static_assert(static_cast<int>(FI_UINT64) == static_cast<int>(TW_UINT64) &&
              static_cast<int>(FI_DOUBLE) == static_cast<int>(TW_DOUBLE) &&
              static_cast<int>(FI_MSWAP) == static_cast<int>(TW_MSWAP));
static_assert(sizeof(fi_ioc) == sizeof(tw_ioc) && sizeof(fi_rma_ioc) == sizeof(tw_rma_ioc));

// FI_TAGGED, FI_RMA and FI_COLLECTIVE say what else the memory is used for; it is all one here.
constexpr uint64_t kAtomicCallFlags =
    (kSendCallFlags & ~FI_REMOTE_CQ_DATA) | FI_TAGGED | FI_RMA | FI_COLLECTIVE;

bool is_known(fi_datatype datatype, fi_op op) {
    return datatype <= FI_DOUBLE && op <= FI_MSWAP;
}
int unknown(fi_datatype datatype, fi_op op) {
    return refuse(-FI_EOPNOTSUPP, FI_LOG_EP_DATA,
                  fmt::format("datatypes end with FI_DOUBLE, and operations with FI_MSWAP; asked "
                              "for are {} and {}",
                              static_cast<unsigned>(datatype), static_cast<unsigned>(op)));
}
tw_datatype to_core(fi_datatype datatype) {
    return static_cast<tw_datatype>(datatype);
}
tw_op to_core(fi_op op) {
    return static_cast<tw_op>(op);
}
const tw_ioc* to_core(const fi_ioc* ioc) {
    return reinterpret_cast<const tw_ioc*>(ioc);
}
tw_msg_atomic to_core(const Endpoint& ep, const fi_msg_atomic& msg) {
    return {.ioc = to_core(msg.msg_iov),
            .ioc_count = msg.iov_count,
            .addr = ep.dest(msg.addr),
            .rma_ioc = reinterpret_cast<const tw_rma_ioc*>(msg.rma_iov),
            .rma_ioc_count = msg.rma_iov_count,
            .datatype = to_core(msg.datatype),
            .op = to_core(msg.op),
            .context = msg.context,
            .data = 0};
}

// What the core does not know is refused here: its enumerations end earlier.
template <class Call>
ssize_t post(fid_ep* ep, fi_datatype datatype, fi_op op, Call call, uint64_t flags = 0) {
    if (!is_known(datatype, op)) {
        return unknown(datatype, op);
    }
    if ((flags & ~kAtomicCallFlags) != 0) {
        return refuse_flags("an atomic", flags, kAtomicCallFlags);
    }
    return send(ep, call, (flags & FI_MORE) != 0);
}

ssize_t write(fid_ep* ep, const void* buffer, size_t count, void*, fi_addr_t dest, uint64_t address,
              uint64_t key, fi_datatype datatype, fi_op op, void* context) {
    return post(ep, datatype, op, [&](Endpoint& e) {
        return tw_atomic(e.ep, buffer, count, e.dest(dest), address, key, to_core(datatype),
                         to_core(op), context);
    });
}

ssize_t writev(fid_ep* ep, const fi_ioc* iov, void**, size_t count, fi_addr_t dest,
               uint64_t address, uint64_t key, fi_datatype datatype, fi_op op, void* context) {
    return post(ep, datatype, op, [&](Endpoint& e) {
        return tw_atomicv(e.ep, to_core(iov), count, e.dest(dest), address, key, to_core(datatype),
                          to_core(op), context);
    });
}

ssize_t writemsg(fid_ep* ep, const fi_msg_atomic* msg, uint64_t flags) {
    if ((flags & FI_TRIGGER) != 0) [[unlikely]] {
        if (!is_known(msg->datatype, msg->op)) {
            return unknown(msg->datatype, msg->op);
        }
        if ((flags & ~(kAtomicCallFlags | FI_TRIGGER)) != 0) {
            return refuse_flags("a triggered atomic", flags, kAtomicCallFlags | FI_TRIGGER);
        }
        auto& endpoint = object_of<Endpoint>(ep);
        const Guard guard(*endpoint.domain);
        fi_msg_atomic plain = *msg;
        plain.addr = endpoint.dest(msg->addr);
        return trigger(*endpoint.core, plain, flags & ~FI_TRIGGER);
    }
    return post(
        ep, msg->datatype, msg->op,
        [&](Endpoint& e) {
            const tw_msg_atomic core = to_core(e, *msg);
            return tw_atomicmsg(e.ep, &core, send_flags(flags));
        },
        flags);
}

ssize_t inject(fid_ep* ep, const void* buffer, size_t count, fi_addr_t dest, uint64_t address,
               uint64_t key, fi_datatype datatype, fi_op op) {
    return post(ep, datatype, op, [&](Endpoint& e) {
        return tw_inject_atomic(e.ep, buffer, count, e.dest(dest), address, key, to_core(datatype),
                                to_core(op));
    });
}

ssize_t readwrite(fid_ep* ep, const void* buffer, size_t count, void*, void* result, void*,
                  fi_addr_t dest, uint64_t address, uint64_t key, fi_datatype datatype, fi_op op,
                  void* context) {
    return post(ep, datatype, op, [&](Endpoint& e) {
        return tw_fetch_atomic(e.ep, buffer, count, result, e.dest(dest), address, key,
                               to_core(datatype), to_core(op), context);
    });
}

ssize_t readwritev(fid_ep* ep, const fi_ioc* iov, void**, size_t count, fi_ioc* results, void**,
                   size_t result_count, fi_addr_t dest, uint64_t address, uint64_t key,
                   fi_datatype datatype, fi_op op, void* context) {
    return post(ep, datatype, op, [&](Endpoint& e) {
        return tw_fetch_atomicv(e.ep, to_core(iov), count, to_core(results), result_count,
                                e.dest(dest), address, key, to_core(datatype), to_core(op),
                                context);
    });
}

ssize_t readwritemsg(fid_ep* ep, const fi_msg_atomic* msg, fi_ioc* results, void**,
                     size_t result_count, uint64_t flags) {
    return post(
        ep, msg->datatype, msg->op,
        [&](Endpoint& e) {
            const tw_msg_atomic core = to_core(e, *msg);
            return tw_fetch_atomicmsg(e.ep, &core, to_core(results), result_count,
                                      send_flags(flags));
        },
        flags);
}

ssize_t compwrite(fid_ep* ep, const void* buffer, size_t count, void*, const void* compare, void*,
                  void* result, void*, fi_addr_t dest, uint64_t address, uint64_t key,
                  fi_datatype datatype, fi_op op, void* context) {
    return post(ep, datatype, op, [&](Endpoint& e) {
        return tw_compare_atomic(e.ep, buffer, count, compare, result, e.dest(dest), address, key,
                                 to_core(datatype), to_core(op), context);
    });
}

ssize_t compwritev(fid_ep* ep, const fi_ioc* iov, void**, size_t count, const fi_ioc* compares,
                   void**, size_t compare_count, fi_ioc* results, void**, size_t result_count,
                   fi_addr_t dest, uint64_t address, uint64_t key, fi_datatype datatype, fi_op op,
                   void* context) {
    return post(ep, datatype, op, [&](Endpoint& e) {
        return tw_compare_atomicv(e.ep, to_core(iov), count, to_core(compares), compare_count,
                                  to_core(results), result_count, e.dest(dest), address, key,
                                  to_core(datatype), to_core(op), context);
    });
}

ssize_t compwritemsg(fid_ep* ep, const fi_msg_atomic* msg, const fi_ioc* compares, void**,
                     size_t compare_count, fi_ioc* results, void**, size_t result_count,
                     uint64_t flags) {
    return post(
        ep, msg->datatype, msg->op,
        [&](Endpoint& e) {
            const tw_msg_atomic core = to_core(e, *msg);
            return tw_compare_atomicmsg(e.ep, &core, to_core(compares), compare_count,
                                        to_core(results), result_count, send_flags(flags));
        },
        flags);
}

template <uint64_t Kind>
int valid(fid_ep* handle, fi_datatype datatype, fi_op op, size_t* count) {
    if (!is_known(datatype, op)) {
        return -FI_EOPNOTSUPP;
    }
    auto& ep = object_of<Endpoint>(handle);
    const Guard guard(*ep.domain);
    size_t elements = 0;
    const int result = tw_atomic_valid(ep.ep, to_core(datatype), to_core(op), Kind, &elements);
    if (result == 0 && count != nullptr) {
        *count = elements;
    }
    return result;
}

constexpr size_t size_of(fi_datatype datatype) {
    switch (datatype) {
        case FI_INT8:
        case FI_UINT8:
            return 1;
        case FI_INT16:
        case FI_UINT16:
            return 2;
        case FI_INT32:
        case FI_UINT32:
        case FI_FLOAT:
            return 4;
        default:
            return 8;
    }
}

}  // namespace

int query_atomic(fid_domain*, fi_datatype datatype, fi_op op, fi_atomic_attr* attr,
                 uint64_t flags) {
    if ((flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC | FI_TAGGED)) != 0 || attr == nullptr) {
        return refuse(-FI_EINVAL, FI_LOG_DOMAIN,
                      "fi_query_atomic takes FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC and FI_TAGGED, and "
                      "attr cannot be NULL");
    }
    if (!is_known(datatype, op) || (flags & FI_TAGGED) != 0) {
        return -FI_EOPNOTSUPP;
    }
    uint64_t kind = 0;
    if ((flags & FI_COMPARE_ATOMIC) != 0) {
        kind = TW_COMPARE_ATOMIC;
    } else if ((flags & FI_FETCH_ATOMIC) != 0) {
        kind = TW_FETCH_ATOMIC;
    }
    size_t count = 0;
    const int result = tw_atomic_valid(nullptr, to_core(datatype), to_core(op), kind, &count);
    if (result == 0) {
        attr->count = count;
        attr->size = size_of(datatype);
    }
    return result;
}

fi_ops_atomic atomic_ops = {
    .size = sizeof(fi_ops_atomic),
    .write = write,
    .writev = writev,
    .writemsg = writemsg,
    .inject = inject,
    .readwrite = readwrite,
    .readwritev = readwritev,
    .readwritemsg = readwritemsg,
    .compwrite = compwrite,
    .compwritev = compwritev,
    .compwritemsg = compwritemsg,
    .writevalid = valid<0>,
    .readwritevalid = valid<TW_FETCH_ATOMIC>,
    .compwritevalid = valid<TW_COMPARE_ATOMIC>,
};

}  // namespace tagwire::fi
