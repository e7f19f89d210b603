// SPDX-License-Identifier: BSD-3-Clause
// Shared contexts and scalable endpoints (fi_endpoint(3)): handles on core endpoints, see
// endpoint.h.
#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "lib/fi/address.h"
#include "lib/fi/endpoint.h"
#include "lib/fi/info.h"
#include "lib/fi/object.h"
#include "lib/fi/offer.h"
#include "lib/fi/provider.h"
#include "lib/fi/refusal.h"

namespace tagwire::fi {
namespace {

struct SharedTransmit {
    fid_stx fid;
    Domain* domain;
};

// An index of a scalable endpoint. The core endpoint is there from the beginning, which keeps its
// number, until its last context is closed, which leaves its queues free.
struct Index {
    std::shared_ptr<CoreEndpoint> core;
    unsigned opened = 0;   // transmit context 1, receive context 2
    unsigned enabled = 0;  // the same
    unsigned handles = 0;
};

struct ScalableEndpoint {
    fid_ep fid;
    Domain* domain;
    Endpoint defaults;   // which its contexts resemble
    tw_address address;  // of the first index
    AddressVector* av = nullptr;
    std::vector<Index> indexes;
    unsigned contexts = 0;  // handles that are open
};

// A context of a scalable endpoint.
struct Context : Endpoint {
    ScalableEndpoint* parent;
    size_t index;
    unsigned side;  // transmit 1, receive 2
};

constexpr unsigned kTransmit = 1;
constexpr unsigned kReceive = 2;

// A core endpoint has both directions: it starts when both are ready, or at the first operation of
// one, from when on it takes no more queues. A receive context need not post anything to be sent
// something: alone, it starts with the application's next turn.
int enable_context(Index& index, unsigned sides) {
    index.enabled |= sides;
    index.core->half_enabled = true;
    if (index.enabled == (kTransmit | kReceive)) {
        return index.core->enable();
    }
    index.core->receives_only = (index.opened & kTransmit) == 0;
    if (index.core->receives_only) {
        index.core->domain.starting.push_back(index.core);
    }
    return 0;
}

int control_context(fid* handle, int command, void*) {
    auto& context = object_of<Context>(handle);
    if (command != FI_ENABLE) {
        return -FI_ENOSYS;
    }
    const Guard guard(*context.domain);
    return enable_context(context.parent->indexes[context.index], context.side);
}

int close_context(fid* handle) {
    auto& context = object_of<Context>(handle);
    ScalableEndpoint& sep = *context.parent;
    Index& index = sep.indexes[context.index];
    if (index.handles == 1) {
        const Guard guard(*sep.domain);
        if (const int result = index.core->close(); result != 0) {
            return result;  // with a line in the log
        }
        index.core = nullptr;
        index.opened = index.enabled = 0;
    }
    --index.handles;
    --sep.contexts;
    delete &context;
    return 0;
}

fi_ops context_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_context,
    .bind = bind_endpoint,
    .control = control_context,
    .ops_open = kAbsent,
    .tostr = kAbsent,
    .ops_set = kAbsent,
};

int open_core(ScalableEndpoint& sep, size_t index) {
    tw_ep_attr attr{};
    attr.size = sizeof(attr);
    attr.endpoint = static_cast<uint16_t>(sep.address.endpoint + index);
    auto core = std::make_shared<CoreEndpoint>(*sep.domain);
    int result = core->open(attr);
    if (result == 0 && sep.av != nullptr) {
        result = core->bind(*sep.av);
        if (result != 0) {
            tw_ep_close(core->ep);
        }
    }
    if (result != 0) {
        return result == -EADDRINUSE ? result : log_failure("a context does not open", result);
    }
    sep.indexes[index].core = std::move(core);
    return 0;
}

// With `flags` of calls that have no flags argument: the core endpoint, which both sides share and
// which is there before them, has none.
int open_context(fid_ep* handle, int index, unsigned side, size_t fclass, uint64_t flags,
                 fid_ep** opened, void* user_context) {
    auto& sep = object_of<ScalableEndpoint>(handle);
    if (index < 0 || static_cast<size_t>(index) >= sep.indexes.size()) {
        return refuse(-FI_EINVAL, FI_LOG_EP_CTRL,
                      fmt::format("the scalable endpoint has {} contexts; there is no index {}",
                                  sep.indexes.size(), index));
    }
    Index& of = sep.indexes[static_cast<size_t>(index)];
    if (of.core == nullptr) {
        const Guard guard(*sep.domain);
        if (const int result = open_core(sep, static_cast<size_t>(index)); result != 0) {
            return result;
        }
    }
    auto* context = new (std::nothrow) Context{};
    if (context == nullptr) {
        return -FI_ENOMEM;
    }
    fill_operations(*context, fclass, user_context);
    context->fid.fid.ops = &context_fid_ops;
    if (flags != 0) {
        use_flags(*context, side == kTransmit ? flags : 0, side == kReceive ? flags : 0);
    }
    context->domain = sep.domain;
    context->address_format = sep.defaults.address_format;
    context->source_mask = sep.defaults.source_mask;
    context->tagged_source_mask = sep.defaults.tagged_source_mask;
    context->parent = &sep;
    context->index = static_cast<size_t>(index);
    context->side = side;
    context->use(of.core);
    of.opened |= side;
    if (side == kTransmit) {
        of.core->receives_only = false;  // it is waited for
    }
    ++of.handles;
    ++sep.contexts;
    *opened = &context->fid;
    return 0;
}

int open_transmit_context(fid_ep* handle, int index, fi_tx_attr* attr, fid_ep** opened,
                          void* context) {
    if (attr != nullptr && check_transmit(*attr) != 0) {
        return -FI_EINVAL;
    }
    const uint64_t flags = attr != nullptr
                               ? attr->op_flags
                               : object_of<ScalableEndpoint>(handle).defaults.transmit_flags;
    return open_context(handle, index, kTransmit, FI_CLASS_TX_CTX, flags, opened, context);
}

int open_receive_context(fid_ep* handle, int index, fi_rx_attr* attr, fid_ep** opened,
                         void* context) {
    if (attr != nullptr && check_receive(*attr) != 0) {
        return -FI_EINVAL;
    }
    const uint64_t flags = attr != nullptr
                               ? attr->op_flags
                               : object_of<ScalableEndpoint>(handle).defaults.receive_flags;
    return open_context(handle, index, kReceive, FI_CLASS_RX_CTX, flags, opened, context);
}

int bind_scalable(fid* handle, fid* other, uint64_t) {
    auto& sep = object_of<ScalableEndpoint>(handle);
    if (other->fclass == FI_CLASS_EQ) {
        return 0;
    }
    if (other->fclass != FI_CLASS_AV) {
        return refuse(-FI_EINVAL, FI_LOG_EP_CTRL,
                      "a scalable endpoint is bound to an address vector; queues and counters are "
                      "bound to its contexts");
    }
    const Guard guard(*sep.domain);
    sep.av = &object_of<AddressVector>(other);
    for (const Index& index : sep.indexes) {
        if (index.core == nullptr) {
            continue;
        }
        if (const int result = index.core->bind(*sep.av); result != 0) {
            return log_failure("the scalable endpoint refuses its address vector", result);
        }
    }
    return 0;
}

// Enables the contexts that are there; those that are opened later are enabled one by one.
int control_scalable(fid* handle, int command, void*) {
    auto& sep = object_of<ScalableEndpoint>(handle);
    if (command != FI_ENABLE) {
        return -FI_ENOSYS;
    }
    const Guard guard(*sep.domain);
    for (Index& index : sep.indexes) {
        if (const int result = index.opened != 0 ? enable_context(index, index.opened) : 0;
            result != 0) {
            return result;
        }
    }
    return 0;
}

int close_scalable(fid* handle) {
    auto& sep = object_of<ScalableEndpoint>(handle);
    if (sep.contexts != 0) {
        return refuse_busy(FI_LOG_EP_CTRL, "a scalable endpoint", "its contexts");
    }
    {
        const Guard guard(*sep.domain);
        for (; !sep.indexes.empty(); sep.indexes.pop_back()) {
            const auto& core = sep.indexes.back().core;
            if (const int result = core != nullptr ? core->close() : 0; result != 0) {
                return result;
            }
        }
    }
    --sep.domain->children;
    delete &sep;
    return 0;
}

// The first context's address; the others' numbers follow it.
int name_of_scalable(fid_t handle, void* data, size_t* length) {
    const auto& sep = object_of<ScalableEndpoint>(handle);
    return give_name(sep.address, sep.defaults.address_format, data, length);
}

fi_ops scalable_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_scalable,
    .bind = bind_scalable,
    .control = control_scalable,
    .ops_open = kAbsent,
    .tostr = kAbsent,
    .ops_set = kAbsent,
};

