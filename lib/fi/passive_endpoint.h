// SPDX-License-Identifier: BSD-3-Clause
// Passive endpoints. Which address they have decides which worker they listen on: they are opened
// with the first of a source address, fi_setname, fi_getname and fi_listen.
#pragma once

#include <rdma/fi_endpoint.h>
#include <tagwire/tagwire.h>

#include "lib/fi/domain.h"
#include "lib/fi/event_queue.h"

namespace tagwire::fi {

struct PassiveEndpoint {
    fid_pep fid;
    Fabric* fabric;
    fi_info* info = nullptr;  // its src_addr is what the application wants
    Domain* domain = nullptr;
    tw_pep* pep = nullptr;
    tw_address name{};  // once there is a domain
    EventQueue* eq = nullptr;
    bool named = false;  // by fi_setname
    bool listening = false;

    int open();
    // Gives the address up. -FI_EBUSY: requests are being answered.
    int shut();
};

int open_passive_endpoint(fid_fabric* fabric, fi_info* info, fid_pep** pep, void* context);
// Opens it, if it was not.
int name_of_passive(fid_t handle, tw_address* name);
// The passive endpoint whose address an endpoint with this information takes over; nullptr: none.
PassiveEndpoint* yielding(const fi_info& info);
// The address of the passive endpoint that `info` names goes to an endpoint of the domain, which is
// opened next. The domain's lock is held.
int yield_address(PassiveEndpoint& pep, const Domain& domain);

}  // namespace tagwire::fi
