// SPDX-License-Identifier: BSD-3-Clause
// Handles whose calls without a flags argument have flags of their own: aliases (fi_ep_alias), and
// others that share a core endpoint. Each of these calls is the one that takes a message and flags.
#include <rdma/fi_errno.h>

#include <new>

#include "lib/fi/endpoint.h"
#include "lib/fi/object.h"
#include "lib/fi/refusal.h"

namespace tagwire::fi {
namespace {

uint64_t transmit_flags(fid_ep* ep) {
    return object_of<Endpoint>(ep).transmit_flags;
}
uint64_t receive_flags(fid_ep* ep) {
    return object_of<Endpoint>(ep).receive_flags;
}

iovec whole(const void* buffer, size_t length) {
    return {.iov_base = const_cast<void*>(buffer), .iov_len = length};
}

namespace message {

fi_msg of(const iovec* iov, size_t count, fi_addr_t address, void* context, uint64_t data = 0) {
    return {.msg_iov = iov,
            .desc = nullptr,
            .iov_count = count,
            .addr = address,
            .context = context,
            .data = data};
}

ssize_t recvv(fid_ep* ep, const iovec* iov, void**, size_t count, fi_addr_t source, void* context) {
    const fi_msg msg = of(iov, count, source, context);
    return message_ops.recvmsg(ep, &msg, receive_flags(ep));
}
ssize_t recv(fid_ep* ep, void* buffer, size_t length, void*, fi_addr_t source, void* context) {
    const iovec iov = whole(buffer, length);
    return recvv(ep, &iov, nullptr, 1, source, context);
}
ssize_t sendv(fid_ep* ep, const iovec* iov, void**, size_t count, fi_addr_t dest, void* context) {
    const fi_msg msg = of(iov, count, dest, context);
    return message_ops.sendmsg(ep, &msg, transmit_flags(ep));
}
ssize_t send(fid_ep* ep, const void* buffer, size_t length, void*, fi_addr_t dest, void* context) {
    const iovec iov = whole(buffer, length);
    return sendv(ep, &iov, nullptr, 1, dest, context);
}
ssize_t senddata(fid_ep* ep, const void* buffer, size_t length, void*, uint64_t data,
                 fi_addr_t dest, void* context) {
    const iovec iov = whole(buffer, length);
    const fi_msg msg = of(&iov, 1, dest, context, data);
    return message_ops.sendmsg(ep, &msg, transmit_flags(ep) | FI_REMOTE_CQ_DATA);
}

}  // namespace message

namespace tagged {

fi_msg_tagged of(const iovec* iov, size_t count, fi_addr_t address, uint64_t tag, void* context,
                 uint64_t ignore = 0, uint64_t data = 0) {
    return {.msg_iov = iov,
            .desc = nullptr,
            .iov_count = count,
            .addr = address,
            .tag = tag,
            .ignore = ignore,
            .context = context,
            .data = data};
}

ssize_t recvv(fid_ep* ep, const iovec* iov, void**, size_t count, fi_addr_t source, uint64_t tag,
              uint64_t ignore, void* context) {
    const fi_msg_tagged msg = of(iov, count, source, tag, context, ignore);
    return tagged_ops.recvmsg(ep, &msg, receive_flags(ep));
}
ssize_t recv(fid_ep* ep, void* buffer, size_t length, void*, fi_addr_t source, uint64_t tag,
             uint64_t ignore, void* context) {
    const iovec iov = whole(buffer, length);
    return recvv(ep, &iov, nullptr, 1, source, tag, ignore, context);
}
ssize_t sendv(fid_ep* ep, const iovec* iov, void**, size_t count, fi_addr_t dest, uint64_t tag,
              void* context) {
    const fi_msg_tagged msg = of(iov, count, dest, tag, context);
    return tagged_ops.sendmsg(ep, &msg, transmit_flags(ep));
}
ssize_t send(fid_ep* ep, const void* buffer, size_t length, void*, fi_addr_t dest, uint64_t tag,
             void* context) {
    const iovec iov = whole(buffer, length);
    return sendv(ep, &iov, nullptr, 1, dest, tag, context);
}
ssize_t senddata(fid_ep* ep, const void* buffer, size_t length, void*, uint64_t data,
                 fi_addr_t dest, uint64_t tag, void* context) {
    const iovec iov = whole(buffer, length);
    const fi_msg_tagged msg = of(&iov, 1, dest, tag, context, 0, data);
    return tagged_ops.sendmsg(ep, &msg, transmit_flags(ep) | FI_REMOTE_CQ_DATA);
}

}  // namespace tagged

namespace remote {

using Call = ssize_t (*)(fid_ep*, const fi_msg_rma*, uint64_t);

ssize_t post(fid_ep* ep, Call call, const iovec* iov, size_t count, fi_addr_t peer,
             uint64_t address, uint64_t key, void* context, uint64_t flags, uint64_t data = 0) {
    fi_rma_iov region{.addr = address, .len = 0, .key = key};
    for (size_t i = 0; i < count; ++i) {
        region.len += iov[i].iov_len;
    }
    const fi_msg_rma msg{.msg_iov = iov,
                         .desc = nullptr,
                         .iov_count = count,
                         .addr = peer,
                         .rma_iov = &region,
                         .rma_iov_count = 1,
                         .context = context,
                         .data = data};
    return call(ep, &msg, flags);
}

ssize_t readv(fid_ep* ep, const iovec* iov, void**, size_t count, fi_addr_t source,
              uint64_t address, uint64_t key, void* context) {
    // These mean nothing for a read.
    const uint64_t flags = transmit_flags(ep) & ~(FI_INJECT | FI_MATCH_COMPLETE);
    return post(ep, rma_ops.readmsg, iov, count, source, address, key, context, flags);
}
ssize_t read(fid_ep* ep, void* buffer, size_t length, void*, fi_addr_t source, uint64_t address,
             uint64_t key, void* context) {
    const iovec iov = whole(buffer, length);
    return readv(ep, &iov, nullptr, 1, source, address, key, context);
}
ssize_t writev(fid_ep* ep, const iovec* iov, void**, size_t count, fi_addr_t dest, uint64_t address,
               uint64_t key, void* context) {
    return post(ep, rma_ops.writemsg, iov, count, dest, address, key, context, transmit_flags(ep));
}
ssize_t write(fid_ep* ep, const void* buffer, size_t length, void*, fi_addr_t dest,
              uint64_t address, uint64_t key, void* context) {
    const iovec iov = whole(buffer, length);
    return writev(ep, &iov, nullptr, 1, dest, address, key, context);
}
ssize_t writedata(fid_ep* ep, const void* buffer, size_t length, void*, uint64_t data,
                  fi_addr_t dest, uint64_t address, uint64_t key, void* context) {
    const iovec iov = whole(buffer, length);
    return post(ep, rma_ops.writemsg, &iov, 1, dest, address, key, context,
                transmit_flags(ep) | FI_REMOTE_CQ_DATA, data);
}

}  // namespace remote

namespace atomic {

// The message of a call on `count` elements of `iov`, and the remote elements that it names.
struct Message {
    Message(const fi_ioc* iov, size_t iov_count, fi_addr_t dest, uint64_t address, uint64_t key,
            fi_datatype datatype, fi_op op, void* context)
        : region{.addr = address, .count = 0, .key = key},
          msg{.msg_iov = iov,
              .desc = nullptr,
              .iov_count = iov_count,
              .addr = dest,
              .rma_iov = &region,
              .rma_iov_count = 1,
              .datatype = datatype,
              .op = op,
              .context = context,
              .data = 0} {
        for (size_t i = 0; i < iov_count; ++i) {
            region.count += iov[i].count;
        }
    }
    Message(const Message&) = delete;
    Message& operator=(const Message&) = delete;

