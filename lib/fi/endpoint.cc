// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/endpoint.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>

#include "lib/fi/address.h"
#include "lib/fi/completion_queue.h"
#include "lib/fi/counter.h"
#include "lib/fi/event_queue.h"
#include "lib/fi/flags.h"
#include "lib/fi/info.h"
#include "lib/fi/object.h"
#include "lib/fi/provider.h"

namespace tagwire::fi {
namespace {

int bind_queue(Endpoint& ep, CompletionQueue& cq, uint64_t flags) {
    const uint64_t core = (bind_flags(flags) & (TW_SEND | TW_RECV)) |
                          move_bit(flags, FI_SELECTIVE_COMPLETION, TW_SELECTIVE_COMPLETION);
    if ((flags & ~(FI_SEND | FI_RECV | FI_SELECTIVE_COMPLETION)) != 0 ||
        (flags & (FI_SEND | FI_RECV)) == 0) {
        FI_WARN(&provider, FI_LOG_EP_CTRL,
                "a completion queue is bound with FI_TRANSMIT, FI_RECV "
                "and perhaps FI_SELECTIVE_COMPLETION\n");
        return -FI_EINVAL;
    }
    const int result = tw_ep_bind_cq(ep.ep, cq.cq, core);
    if (result == 0) {
        ep.has_send_queue = ep.has_send_queue || (flags & FI_SEND) != 0;
        ep.has_receive_queue = ep.has_receive_queue || (flags & FI_RECV) != 0;
    }
    return result;
}

int bind_endpoint(fid* handle, fid* other, uint64_t flags) {
    auto& ep = object_of<Endpoint>(handle);
    const Guard guard(*ep.domain);
    int result = -FI_EINVAL;
    switch (other->fclass) {
        case FI_CLASS_AV:
            result = tw_ep_bind_av(ep.ep, object_of<AddressVector>(other).av);
            break;
        case FI_CLASS_CQ:
            result = bind_queue(ep, object_of<CompletionQueue>(other), flags);
            break;
        case FI_CLASS_CNTR: {
            result = tw_ep_bind_cntr(ep.ep, object_of<Counter>(other).counter, bind_flags(flags));
            break;
        }
        case FI_CLASS_EQ:
            // Connectionless endpoints have no events.
            return 0;
        default:
            break;
    }
    return result == 0 ? 0 : log_failure("the endpoint refuses to be bound", result);
}

int enable(Endpoint& ep) {
    const uint64_t missing =
        (ep.has_send_queue ? 0 : TW_SEND) | (ep.has_receive_queue ? 0 : TW_RECV);
    if (missing != 0) {
        if (const int result = ep.domain->open_sink(); result != 0) {
            return log_failure("no queue for errors", result);
        }
        tw_ep_bind_cq(ep.ep, ep.domain->sink, missing | TW_SELECTIVE_COMPLETION);
    }
    const int result = tw_ep_enable(ep.ep);
    return result == 0 ? 0 : log_failure("the endpoint is not enabled", result);
}

int control(fid* handle, int command, void*) {
    auto& ep = object_of<Endpoint>(handle);
    const Guard guard(*ep.domain);
    return command == FI_ENABLE ? enable(ep) : -FI_ENOSYS;
}

int close_endpoint(fid* handle) {
    auto& ep = object_of<Endpoint>(handle);
    {
        const Guard guard(*ep.domain);
        // Until what was sent is there, or its receiver counts as dead.
        const auto end = std::chrono::steady_clock::now() +
                         std::chrono::milliseconds(ep.domain->peer_timeout_ms + 1000);
        int result = 0;
        while ((result = tw_ep_close(ep.ep)) == -EBUSY && std::chrono::steady_clock::now() < end) {
            ep.domain->progress();
        }
        if (result != 0) {
            return log_failure("the endpoint does not close", result);
        }
    }
    --ep.domain->children;
    delete &ep;
    return 0;
}

ssize_t cancel(fid_t handle, void* context) {
    auto& ep = object_of<Endpoint>(handle);
    const Guard guard(*ep.domain);
    return tw_cancel(ep.ep, context);
}

template <class Value>
int give(Value value, void* room, size_t* length) {
    if (*length < sizeof(value)) {
        *length = sizeof(value);
        return -FI_ETOOSMALL;
    }
    std::memcpy(room, &value, sizeof(value));
    *length = sizeof(value);
    return 0;
}

int get_option(fid_t handle, int level, int name, void* value, size_t* length) {
    auto& ep = object_of<Endpoint>(handle);
    if (level != FI_OPT_ENDPOINT) {
        return -FI_ENOPROTOOPT;
    }
    const Guard guard(*ep.domain);
    switch (name) {
        case FI_OPT_MIN_MULTI_RECV:
            return tw_ep_getopt(ep.ep, TW_OPT_MIN_MULTI_RECV, value, length);
        case FI_OPT_CM_DATA_SIZE:
            return give(kConnectDataSize, value, length);
        case FI_OPT_TX_SIZE:
        case FI_OPT_RX_SIZE:
            return give(kQueueSize, value, length);
        default:
            return -FI_ENOPROTOOPT;
    }
}

int set_option(fid_t handle, int level, int name, const void* value, size_t length) {
    auto& ep = object_of<Endpoint>(handle);
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV) {
        return -FI_ENOPROTOOPT;
    }
    const Guard guard(*ep.domain);
    return tw_ep_setopt(ep.ep, TW_OPT_MIN_MULTI_RECV, value, length);
}

int get_name(fid_t handle, void* data, size_t* length) {
    auto& ep = object_of<Endpoint>(handle);
    tw_address address{};
    {
        const Guard guard(*ep.domain);
        if (const int result = tw_ep_name(ep.ep, &address); result != 0) {
            return result;
        }
    }
    const sockaddr_in name = to_sockaddr(address);
    const size_t room = *length;
    *length = sizeof(name);
    if (room < sizeof(name)) {
        return -FI_ETOOSMALL;
    }
    std::memcpy(data, &name, sizeof(name));
    return 0;
}

fi_ops endpoint_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_endpoint,
    .bind = bind_endpoint,
    .control = control,
    .ops_open = kAbsent,
    .tostr = kAbsent,
    .ops_set = kAbsent,
};

