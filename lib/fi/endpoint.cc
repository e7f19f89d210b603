// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/endpoint.h"

#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "lib/fi/address.h"
#include "lib/fi/completion_queue.h"
#include "lib/fi/connection.h"
#include "lib/fi/counter.h"
#include "lib/fi/event_queue.h"
#include "lib/fi/flags.h"
#include "lib/fi/info.h"
#include "lib/fi/object.h"
#include "lib/fi/offer.h"
#include "lib/fi/passive_endpoint.h"
#include "lib/fi/provider.h"
#include "lib/fi/refusal.h"

namespace tagwire::fi {
namespace {

int control(fid* handle, int command, void* argument) {
    auto& ep = object_of<Endpoint>(handle);
    if (command != FI_ENABLE && command != FI_ALIAS) {
        return -FI_ENOSYS;
    }
    const Guard guard(*ep.domain);
    if (command == FI_ALIAS) {
        return open_alias(ep, *static_cast<const struct fi_alias*>(argument));
    }
    if (ep.core == nullptr) {
        return no_receive_context();
    }
    return ep.core->enable();
}

int close_endpoint(fid* handle) {
    auto& ep = object_of<Endpoint>(handle);
    {
        const Guard guard(*ep.domain);
        if (const int result = ep.leave(); result != 0) {
            return result;
        }
        ep.domain->connected.erase(ep.ep);
    }
    if (ep.eq != nullptr) {
        ep.eq->remove_source(*ep.domain);
    }
    --ep.domain->children;
    delete &ep;
    return 0;
}

ssize_t cancel(fid_t handle, void* context) {
    auto& ep = object_of<Endpoint>(handle);
    const Guard guard(*ep.domain);
    const int result = tw_cancel(ep.ep, context);
    // A receive that has completed meanwhile is nothing to warn of.
    return result == 0 || result == -FI_ENOENT ? result
                                               : log_failure("nothing is cancelled", result);
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
            return give_option(kConnectDataSize, value, length);
        case FI_OPT_TX_SIZE:
        case FI_OPT_RX_SIZE:
            return give_option(kQueueSize, value, length);
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
    const int result = tw_ep_setopt(ep.ep, TW_OPT_MIN_MULTI_RECV, value, length);
    return result == 0 ? 0 : log_failure("the option is not set", result);
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
    return give_name(ep.local_name.value_or(address), ep.address_format, data, length);
}

int set_name(fid_t handle, void* data, size_t length) {
    auto& ep = object_of<Endpoint>(handle);
    tw_address wanted{};
    if (const int error = from_name(ep.address_format, data, length, &wanted); error != 0) {
        return error;
    }
    if (ep.local_name.has_value() || ep.core == nullptr || ep.core.use_count() > 1) {
        FI_WARN(&provider, FI_LOG_EP_CTRL,
                "the name of an endpoint that shares its receives, or accepts a connection, is "
                "another's: it cannot be set\n");
        return -FI_EOPNOTSUPP;
    }
    if (names_no_card(wanted)) {
        std::memset(wanted.ip, 0, sizeof(wanted.ip));
        if (wanted.udp_port == 0 && wanted.endpoint == 0) {
            return 0;  // any: it has one
        }
    }
    const Guard guard(*ep.domain);
    const int result = tw_ep_set_name(ep.ep, &wanted);
    return result == 0 ? 0 : log_failure("the endpoint keeps its name", result);
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

// The number that the application's own address names, or any.
uint16_t wanted_number(const fi_info& info) {
    tw_address wanted{};
    return read_source(info, &wanted) ? wanted.endpoint : uint16_t{TW_EP_ANY};
}

int check_queue_flags(uint64_t flags) {
    if ((flags & ~(FI_SEND | FI_RECV | FI_SELECTIVE_COMPLETION)) != 0 ||
        (flags & (FI_SEND | FI_RECV)) == 0) {
        return refuse(-FI_EINVAL, FI_LOG_EP_CTRL,
                      "a completion queue is bound with FI_TRANSMIT, FI_RECV and perhaps "
                      "FI_SELECTIVE_COMPLETION");
    }
    return 0;
}

int bind_receive_context(Endpoint& ep, const std::shared_ptr<CoreEndpoint>& core) {
    const bool waits =
        ep.connected ? ep.core->wants_receiver && ep.core->receiver == nullptr : ep.core == nullptr;
    if (!waits) {
        return refuse(-FI_EINVAL, FI_LOG_EP_CTRL,
                      "a shared receive context is bound once, to an endpoint that was opened "
                      "with rx_ctx_cnt FI_SHARED_CONTEXT");
    }
    if (&core->domain != ep.domain) {
        return refuse(-FI_EINVAL, FI_LOG_EP_CTRL, "the receive context is another domain's");
    }
    if ((ep.connected ? core->users : core->connections) != 0) {
        return refuse(-FI_EINVAL, FI_LOG_EP_CTRL,
                      "a receive context serves connected endpoints or connectionless ones, not "
                      "both");
    }
    if (ep.connected) {
        return ep.core->bind(core);
    }
    ep.use(core);
    ++ep.core->users;
    return ep.av != nullptr ? ep.core->bind(*ep.av) : 0;
}

int bind_event_queue(Endpoint& ep, EventQueue& eq) {
    if (!ep.connected) {
        return 0;  // connectionless endpoints have no events
    }
    if (ep.eq != nullptr) {
        return refuse(-FI_EINVAL, FI_LOG_EP_CTRL, "the endpoint has an event queue already");
    }
    tw_eq* core = nullptr;
    int result = connection_queue(*ep.domain, &core);
    if (result == 0) {
        result = tw_ep_bind_eq(ep.ep, core);
    }
    if (result != 0) {
        return log_failure("the endpoint refuses its event queue", result);
    }
    ep.eq = &eq;
    eq.add_source(*ep.domain);
    ep.domain->connected.emplace(ep.ep, &ep);
    return 0;
}

}  // namespace

int give_option(size_t value, void* room, size_t* length) {
    if (*length < sizeof(value)) {
        *length = sizeof(value);
        return -FI_ETOOSMALL;
    }
    std::memcpy(room, &value, sizeof(value));
    *length = sizeof(value);
    return 0;
}

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
    .setname = set_name,
    .getname = get_name,
    .getpeer = get_peer,
    .connect = connect,
    .listen = kAbsent,
    .accept = accept,
    .reject = kAbsent,
    .shutdown = shutdown,
    .join = kAbsent,
};

void Domain::start_receivers() {
    for (const auto& core : std::exchange(starting, {})) {
        const auto found = core.lock();
        if (found != nullptr && found->receives_only) {
            found->enable();  // a failure is in the log
        }
    }
}

bool Endpoint::mend(int result) {
    if (core == nullptr) {
        return false;
    }
    return (result == -FI_EINVAL && core->av != nullptr && core->av->catch_up()) ||
           (result == -FI_EOPBADSTATE && core->half_enabled && !core->enabled &&
            core->enable() == 0);
}

int Endpoint::leave() {
    if (core == nullptr) {
        return 0;
    }
    if (core.use_count() == 1) {
        return core->close();
    }
    if (core->shared == this) {
        core->shared = nullptr;
    } else if (core->shared != nullptr) {
        if (const int result = core->users == 1 ? core->renew() : 0; result != 0) {
            return result;
        }
        --core->users;
    }
    return 0;
}

int bind_endpoint(fid* handle, fid* other, uint64_t flags) {
    auto& ep = object_of<Endpoint>(handle);
    const Guard guard(*ep.domain);
    if (other->fclass == FI_CLASS_SRX_CTX) {
        return bind_receive_context(ep, object_of<Endpoint>(other).core);
    }
    if (other->fclass == FI_CLASS_STX_CTX) {
        return 0;  // nothing of a transmit context is scarce
    }
    if (other->fclass == FI_CLASS_EQ) {
        return bind_event_queue(ep, object_of<EventQueue>(other));
    }
    if (other->fclass == FI_CLASS_AV) {
        ep.av = &object_of<AddressVector>(other);
    }
    if (ep.core == nullptr) {
        if (other->fclass == FI_CLASS_AV) {
            return 0;
        }
        return no_receive_context();
    }
    int result = -FI_EINVAL;
    switch (other->fclass) {
        case FI_CLASS_AV:
            result = ep.core->bind(object_of<AddressVector>(other));
            break;
        case FI_CLASS_CQ:
            if (const int error = check_queue_flags(flags); error != 0) {
                return error;
            }
            result = ep.core->bind(object_of<CompletionQueue>(other), flags);
            break;
        case FI_CLASS_CNTR:
            result = ep.core->bind(object_of<Counter>(other), flags);
            break;
        default:
            return refuse(-FI_EINVAL, FI_LOG_EP_CTRL,
                          "an endpoint is bound to address vectors, completion queues, counters, "
                          "event queues and shared contexts");
    }
    return result == 0 ? 0 : log_failure("the endpoint refuses to be bound", result);
}

void fill_operations(Endpoint& ep, size_t fclass, void* context) {
    ep.fid.fid.fclass = fclass;
    ep.fid.fid.context = context;
    ep.fid.fid.ops = &endpoint_fid_ops;
    ep.fid.ops = &endpoint_ops;
    ep.fid.cm = &connection_ops;
    ep.fid.msg = &message_ops;
    ep.fid.tagged = &tagged_ops;
    ep.fid.rma = &rma_ops;
    ep.fid.atomic = &atomic_ops;
}

void Endpoint::set_source_masks(const fi_info* info, const fi_rx_attr* rx) {
    const uint64_t caps = (info != nullptr ? info->caps : 0) | (rx != nullptr ? rx->caps : 0);
    source_mask = (caps & FI_DIRECTED_RECV) != 0 ? 0 : FI_ADDR_UNSPEC;
    tagged_source_mask =
        (caps & (FI_DIRECTED_RECV | kTaggedDirectedReceive)) != 0 ? 0 : FI_ADDR_UNSPEC;
}

int open_core_endpoint(Domain& domain, const fi_info* info, const fi_tx_attr* tx,
                       const fi_rx_attr* rx, uint16_t number, std::shared_ptr<CoreEndpoint>* core) {
    if ((tx != nullptr && check_transmit(*tx) != 0) || (rx != nullptr && check_receive(*rx) != 0)) {
        return -FI_EINVAL;
    }
    tw_ep_attr attr{};
    attr.size = sizeof(attr);
    attr.endpoint = number;
    if (tx != nullptr) {
        attr.tx_flags = send_flags(tx->op_flags);
    }
    if (rx != nullptr) {
        attr.rx_flags = receive_flags(rx->op_flags);
    }
    if (info != nullptr && info->ep_attr != nullptr && info->ep_attr->type == FI_EP_MSG) {
        attr.type = TW_EP_MSG;
        attr.endpoint = TW_EP_ANY;
        if (PassiveEndpoint* const pep = yielding(*info); pep != nullptr) {
            if (const int error = yield_address(*pep, domain); error != 0) {
                return error;
            }
            attr.endpoint = pep->name.endpoint;
        }
        const ConnectionRequest* const request = request_of(*info);
        attr.request = request != nullptr ? request->request : nullptr;
    }
    if (info != nullptr && info->ep_attr != nullptr && info->ep_attr->auth_key != nullptr) {
        attr.auth_key = info->ep_attr->auth_key;
        attr.auth_key_size = info->ep_attr->auth_key_size;
    }
    auto made = std::make_shared<CoreEndpoint>(domain);
    int result = made->open(attr);
    // An address without a number in it is that of the first endpoint; there may be more.
    if (result == -EADDRINUSE && number == 0) {
        attr.endpoint = TW_EP_ANY;
        result = made->open(attr);
    }
    if (result != 0) {
        return log_failure("the endpoint does not open", result);
    }
    *core = std::move(made);
    return 0;
}

int open_endpoint(fid_domain* handle, fi_info* info, fid_ep** opened, void* context) {
    auto& domain = object_of<Domain>(handle);
    const fi_ep_type type = info == nullptr            ? FI_EP_UNSPEC
                            : info->ep_attr == nullptr ? FI_EP_RDM
                                                       : info->ep_attr->type;
    if (type != FI_EP_RDM && type != FI_EP_MSG) {
        return refuse(-FI_EINVAL, FI_LOG_EP_CTRL,
                      "fi_endpoint takes what fi_getinfo gave: info with the type FI_EP_RDM or "
                      "FI_EP_MSG");
    }
    std::unique_ptr<Endpoint> ep(new (std::nothrow) Endpoint{});
    if (ep == nullptr) {
        return -FI_ENOMEM;
    }
    const Guard guard(domain);
    const bool shares = info->ep_attr != nullptr && info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT;
    const bool connected = type == FI_EP_MSG;
    if (shares && !connected) {
        if (info->tx_attr != nullptr && check_transmit(*info->tx_attr) != 0) {
            return -FI_EINVAL;
        }
    } else {
        std::shared_ptr<CoreEndpoint> core;
        if (const int result = open_core_endpoint(domain, info, info->tx_attr, info->rx_attr,
                                                  wanted_number(*info), &core);
            result != 0) {
            return result;
        }
        core->wants_receiver = shares;
        ep->use(std::move(core));
    }
    ep->connected = connected;
    if (const std::unique_ptr<ConnectionRequest> request(request_of(*info)); request != nullptr) {
        ep->local_name = request->listener;
    }
    ep->address_format = info->addr_format;
    ep->set_source_masks(info, info->rx_attr);
    ep->domain = &domain;
    fill_operations(*ep, FI_CLASS_EP, context);
    if (shares && !connected && info->tx_attr != nullptr && info->tx_attr->op_flags != 0) {
        // The core endpoint is the receive context's, with whose handle one receives.
        use_flags(*ep, info->tx_attr->op_flags, FI_COMPLETION);
    }
    ++domain.children;
    *opened = &ep.release()->fid;
    return 0;
}

}  // namespace tagwire::fi
