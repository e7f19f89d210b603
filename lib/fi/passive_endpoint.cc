// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/passive_endpoint.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

#include "lib/fi/address.h"
#include "lib/fi/connection.h"
#include "lib/fi/endpoint.h"
#include "lib/fi/info.h"
#include "lib/fi/object.h"
#include "lib/fi/provider.h"
#include "lib/fi/refusal.h"

namespace tagwire::fi {
namespace {

int listen(fid_pep* handle) {
    auto& pep = object_of<PassiveEndpoint>(handle);
    if (pep.eq == nullptr) {
        return refuse(-FI_ENOEQ, FI_LOG_EP_CTRL,
                      "bind an event queue to the passive endpoint first");
    }
    if (const int result = pep.open(); result != 0) {
        return result;
    }
    const Guard guard(*pep.domain);
    if (const int result = tw_listen(pep.pep); result != 0) {
        return log_failure("the passive endpoint does not listen", result);
    }
    pep.listening = true;
    return 0;
}

int reject(fid_pep* handle, fid_t request, const void* param, size_t length) {
    auto& pep = object_of<PassiveEndpoint>(handle);
    if (request == nullptr || request->fclass != FI_CLASS_CONNREQ) {
        return refuse(-FI_EINVAL, FI_LOG_EP_CTRL,
                      "what is rejected is the handle of an FI_CONNREQ event");
    }
    const std::unique_ptr<ConnectionRequest> taken(&object_of<ConnectionRequest>(request));
    const Guard guard(*pep.domain);
    const int result =
        persist(*pep.domain, [&] { return tw_reject(pep.pep, taken->request, param, length); });
    return result == 0 ? 0 : log_failure("the request is not rejected", result);
}

int get_name(fid_t handle, void* data, size_t* length) {
    tw_address name{};
    if (const int result = name_of_passive(handle, &name); result != 0) {
        return result;
    }
    return give_name(name, object_of<PassiveEndpoint>(handle).info->addr_format, data, length);
}

int set_name(fid_t handle, void* data, size_t length) {
    auto& pep = object_of<PassiveEndpoint>(handle);
    tw_address wanted{};
    if (const int error = from_name(pep.info->addr_format, data, length, &wanted); error != 0) {
        return error;
    }
    if (pep.listening) {
        return refuse(-FI_EOPBADSTATE, FI_LOG_EP_CTRL,
                      "a passive endpoint that listens keeps its name");
    }
    if (const int result = pep.shut(); result != 0) {
        return result;
    }
    set_address(wanted, pep.info->addr_format, &pep.info->src_addr, &pep.info->src_addrlen);
    pep.named = true;
    return pep.open();
}

int bind(fid* handle, fid* other, uint64_t) {
    auto& pep = object_of<PassiveEndpoint>(handle);
    if (other->fclass != FI_CLASS_EQ || pep.eq != nullptr) {
        return refuse(-FI_EINVAL, FI_LOG_EP_CTRL, "a passive endpoint is bound to one event queue");
    }
    pep.eq = &object_of<EventQueue>(other);
    if (pep.domain != nullptr) {
        pep.eq->add_source(*pep.domain);
    }
    return 0;
}

int control(fid*, int command, void*) {
    return command == FI_BACKLOG ? 0 : -FI_ENOSYS;
}

int close(fid* handle) {
    auto& pep = object_of<PassiveEndpoint>(handle);
    if (const int result = pep.shut(); result != 0) {
        return result;
    }
    fi_freeinfo(pep.info);
    --pep.fabric->children;
    delete &pep;
    return 0;
}

int option(fid_t, int level, int name, void* value, size_t* length) {
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE) {
        return -FI_ENOPROTOOPT;
    }
    return give_option(kConnectDataSize, value, length);
}

fi_ops fid_ops = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = bind,
    .control = control,
    .ops_open = kAbsent,
    .tostr = kAbsent,
    .ops_set = kAbsent,
};

fi_ops_ep ep_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = kAbsent,
    .getopt = option,
    .setopt = kAbsent,
    .tx_ctx = kAbsent,
    .rx_ctx = kAbsent,
    .rx_size_left = kAbsent,
    .tx_size_left = kAbsent,
};

fi_ops_cm cm_ops = {
    .size = sizeof(fi_ops_cm),
    .setname = set_name,
    .getname = get_name,
    .getpeer = kAbsent,
    .connect = kAbsent,
    .listen = listen,
    .accept = kAbsent,
    .reject = reject,
    .shutdown = kAbsent,
    .join = kAbsent,
};

// The worker may have been opened for somebody else, with another address.
int check_worker(const tw_address& wanted, const tw_address& own) {
    const bool other_ip =
        !names_no_card(wanted) && std::memcmp(wanted.ip, own.ip, sizeof(wanted.ip)) != 0;
    if (!other_ip && (wanted.udp_port == 0 || wanted.udp_port == own.udp_port)) {
        return 0;
    }
    FI_WARN(&provider, FI_LOG_EP_CTRL,
            "a passive endpoint cannot have the address %s: the domain that it shares with others "
            "has %s; open it before them, or with their address\n",
            to_text(wanted, FI_SOCKADDR_IN).c_str(), to_text(own, FI_SOCKADDR_IN).c_str());
    return -FI_EADDRNOTAVAIL;
}

