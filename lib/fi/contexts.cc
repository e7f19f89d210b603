// SPDX-License-Identifier: BSD-3-Clause
// Shared contexts and scalable endpoints (fi_endpoint(3)): handles on core endpoints, see
// endpoint.h.
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
#include "lib/fi/provider.h"

namespace tagwire::fi {
namespace {

struct SharedTransmit {
    fid_stx fid;
    Domain* domain;
};

struct ScalableEndpoint {
    fid_ep fid;
    Domain* domain;
    uint64_t source_mask;
    std::vector<std::shared_ptr<CoreEndpoint>> cores;
    std::vector<unsigned> enabled;  // of each index: transmit context 1, receive context 2
    unsigned contexts = 0;          // handles that are open
};

// A context of a scalable endpoint.
struct Context : Endpoint {
    ScalableEndpoint* parent;
    size_t index;
    unsigned side;  // transmit 1, receive 2
};

constexpr unsigned kTransmit = 1;
constexpr unsigned kReceive = 2;

// A core endpoint has both directions: it starts when both are ready.
int enable_context(ScalableEndpoint& sep, size_t index, unsigned sides) {
    sep.enabled[index] |= sides;
    return sep.enabled[index] == (kTransmit | kReceive) ? sep.cores[index]->enable() : 0;
}

int control_context(fid* handle, int command, void*) {
    auto& context = object_of<Context>(handle);
    if (command != FI_ENABLE) {
        return -FI_ENOSYS;
    }
    const Guard guard(*context.domain);
    return enable_context(*context.parent, context.index, context.side);
}

int close_context(fid* handle) {
    auto& context = object_of<Context>(handle);
    --context.parent->contexts;
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

int open_context(fid_ep* handle, int index, unsigned side, size_t fclass, fid_ep** opened,
                 void* user_context) {
    auto& sep = object_of<ScalableEndpoint>(handle);
    if (index < 0 || static_cast<size_t>(index) >= sep.cores.size()) {
        return -FI_EINVAL;
    }
    auto* context = new (std::nothrow) Context{};
    if (context == nullptr) {
        return -FI_ENOMEM;
    }
    fill_operations(*context, fclass, user_context);
    context->fid.fid.ops = &context_fid_ops;
    context->domain = sep.domain;
    context->source_mask = sep.source_mask;
    context->parent = &sep;
    context->index = static_cast<size_t>(index);
    context->side = side;
    context->use(sep.cores[context->index]);
    ++sep.contexts;
    *opened = &context->fid;
    return 0;
}

int open_transmit_context(fid_ep* handle, int index, fi_tx_attr* attr, fid_ep** opened,
                          void* context) {
    if (attr != nullptr && check_transmit(*attr) != 0) {
        return -FI_EINVAL;
    }
    return open_context(handle, index, kTransmit, FI_CLASS_TX_CTX, opened, context);
}

int open_receive_context(fid_ep* handle, int index, fi_rx_attr* attr, fid_ep** opened,
                         void* context) {
    if (attr != nullptr && check_receive(*attr) != 0) {
        return -FI_EINVAL;
    }
    return open_context(handle, index, kReceive, FI_CLASS_RX_CTX, opened, context);
}

int bind_scalable(fid* handle, fid* other, uint64_t) {
    auto& sep = object_of<ScalableEndpoint>(handle);
    if (other->fclass != FI_CLASS_AV) {
        return other->fclass == FI_CLASS_EQ ? 0 : -FI_EINVAL;
    }
    const Guard guard(*sep.domain);
    for (const auto& core : sep.cores) {
        if (const int result = core->bind(object_of<AddressVector>(other)); result != 0) {
            return log_failure("the scalable endpoint refuses its address vector", result);
        }
    }
    return 0;
}

int control_scalable(fid* handle, int command, void*) {
    auto& sep = object_of<ScalableEndpoint>(handle);
    if (command != FI_ENABLE) {
        return -FI_ENOSYS;
    }
    const Guard guard(*sep.domain);
    for (size_t i = 0; i < sep.cores.size(); ++i) {
        if (const int result = enable_context(sep, i, kTransmit | kReceive); result != 0) {
            return result;
        }
    }
    return 0;
}

int close_scalable(fid* handle) {
    auto& sep = object_of<ScalableEndpoint>(handle);
    if (sep.contexts != 0) {
        return -FI_EBUSY;
    }
    {
        const Guard guard(*sep.domain);
        while (!sep.cores.empty()) {
            if (const int result = sep.cores.back()->close(); result != 0) {
                return result;
            }
            sep.cores.pop_back();
        }
    }
    --sep.domain->children;
    delete &sep;
    return 0;
}

// The first context's address; the others' numbers follow it.
int name_of_scalable(fid_t handle, void* data, size_t* length) {
    auto& sep = object_of<ScalableEndpoint>(handle);
    tw_address address{};
    {
        const Guard guard(*sep.domain);
        if (const int result = tw_ep_name(sep.cores[0]->ep, &address); result != 0) {
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
    const bool named =
        info.src_addr != nullptr && from_sockaddr(info.src_addr, info.src_addrlen, &wanted) == 0;
    return named ? wanted.endpoint : uint16_t{0};
}

// `count` core endpoints with consecutive numbers, from `first` or the next run that is free.
int open_run(Domain& domain, const fi_info& info, size_t count, ScalableEndpoint* sep) {
    for (uint32_t first = first_number(info); first + count < TW_EP_ANY;) {
        sep->cores.clear();
        while (sep->cores.size() < count) {
            tw_ep_attr attr{};
            attr.size = sizeof(attr);
            attr.endpoint = static_cast<uint16_t>(first + sep->cores.size());
            auto core = std::make_shared<CoreEndpoint>(domain);
            if (const int result = tw_ep_open(domain.worker, &attr, &core->ep); result != 0) {
                if (result != -EADDRINUSE) {
                    return log_failure("a context does not open", result);
                }
                break;
            }
            sep->cores.push_back(std::move(core));
        }
        if (sep->cores.size() == count) {
            return 0;
        }
        first += static_cast<uint32_t>(sep->cores.size()) + 1;
        for (const auto& core : sep->cores) {
            tw_ep_close(core->ep);
        }
    }
    return -FI_EADDRINUSE;
}

}  // namespace

int open_scalable_endpoint(fid_domain* handle, fi_info* info, fid_ep** opened, void* context) {
    auto& domain = object_of<Domain>(handle);
    if (info == nullptr || info->ep_attr == nullptr) {
        return -FI_EINVAL;
    }
    const size_t count =
        std::max<size_t>({info->ep_attr->tx_ctx_cnt, info->ep_attr->rx_ctx_cnt, 1});
    if (count > kMaxContexts) {
        return -FI_EINVAL;
    }
    auto sep = std::make_unique<ScalableEndpoint>();
    const Guard guard(domain);
    if (const int result = open_run(domain, *info, count, sep.get()); result != 0) {
        return result;
    }
    sep->fid.fid.fclass = FI_CLASS_SEP;
    sep->fid.fid.context = context;
    sep->fid.fid.ops = &scalable_fid_ops;
    sep->fid.ops = &scalable_ops;
    sep->fid.cm = &scalable_connection_ops;
    sep->domain = &domain;
    sep->source_mask = source_mask_of(info, info->rx_attr);
    sep->enabled.resize(count);
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
    srx->use(std::move(core));
    srx->source_mask = source_mask_of(nullptr, attr);
    srx->domain = &domain;
    fill_operations(*srx, FI_CLASS_SRX_CTX, context);
    ++domain.children;
    *opened = &srx.release()->fid;
    return 0;
}

}  // namespace tagwire::fi
