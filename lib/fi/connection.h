// SPDX-License-Identifier: BSD-3-Clause
// Connected endpoints (fi_cm(3)). libfabric listens on a fabric, maybe before there is a domain.
// Here a passive endpoint uses the domain for connected endpoints that is there, or opens one,
// which the next fi_domain for connected endpoints is given. A request belongs to its listener's
// domain.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <tagwire/tagwire.h>

#include "lib/fi/domain.h"

namespace tagwire::fi {

struct Endpoint;

// What FI_CONNREQ brings, and fi_endpoint or fi_reject takes.
struct ConnectionRequest {
    struct fid fid;
    Domain* domain;
    tw_request* request;
};

int open_passive_endpoint(fid_fabric* fabric, fi_info* info, fid_pep** pep, void* context);
// The request that the information of an FI_CONNREQ event stands for; nullptr: none.
tw_request* take_request(const fi_info& info);
// The domain of its passive endpoint; nullptr: there is no request.
Domain* domain_of_request(const fi_info& info);
// Brings the core's connection events of a domain to libfabric's queues. Under its lock.
void pump_connection_events(Domain& domain);
// The core's event queue of the domain, opened at first use.
int connection_queue(Domain& domain, tw_eq** eq);

int connect(fid_ep* ep, const void* address, const void* param, size_t length);
int accept(fid_ep* ep, const void* param, size_t length);
int shutdown(fid_ep* ep, uint64_t flags);
int get_peer(fid_ep* ep, void* address, size_t* length);

}  // namespace tagwire::fi
