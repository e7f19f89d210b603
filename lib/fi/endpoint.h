// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <tagwire/tagwire.h>

#include "lib/fi/av.h"
#include "lib/fi/domain.h"

namespace tagwire::fi {

struct Endpoint {
    fid_ep fid;
    Domain* domain;
    tw_ep* ep = nullptr;
    // Without FI_DIRECTED_RECV the source of a receive means nothing.
    uint64_t source_mask = 0;
    bool has_send_queue = false;
    bool has_receive_queue = false;
    AddressVector* av = nullptr;

    tw_addr source(fi_addr_t address) const { return address | source_mask; }
};

// messages.cc, remote_memory.cc, atomics.cc
extern fi_ops_msg message_ops;
extern fi_ops_tagged tagged_ops;
extern fi_ops_rma rma_ops;
extern fi_ops_atomic atomic_ops;

}  // namespace tagwire::fi
