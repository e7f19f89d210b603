// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/connection.h"

#include <rdma/fi_errno.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "lib/fi/address.h"
#include "lib/fi/endpoint.h"
#include "lib/fi/event_queue.h"
#include "lib/fi/info.h"
#include "lib/fi/object.h"
#include "lib/fi/provider.h"

namespace tagwire::fi {
namespace {

struct PassiveEndpoint {
    fid_pep fid;
    Domain* domain;
    tw_pep* pep = nullptr;
    EventQueue* eq = nullptr;
    fi_info* info = nullptr;
};

Event connection_event(uint32_t type, struct fid* source, fi_info* info, const uint8_t* param,
                       size_t length) {
    fi_eq_cm_entry entry{};
    entry.fid = source;
    entry.info = info;
    Event event;
    event.type = type + 1;
    event.data.resize(sizeof(entry) + length);
    std::memcpy(event.data.data(), &entry, sizeof(entry));
    if (length > 0) {
        std::memcpy(event.data.data() + sizeof(entry), param, length);
    }
    return event;
}

void announce_request(Domain& domain, const tw_eq_entry& entry) {
    auto& pep = *static_cast<PassiveEndpoint*>(entry.context);
    auto request = std::make_unique<ConnectionRequest>();
    fi_info* info = fi_dupinfo(pep.info);
    if (info == nullptr || pep.eq == nullptr) {
        fi_freeinfo(info);
        tw_reject(pep.pep, entry.request, nullptr, 0);
        return;
    }
    request->fid.fclass = FI_CLASS_CONNREQ;
    request->domain = &domain;
    request->request = entry.request;
    set_address(entry.peer, info->addr_format, &info->dest_addr, &info->dest_addrlen);
    info->handle = &request.release()->fid;
    pep.eq->push(connection_event(FI_CONNREQ, &pep.fid.fid, info, entry.param, entry.param_length));
}

// Once, whichever side ends the connection first.
void announce_end(Endpoint& ep) {
    if (!ep.ended) {
        ep.ended = true;
        ep.eq->push(connection_event(FI_SHUTDOWN, &ep.fid.fid, nullptr, nullptr, 0));
    }
}

void announce(Domain& domain, const tw_eq_entry& entry) {
    if (entry.event == TW_CONNREQ) {
        announce_request(domain, entry);
        return;
    }
    const auto found = domain.connected.find(entry.ep);
    if (found == domain.connected.end() || found->second->eq == nullptr) {
        return;
    }
    Endpoint& ep = *found->second;
    if (entry.event == TW_SHUTDOWN) {
        announce_end(ep);
        return;
    }
    ep.established = true;
    ep.eq->push(
        connection_event(FI_CONNECTED, &ep.fid.fid, nullptr, entry.param, entry.param_length));
}

void announce_error(Domain& domain, const tw_eq_error& error) {
    const auto found = domain.connected.find(error.ep);
    if (found == domain.connected.end() || found->second->eq == nullptr) {
        return;
    }
    Endpoint& ep = *found->second;
    Event event;
    event.error.fid = &ep.fid.fid;
    event.error.context = ep.fid.fid.context;
    event.error.err = error.error;
    event.error.prov_errno = error.error;
    event.data.assign(error.param, error.param + error.param_length);
    ep.eq->push(std::move(event));
}

// A core that asks to try again is busy with an earlier connection's end.
template <class Call>
int persist(Domain& domain, Call call) {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(domain.peer_timeout_ms);
    int result = 0;
    while ((result = call()) == -EAGAIN && std::chrono::steady_clock::now() < end) {
        domain.progress();
    }
    domain.progress();
    return result;
}

int listen(fid_pep* handle) {
    auto& pep = object_of<PassiveEndpoint>(handle);
    if (pep.eq == nullptr) {
        return -FI_ENOEQ;
    }
    const Guard guard(*pep.domain);
    const int result = tw_listen(pep.pep);
    return result == 0 ? 0 : log_failure("the passive endpoint does not listen", result);
}

int reject(fid_pep* handle, fid_t request, const void* param, size_t length) {
    auto& pep = object_of<PassiveEndpoint>(handle);
    if (request == nullptr || request->fclass != FI_CLASS_CONNREQ) {
        return -FI_EINVAL;
    }
    const std::unique_ptr<ConnectionRequest> taken(&object_of<ConnectionRequest>(request));
    const Guard guard(*pep.domain);
    return persist(*pep.domain, [&] { return tw_reject(pep.pep, taken->request, param, length); });
}

int passive_name(fid_t handle, void* data, size_t* length) {
    auto& pep = object_of<PassiveEndpoint>(handle);
    tw_address address{};
    const Guard guard(*pep.domain);
    if (const int result = tw_pep_name(pep.pep, &address); result != 0) {
        return result;
    }
    return give_name(address, pep.info->addr_format, data, length);
}

int bind_passive(fid* handle, fid* other, uint64_t) {
    auto& pep = object_of<PassiveEndpoint>(handle);
    if (other->fclass != FI_CLASS_EQ || pep.eq != nullptr) {
        return -FI_EINVAL;
    }
    pep.eq = &object_of<EventQueue>(other);
    pep.eq->add_source(*pep.domain);
    return 0;
}

int control_passive(fid*, int command, void*) {
    return command == FI_BACKLOG ? 0 : -FI_ENOSYS;
}

int close_passive(fid* handle) {
    auto& pep = object_of<PassiveEndpoint>(handle);
    if (pep.eq != nullptr) {
        pep.eq->remove_source(*pep.domain);
    }
    {
        const Guard guard(*pep.domain);
        const auto busy = [&] {
            const int result = tw_pep_close(pep.pep);
            return result == -EBUSY ? -EAGAIN : result;
        };
        if (const int result = persist(*pep.domain, busy); result != 0) {
            return result == -EAGAIN ? -FI_EBUSY : result;
        }
    }
    fi_freeinfo(pep.info);
    release_domain(*pep.domain);
    delete &pep;
    return 0;
}

int passive_option(fid_t, int level, int name, void* value, size_t* length) {
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE) {
        return -FI_ENOPROTOOPT;
    }
    if (*length < sizeof(kConnectDataSize)) {
        return -FI_ETOOSMALL;
    }
    std::memcpy(value, &kConnectDataSize, sizeof(kConnectDataSize));
    *length = sizeof(kConnectDataSize);
    return 0;
}

fi_ops passive_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_passive,
    .bind = bind_passive,
    .control = control_passive,
    .ops_open = kAbsent,
    .tostr = kAbsent,
    .ops_set = kAbsent,
};