fi_ops_ep scalable_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = kAbsent,
    .getopt = kAbsent,
    .setopt = kAbsent,
    .tx_ctx = open_transmit_context,
    .rx_ctx = open_receive_context,
    .rx_size_left = kAbsent,
    .tx_size_left = kAbsent,
};

fi_ops_cm scalable_connection_ops = {
    .size = sizeof(fi_ops_cm),
    .setname = kAbsent,
    .getname = name_of_scalable,
    .getpeer = kAbsent,
    .connect = kAbsent,
    .listen = kAbsent,
    .accept = kAbsent,
    .reject = kAbsent,
    .shutdown = kAbsent,
    .join = kAbsent,
};

int close_shared_transmit(fid* handle) {
    auto& stx = object_of<SharedTransmit>(handle);
    --stx.domain->children;
    delete &stx;
    return 0;
}

fi_ops shared_transmit_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_shared_transmit,
    .bind = kAbsent,
    .control = kAbsent,
    .ops_open = kAbsent,
    .tostr = kAbsent,
    .ops_set = kAbsent,
};

uint16_t first_number(const fi_info& info) {
    tw_address wanted{};
    return read_source(info, &wanted) ? wanted.endpoint : uint16_t{0};
}

// `count` core endpoints with consecutive numbers, from `first` or the next run that is free.
int open_run(const fi_info& info, size_t count, ScalableEndpoint* sep) {
    for (uint32_t first = first_number(info); first + count < TW_EP_ANY;) {
        sep->address.endpoint = static_cast<uint16_t>(first);
        sep->indexes.assign(count, {});
        size_t opened = 0;
        int result = 0;
        while (opened < count && (result = open_core(*sep, opened)) == 0) {
            ++opened;
        }
        if (opened == count) {
            return tw_ep_name(sep->indexes[0].core->ep, &sep->address);
        }
        for (size_t i = 0; i < opened; ++i) {
            tw_ep_close(sep->indexes[i].core->ep);
        }
        if (result != -EADDRINUSE) {
            return result;
        }
        first += static_cast<uint32_t>(opened) + 1;
    }
    return -FI_EADDRINUSE;
}

}  // namespace

