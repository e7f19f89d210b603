// SPDX-License-Identifier: BSD-3-Clause
// Connected endpoints (fi_cm(3)). libfabric listens on a fabric, maybe before there is a domain.
// Here a passive endpoint uses the domain for connected endpoints that is there, or opens one,
// which the next fi_domain for connected endpoints is given. A request belongs to its listener's
// domain.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <tagwire/tagwire.h>

#include <cerrno>
#include <chrono>
#include <memory>

#include "lib/fi/domain.h"

namespace tagwire::fi {

struct Endpoint;

// What FI_CONNREQ brings, and fi_endpoint or fi_reject takes.
struct ConnectionRequest {
    struct fid fid;
    Domain* domain;
    tw_request* request;
    tw_address listener;
};

// The request that the information of an FI_CONNREQ event stands for; nullptr: none. It lives until
// it is rejected, or an endpoint was opened for it.
ConnectionRequest* request_of(const fi_info& info);
// Brings the core's connection events of a domain to libfabric's queues. Under its lock.
void pump_connection_events(Domain& domain);
// The core's event queue of the domain, opened at first use.
int connection_queue(Domain& domain, tw_eq** eq);

int connect(fid_ep* ep, const void* address, const void* param, size_t length);
int accept(fid_ep* ep, const void* param, size_t length);
int shutdown(fid_ep* ep, uint64_t flags);
int get_peer(fid_ep* ep, void* address, size_t* length);

// A core that asks to try again is busy with an earlier connection's end. Under the lock.
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

}  // namespace tagwire::fi