fi_ops_ep passive_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = kAbsent,
    .getopt = passive_option,
    .setopt = kAbsent,
    .tx_ctx = kAbsent,
    .rx_ctx = kAbsent,
    .rx_size_left = kAbsent,
    .tx_size_left = kAbsent,
};

fi_ops_cm passive_connection_ops = {
    .size = sizeof(fi_ops_cm),
    .setname = kAbsent,
    .getname = passive_name,
    .getpeer = kAbsent,
    .connect = kAbsent,
    .listen = listen,
    .accept = kAbsent,
    .reject = reject,
    .shutdown = kAbsent,
    .join = kAbsent,
};

int open_core_passive(PassiveEndpoint& pep, const fi_info& info) {
    tw_pep_attr attr{};
    attr.size = sizeof(attr);
    tw_address wanted{};
    if (info.src_addr != nullptr && from_sockaddr(info.src_addr, info.src_addrlen, &wanted) == 0) {
        attr.endpoint = wanted.endpoint;
    }
    attr.context = &pep;
    if (info.ep_attr != nullptr && info.ep_attr->auth_key != nullptr) {
        attr.auth_key = info.ep_attr->auth_key;
        attr.auth_key_size = info.ep_attr->auth_key_size;
    }
    if (const int result = connection_queue(*pep.domain, &attr.eq); result != 0) {
        return result;
    }
    int result = tw_pep_open(pep.domain->worker, &attr, &pep.pep);
    if (result == -EADDRINUSE && attr.endpoint == 0) {
        attr.endpoint = TW_EP_ANY;
        result = tw_pep_open(pep.domain->worker, &attr, &pep.pep);
    }
    return result == 0 ? 0 : log_failure("the passive endpoint does not open", result);
}

}  // namespace