int open_core(PassiveEndpoint& pep, const tw_address& wanted) {
    // fi_getinfo fills in the IP address of a process's first worker: alone it is no demand.
    if (pep.named || wanted.udp_port != 0) {
        if (const int error = check_worker(wanted, pep.domain->address); error != 0) {
            return error;
        }
    }
    tw_pep_attr attr{};
    attr.size = sizeof(attr);
    attr.endpoint = wanted.endpoint;
    attr.context = &pep;
    if (pep.info->ep_attr->auth_key != nullptr) {
        attr.auth_key = pep.info->ep_attr->auth_key;
        attr.auth_key_size = pep.info->ep_attr->auth_key_size;
    }
    if (const int result = connection_queue(*pep.domain, &attr.eq); result != 0) {
        return result;
    }
    int result = tw_pep_open(pep.domain->worker, &attr, &pep.pep);
    // Who asks for a UDP port wants to be found by it, which a number of its own would prevent.
    if (result == -EADDRINUSE && attr.endpoint == 0 && wanted.udp_port == 0) {
        attr.endpoint = TW_EP_ANY;
        result = tw_pep_open(pep.domain->worker, &attr, &pep.pep);
    }
    if (result != 0) {
        return log_failure("the passive endpoint does not open", result);
    }
    tw_pep_name(pep.pep, &pep.name);
    return 0;
}

}  // namespace

int PassiveEndpoint::open() {
    if (domain != nullptr) {
        return 0;
    }
    tw_address wanted{};
    if (info->src_addr != nullptr) {
        if (const int error = from_sockaddr(info->src_addr, info->src_addrlen, &wanted);
            error != 0) {
            return error;
        }
    }
    Domain* found = nullptr;
    if (const int result = domain_to_listen(*fabric, *info, &found); result != 0) {
        return result;
    }
    domain = found;
    int result = 0;
    {
        const Guard guard(*found);
        result = open_core(*this, wanted);
    }
    if (result != 0) {
        domain = nullptr;
        release_domain(*found);
        return result;
    }
    if (eq != nullptr) {
        eq->add_source(*domain);
    }
    return 0;
}

int PassiveEndpoint::shut() {
    if (domain == nullptr) {
        return 0;
    }
    if (pep != nullptr) {
        const Guard guard(*domain);
        const auto busy = [this] {
            const int result = tw_pep_close(pep);
            return result == -EBUSY ? -EAGAIN : result;
        };
        if (const int result = persist(*domain, busy); result != 0) {
            return log_failure("the passive endpoint does not close",
                               result == -EAGAIN ? -FI_EBUSY : result);
        }
    }
    pep = nullptr;
    if (eq != nullptr) {
        eq->remove_source(*domain);
    }
    release_domain(*domain);
    domain = nullptr;
    return 0;
}

int open_passive_endpoint(fid_fabric* handle, fi_info* info, fid_pep** opened, void* context) {
    if (info == nullptr || info->ep_attr == nullptr || info->ep_attr->type != FI_EP_MSG) {
        return refuse(-FI_EINVAL, FI_LOG_EP_CTRL,
                      "a passive endpoint needs the fi_info of an FI_EP_MSG endpoint");
    }
    std::unique_ptr<PassiveEndpoint> pep(new (std::nothrow) PassiveEndpoint{});
    fi_info* const kept = fi_dupinfo(info);
    if (pep == nullptr || kept == nullptr) {
        fi_freeinfo(kept);
        return -FI_ENOMEM;
    }
    pep->fid.fid.fclass = FI_CLASS_PEP;
    pep->fid.fid.context = context;
    pep->fid.fid.ops = &fid_ops;
    pep->fid.ops = &ep_ops;
    pep->fid.cm = &cm_ops;
    pep->fabric = &object_of<Fabric>(handle);
    pep->info = kept;
    if (const int result = kept->src_addr != nullptr ? pep->open() : 0; result != 0) {
        fi_freeinfo(kept);
        return result;
    }
    ++pep->fabric->children;
    *opened = &pep.release()->fid;
    return 0;
}

int name_of_passive(fid_t handle, tw_address* name) {
    auto& pep = object_of<PassiveEndpoint>(handle);
    const int result = pep.open();
    *name = pep.name;
    return result;
}

PassiveEndpoint* yielding(const fi_info& info) {
    return info.handle != nullptr && info.handle->fclass == FI_CLASS_PEP
               ? &object_of<PassiveEndpoint>(info.handle)
               : nullptr;
}

int yield_address(PassiveEndpoint& pep, const Domain& domain) {
    if (pep.listening) {
        return refuse(-FI_EINVAL, FI_LOG_EP_CTRL,
                      "a passive endpoint that listens keeps its address");
    }
    if (pep.domain != &domain) {
        return refuse(-FI_EINVAL, FI_LOG_EP_CTRL,
                      "the passive endpoint in fi_info::handle belongs to another domain: open the "
                      "domain with the same fi_info");
    }
    if (pep.pep == nullptr) {
        return refuse(-FI_EINVAL, FI_LOG_EP_CTRL,
                      "another endpoint has the passive endpoint's address already");
    }
    if (const int result = tw_pep_close(pep.pep); result != 0) {
        return log_failure("the passive endpoint does not give its address up", result);
    }
    pep.pep = nullptr;
    return 0;
}

}  // namespace tagwire::fi