    fi_rma_ioc region;
    fi_msg_atomic msg;
};

fi_ioc elements(const void* buffer, size_t count) {
    return {.addr = const_cast<void*>(buffer), .count = count};
}

ssize_t writev(fid_ep* ep, const fi_ioc* iov, void**, size_t count, fi_addr_t dest,
               uint64_t address, uint64_t key, fi_datatype datatype, fi_op op, void* context) {
    const Message message(iov, count, dest, address, key, datatype, op, context);
    return atomic_ops.writemsg(ep, &message.msg, transmit_flags(ep));
}
ssize_t write(fid_ep* ep, const void* buffer, size_t count, void*, fi_addr_t dest, uint64_t address,
              uint64_t key, fi_datatype datatype, fi_op op, void* context) {
    const fi_ioc iov = elements(buffer, count);
    return writev(ep, &iov, nullptr, 1, dest, address, key, datatype, op, context);
}
ssize_t readwritev(fid_ep* ep, const fi_ioc* iov, void**, size_t count, fi_ioc* results, void**,
                   size_t result_count, fi_addr_t dest, uint64_t address, uint64_t key,
                   fi_datatype datatype, fi_op op, void* context) {
    const Message message(iov, count, dest, address, key, datatype, op, context);
    return atomic_ops.readwritemsg(ep, &message.msg, results, nullptr, result_count,
                                   transmit_flags(ep));
}
ssize_t readwrite(fid_ep* ep, const void* buffer, size_t count, void*, void* result, void*,
                  fi_addr_t dest, uint64_t address, uint64_t key, fi_datatype datatype, fi_op op,
                  void* context) {
    const fi_ioc iov = elements(buffer, count);
    fi_ioc results = elements(result, count);
    return readwritev(ep, &iov, nullptr, 1, &results, nullptr, 1, dest, address, key, datatype, op,
                      context);
}
ssize_t compwritev(fid_ep* ep, const fi_ioc* iov, void**, size_t count, const fi_ioc* compares,
                   void**, size_t compare_count, fi_ioc* results, void**, size_t result_count,
                   fi_addr_t dest, uint64_t address, uint64_t key, fi_datatype datatype, fi_op op,
                   void* context) {
    const Message message(iov, count, dest, address, key, datatype, op, context);
    return atomic_ops.compwritemsg(ep, &message.msg, compares, nullptr, compare_count, results,
                                   nullptr, result_count, transmit_flags(ep));
}
ssize_t compwrite(fid_ep* ep, const void* buffer, size_t count, void*, const void* compare, void*,
                  void* result, void*, fi_addr_t dest, uint64_t address, uint64_t key,
                  fi_datatype datatype, fi_op op, void* context) {
    const fi_ioc iov = elements(buffer, count);
    const fi_ioc compares = elements(compare, count);
    fi_ioc results = elements(result, count);
    return compwritev(ep, &iov, nullptr, 1, &compares, nullptr, 1, &results, nullptr, 1, dest,
                      address, key, datatype, op, context);
}

}  // namespace atomic

// The endpoint's table with these calls in place of its own; what has a flags argument, or no flags
// that matter, stays. Made at first use, when the endpoint's tables are there.
template <class Operations, class Replace>
Operations* replaced(const Operations& base, Replace replace) {
    static Operations table = [&] {
        Operations operations = base;
        replace(operations);
        return operations;
    }();
    return &table;
}

int close_alias(fid* handle) {
    auto& alias = object_of<Endpoint>(handle);
    {
        const Guard guard(*alias.domain);
        if (const int result = alias.leave(); result != 0) {
            return result;
        }
    }
    --alias.domain->children;
    delete &alias;
    return 0;
}

}  // namespace

void use_flags(Endpoint& ep, uint64_t transmit, uint64_t receive) {
    ep.transmit_flags = transmit;
    ep.receive_flags = receive;
    ep.fid.msg = replaced(message_ops, [](fi_ops_msg& operations) {
        operations.recv = message::recv;
        operations.recvv = message::recvv;
        operations.send = message::send;
        operations.sendv = message::sendv;
        operations.senddata = message::senddata;
    });
    ep.fid.tagged = replaced(tagged_ops, [](fi_ops_tagged& operations) {
        operations.recv = tagged::recv;
        operations.recvv = tagged::recvv;
        operations.send = tagged::send;
        operations.sendv = tagged::sendv;
        operations.senddata = tagged::senddata;
    });
    ep.fid.rma = replaced(rma_ops, [](fi_ops_rma& operations) {
        operations.read = remote::read;
        operations.readv = remote::readv;
        operations.write = remote::write;
        operations.writev = remote::writev;
        operations.writedata = remote::writedata;
    });
    ep.fid.atomic = replaced(atomic_ops, [](fi_ops_atomic& operations) {
        operations.write = atomic::write;
        operations.writev = atomic::writev;
        operations.readwrite = atomic::readwrite;
        operations.readwritev = atomic::readwritev;
        operations.compwrite = atomic::compwrite;
        operations.compwritev = atomic::compwritev;
    });
}

int open_alias(Endpoint& ep, const struct fi_alias& wanted) {
    const uint64_t direction = wanted.flags & (FI_TRANSMIT | FI_RECV);
    if (wanted.fid == nullptr || ep.core == nullptr || ep.fid.fid.fclass != FI_CLASS_EP ||
        (direction != FI_TRANSMIT && direction != FI_RECV)) {
        return refuse(-FI_EINVAL, FI_LOG_EP_CTRL,
                      "an alias is one of an endpoint, and has either FI_TRANSMIT or FI_RECV in "
                      "its flags");
    }
    auto* alias = new (std::nothrow) Endpoint{};
    if (alias == nullptr) {
        return -FI_ENOMEM;
    }
    const uint64_t flags = wanted.flags & ~direction;
    alias->domain = ep.domain;
    alias->av = ep.av;
    alias->address_format = ep.address_format;
    alias->source_mask = ep.source_mask;
    alias->tagged_source_mask = ep.tagged_source_mask;
    alias->use(ep.core);
    ++alias->core->users;
    fill_operations(*alias, ep.fid.fid.fclass, ep.fid.fid.context);
    alias->fid.fid.ops =
        replaced(*ep.fid.fid.ops, [](fi_ops& operations) { operations.close = close_alias; });
    use_flags(*alias, direction == FI_TRANSMIT ? flags : FI_COMPLETION,
              direction == FI_RECV ? flags : FI_COMPLETION);
    ++alias->domain->children;
    *wanted.fid = &alias->fid.fid;
    return 0;
}

}  // namespace tagwire::fi