int open_passive_endpoint(fid_fabric* fabric, fi_info* info, fid_pep** opened, void* context) {
    if (info == nullptr || info->ep_attr == nullptr || info->ep_attr->type != FI_EP_MSG) {
        return -FI_EINVAL;
    }
    Domain* domain = nullptr;
    if (const int result = domain_to_listen(object_of<Fabric>(fabric), *info, &domain);
        result != 0) {
        return result;
    }
    auto pep = std::make_unique<PassiveEndpoint>();
    pep->fid.fid.fclass = FI_CLASS_PEP;
    pep->fid.fid.context = context;
    pep->fid.fid.ops = &passive_fid_ops;
    pep->fid.ops = &passive_ops;
    pep->fid.cm = &passive_connection_ops;
    pep->domain = domain;
    pep->info = fi_dupinfo(info);
    int result = -FI_ENOMEM;
    if (pep->info != nullptr) {
        const Guard guard(*domain);
        result = open_core_passive(*pep, *info);
    }
    if (result != 0) {
        fi_freeinfo(pep->info);
        release_domain(*domain);
        return result;
    }
    *opened = &pep.release()->fid;
    return 0;
}

Domain* domain_of_request(const fi_info& info) {
    return info.handle != nullptr && info.handle->fclass == FI_CLASS_CONNREQ
               ? object_of<ConnectionRequest>(info.handle).domain
               : nullptr;
}

tw_request* take_request(const fi_info& info) {
    if (info.handle == nullptr || info.handle->fclass != FI_CLASS_CONNREQ) {
        return nullptr;
    }
    const std::unique_ptr<ConnectionRequest> taken(&object_of<ConnectionRequest>(info.handle));
    return taken->request;
}

int connection_queue(Domain& domain, tw_eq** eq) {
    if (domain.connections == nullptr) {
        const tw_eq_attr attr{.size = sizeof(tw_eq_attr), .entries = 0};
        if (const int result = tw_eq_open(domain.worker, &attr, &domain.connections); result != 0) {
            return log_failure("no queue for connection events", result);
        }
    }
    *eq = domain.connections;
    return 0;
}

void pump_connection_events(Domain& domain) {
    for (;;) {
        tw_eq_entry entry{};
        const int count = tw_eq_read(domain.connections, &entry, 0);
        if (count == 1) {
            announce(domain, entry);
            continue;
        }
        tw_eq_error error{};
        if (count != -TW_EAVAIL || tw_eq_readerr(domain.connections, &error) != 1) {
            return;
        }
        announce_error(domain, error);
    }
}

int connect(fid_ep* handle, const void* data, const void* param, size_t length) {
    auto& ep = object_of<Endpoint>(handle);
    tw_address address{};
    if (!ep.connected) {
        return -FI_EINVAL;
    }
    if (const int error = from_sockaddr(data, sizeof(sockaddr_in6), &address); error != 0) {
        return error;
    }
    const Guard guard(*ep.domain);
    if (const int result = ep.core->enable(); result != 0) {
        return result;
    }
    const int result =
        persist(*ep.domain, [&] { return tw_connect(ep.ep, &address, param, length); });
    return result == 0 ? 0 : log_failure("the endpoint does not connect", result);
}

int accept(fid_ep* handle, const void* param, size_t length) {
    auto& ep = object_of<Endpoint>(handle);
    if (!ep.connected) {
        return -FI_EINVAL;
    }
    const Guard guard(*ep.domain);
    if (const int result = ep.core->enable(); result != 0) {
        return result;
    }
    const int result = persist(*ep.domain, [&] { return tw_accept(ep.ep, param, length); });
    return result == 0 ? 0 : log_failure("the endpoint does not accept", result);
}

int shutdown(fid_ep* handle, uint64_t flags) {
    auto& ep = object_of<Endpoint>(handle);
    if (!ep.connected) {
        return -FI_EINVAL;
    }
    const Guard guard(*ep.domain);
    const int result = persist(*ep.domain, [&] { return tw_shutdown(ep.ep, flags); });
    // The core tells the peer alone; programs wait for the event on both sides.
    if (result == 0 && ep.established) {
        announce_end(ep);
    }
    return result;
}

int get_peer(fid_ep* handle, void* data, size_t* length) {
    auto& ep = object_of<Endpoint>(handle);
    tw_address address{};
    const Guard guard(*ep.domain);
    if (const int result = tw_getpeer(ep.ep, &address); result != 0) {
        return result;
    }
    return give_name(address, ep.address_format, data, length);
}

}  // namespace tagwire::fi