int open_scalable_endpoint(fid_domain* handle, fi_info* info, fid_ep** opened, void* context) {
    auto& domain = object_of<Domain>(handle);
    if (info == nullptr || info->ep_attr == nullptr) {
        return refuse(-FI_EINVAL, FI_LOG_EP_CTRL,
                      "fi_scalable_ep takes what fi_getinfo gave: info and its ep_attr cannot be "
                      "NULL");
    }
    if ((info->tx_attr != nullptr && check_transmit(*info->tx_attr) != 0) ||
        (info->rx_attr != nullptr && check_receive(*info->rx_attr) != 0)) {
        return -FI_EINVAL;
    }
    const size_t count =
        std::max<size_t>({info->ep_attr->tx_ctx_cnt, info->ep_attr->rx_ctx_cnt, 1});
    if (count > kMaxContexts) {
        return refuse(-FI_EINVAL, FI_LOG_EP_CTRL,
                      fmt::format("a scalable endpoint has at most {} contexts, asked for are {}",
                                  kMaxContexts, count));
    }
    auto sep = std::make_unique<ScalableEndpoint>();
    sep->domain = &domain;
    const Guard guard(domain);
    if (const int result = open_run(*info, count, sep.get()); result != 0) {
        return log_failure("the scalable endpoint does not open", result);
    }
    sep->fid.fid.fclass = FI_CLASS_SEP;
    sep->fid.fid.context = context;
    sep->fid.fid.ops = &scalable_fid_ops;
    sep->fid.ops = &scalable_ops;
    sep->fid.cm = &scalable_connection_ops;
    sep->defaults.set_source_masks(info, info->rx_attr);
    sep->defaults.address_format = info->addr_format;
    sep->defaults.transmit_flags = info->tx_attr != nullptr ? info->tx_attr->op_flags : 0;
    sep->defaults.receive_flags = info->rx_attr != nullptr ? info->rx_attr->op_flags : 0;
    ++domain.children;
    *opened = &sep.release()->fid;
    return 0;
}

int open_shared_transmit(fid_domain* handle, fi_tx_attr* attr, fid_stx** opened, void* context) {
    auto& domain = object_of<Domain>(handle);
    if (attr != nullptr && check_transmit(*attr) != 0) {
        return -FI_EINVAL;
    }
    auto* stx = new (std::nothrow) SharedTransmit{};
    if (stx == nullptr) {
        return -FI_ENOMEM;
    }
    stx->fid.fid.fclass = FI_CLASS_STX_CTX;
    stx->fid.fid.context = context;
    stx->fid.fid.ops = &shared_transmit_fid_ops;
    stx->fid.ops = &endpoint_ops;
    stx->domain = &domain;
    ++domain.children;
    *opened = &stx->fid;
    return 0;
}

int open_shared_receive(fid_domain* handle, fi_rx_attr* attr, fid_ep** opened, void* context) {
    auto& domain = object_of<Domain>(handle);
    std::unique_ptr<Endpoint> srx(new (std::nothrow) Endpoint{});
    if (srx == nullptr) {
        return -FI_ENOMEM;
    }
    const Guard guard(domain);
    std::shared_ptr<CoreEndpoint> core;
    if (const int result = open_core_endpoint(domain, nullptr, nullptr, attr, 0, &core);
        result != 0) {
        return result;
    }
    core->shared = srx.get();
    core->without_addresses = domain.for_connections;
    domain.receive_contexts.push_back(core.get());
    srx->use(std::move(core));
    srx->set_source_masks(nullptr, attr);
    srx->domain = &domain;
    srx->address_format = domain.address_format;
    fill_operations(*srx, FI_CLASS_SRX_CTX, context);
    ++domain.children;
    *opened = &srx.release()->fid;
    return 0;
}

}  // namespace tagwire::fi
