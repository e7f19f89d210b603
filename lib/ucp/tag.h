// SPDX-License-Identifier: BSD-3-Clause
// Tagged messages: UCP's calls on the core's matching. tag_send.cc, tag_receive.cc, tag_probe.cc
#pragma once

#include "lib/ucp/worker.h"

// What a probe that removes gives out, until its receive is posted.
struct ucp_recv_desc {
    tw_context context;
    ucp_tag_recv_info_t info;
};

namespace tagwire::ucp {

// The core returns the probe's context as that of the receive. By then its content is ours.
struct Claimed : Operation {
    Request* request;
};
static_assert(sizeof(Claimed) <= sizeof(tw_context));

void end_tag_receive(Request& request, const Done& done);
void end_claimed(Operation& operation, const Done& done);
// What a receive learned; the status is the operation's.
ucs_status_t take_receive(Request& request, const Done& done);

}  // namespace tagwire::ucp
