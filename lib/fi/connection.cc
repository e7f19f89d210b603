// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/connection.h"

#include <rdma/fi_errno.h>

#include <cstring>
#include <memory>

#include "lib/fi/address.h"
#include "lib/fi/endpoint.h"
#include "lib/fi/event_queue.h"
#include "lib/fi/info.h"
#include "lib/fi/object.h"
#include "lib/fi/passive_endpoint.h"
#include "lib/fi/provider.h"
#include "lib/fi/refusal.h"

namespace tagwire::fi {
namespace {

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
    request->listener = pep.name;
    set_address(pep.name, info->addr_format, &info->src_addr, &info->src_addrlen);
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

int not_connected() {
    return refuse(-FI_EINVAL, FI_LOG_EP_CTRL,
                  "this endpoint is FI_EP_RDM: connections are of FI_EP_MSG endpoints");
}

}  // namespace

ConnectionRequest* request_of(const fi_info& info) {
    return info.handle != nullptr && info.handle->fclass == FI_CLASS_CONNREQ
               ? &object_of<ConnectionRequest>(info.handle)
               : nullptr;
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
        return not_connected();
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
    if (result != 0) {
        return log_failure("the endpoint does not connect", result);
    }
    ep.remote_name = address;
    return 0;
}

int accept(fid_ep* handle, const void* param, size_t length) {
    auto& ep = object_of<Endpoint>(handle);
    if (!ep.connected) {
        return not_connected();
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
        return not_connected();
    }
    const Guard guard(*ep.domain);
    const int result = persist(*ep.domain, [&] { return tw_shutdown(ep.ep, flags); });
    // The core tells the peer alone; programs wait for the event on both sides.
    if (result == 0 && ep.established) {
        announce_end(ep);
    }
    return result == 0 ? 0 : log_failure("the endpoint does not shut down", result);
}

int get_peer(fid_ep* handle, void* data, size_t* length) {
    auto& ep = object_of<Endpoint>(handle);
    tw_address address{};
    const Guard guard(*ep.domain);
    if (const int result = tw_getpeer(ep.ep, &address); result != 0) {
        return log_failure("the peer has no address", result);
    }
    // The accepting side has its listener's name.
    return give_name(ep.remote_name.value_or(address), ep.address_format, data, length);
}

}  // namespace tagwire::fi