fi_ops_ep endpoint_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = cancel,
    .getopt = get_option,
    .setopt = set_option,
    .tx_ctx = kAbsent,
    .rx_ctx = kAbsent,
    .rx_size_left = kAbsent,
    .tx_size_left = kAbsent,
};

fi_ops_cm connection_ops = {
    .size = sizeof(fi_ops_cm),
    .setname = kAbsent,
    .getname = get_name,
    .getpeer = kAbsent,
    .connect = kAbsent,
    .listen = kAbsent,
    .accept = kAbsent,
    .reject = kAbsent,
    .shutdown = kAbsent,
    .join = kAbsent,
};

// The number that the application's own address names, or any.
uint16_t wanted_number(const fi_info& info) {
    tw_address wanted{};
    if (info.src_addr == nullptr || from_sockaddr(info.src_addr, info.src_addrlen, &wanted) != 0) {
        return TW_EP_ANY;
    }
    return wanted.endpoint;
}

int open_core_endpoint(Domain& domain, const fi_info& info, tw_ep** ep) {
    tw_ep_attr attr{};
    attr.size = sizeof(attr);
    attr.endpoint = wanted_number(info);
    if (info.tx_attr != nullptr) {
        attr.tx_flags = send_flags(info.tx_attr->op_flags);
    }
    if (info.rx_attr != nullptr) {
        attr.rx_flags = receive_flags(info.rx_attr->op_flags);
    }
    if (info.ep_attr != nullptr && info.ep_attr->auth_key_size > 0) {
        attr.auth_key = info.ep_attr->auth_key;
        attr.auth_key_size = info.ep_attr->auth_key_size;
    }
    int result = tw_ep_open(domain.worker, &attr, ep);
    // An address without a number in it is that of the first endpoint; there may be more.
    if (result == -EADDRINUSE && attr.endpoint == 0) {
        attr.endpoint = TW_EP_ANY;
        result = tw_ep_open(domain.worker, &attr, ep);
    }
    return result == 0 ? 0 : log_failure("the endpoint does not open", result);
}

}  // namespace

int open_endpoint(fid_domain* handle, fi_info* info, fid_ep** opened, void* context) {
    auto& domain = object_of<Domain>(handle);
    if (info == nullptr || (info->ep_attr != nullptr && info->ep_attr->type != FI_EP_RDM)) {
        return -FI_EINVAL;
    }
    if ((info->tx_attr != nullptr && check_transmit(*info->tx_attr) != 0) ||
        (info->rx_attr != nullptr && check_receive(*info->rx_attr) != 0)) {
        return -FI_EINVAL;
    }
    std::unique_ptr<Endpoint> ep(new (std::nothrow) Endpoint{});
    if (ep == nullptr) {
        return -FI_ENOMEM;
    }
    const Guard guard(domain);
    if (const int result = open_core_endpoint(domain, *info, &ep->ep); result != 0) {
        return result;
    }
    const uint64_t receive_caps = info->rx_attr != nullptr ? info->rx_attr->caps : 0;
    const bool directed = ((info->caps | receive_caps) & FI_DIRECTED_RECV) != 0;
    ep->source_mask = directed ? 0 : FI_ADDR_UNSPEC;
    ep->domain = &domain;
    ep->fid.fid.fclass = FI_CLASS_EP;
    ep->fid.fid.context = context;
    ep->fid.fid.ops = &endpoint_fid_ops;
    ep->fid.ops = &endpoint_ops;
    ep->fid.cm = &connection_ops;
    ep->fid.msg = &message_ops;
    ep->fid.tagged = &tagged_ops;
    ep->fid.rma = &rma_ops;
    ep->fid.atomic = &atomic_ops;
    ++domain.children;
    *opened = &ep.release()->fid;
    return 0;
}

}  // namespace tagwire::fi
