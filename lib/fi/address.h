// SPDX-License-Identifier: BSD-3-Clause
// FI_SOCKADDR_IN and the core's addresses. A sockaddr has no room for the number of the endpoint
// within its worker but in its padding: sin_zero[0..1] holds it, in network order, and is zero
// (endpoint 0) in an address that a person typed.
#pragma once

#include <netinet/in.h>
#include <tagwire/types.h>

#include <string>

namespace tagwire::fi {

sockaddr_in to_sockaddr(const tw_address& address);
// -FI_EINVAL: not an IPv4 address.
int from_sockaddr(const void* data, size_t length, tw_address* address);
// A host name or number and a service name or number; either may be NULL.
int resolve(const char* node, const char* service, bool numeric, sockaddr_in* address);
// "fi_sockaddr_in://10.0.0.1:18515", with "/3" behind it for an endpoint other than 0.
std::string to_text(const sockaddr_in& address);

}  // namespace tagwire::fi
