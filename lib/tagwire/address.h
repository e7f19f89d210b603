// SPDX-License-Identifier: BSD-3-Clause
// Between the public form of an address and the transport's.
#pragma once

#include "lib/transport/address.h"
#include "tagwire/tagwire.h"

namespace tagwire {

class Worker;

transport::EndpointAddress to_transport(const tw_address& address);
tw_address from_transport(const transport::EndpointAddress& address);

// 0, or -EINVAL with a text.
int check_address(const tw_address& address);
// The same for one that a worker can speak to; `call` is for the text.
int check_peer_address(const Worker& worker, const tw_address& address, const char* call);

}  // namespace tagwire
