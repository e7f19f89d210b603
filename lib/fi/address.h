// SPDX-License-Identifier: BSD-3-Clause
// libfabric's address formats and the core's addresses. Packets are IPv4, so of FI_SOCKADDR_IN6
// there are the IPv4-mapped addresses (::ffff:10.0.0.1); :: and ::1 are read as 0.0.0.0 and
// 127.0.0.1. A sockaddr has no room of its own for the number of the endpoint within its worker. In
// both formats it is, in network order, in a field that is zero (endpoint 0) in an address that a
// person typed: sin_zero[0..1], sin6_flowinfo.
#pragma once

#include <netinet/in.h>
#include <rdma/fabric.h>
#include <tagwire/types.h>

#include <cstdint>
#include <string>

namespace tagwire::fi {

sockaddr_in to_sockaddr(const tw_address& address);
// Of either format, in at most `length` bytes: the family says which. -FI_EINVAL: not an address;
// -EAFNOSUPPORT: IPv6, and not a mapped one. Both are told in the log.
int from_sockaddr(const void* data, size_t length, tw_address* address);

// The same for fi_info::src_addr, if there is one. False: there is none that can be used.
bool read_source(const fi_info& info, tw_address* address);

// The same for what fi_setname is given: of the object's own format.
int from_name(uint32_t format, const void* data, size_t length, tw_address* address);
// The loopback and the wildcard address stand for this process, whatever its card.
bool names_no_card(const tw_address& address);

// `format` is FI_SOCKADDR_IN or FI_SOCKADDR_IN6.
size_t name_size(uint32_t format);
// Writes what there is room for; returns name_size().
size_t copy_name(const tw_address& address, uint32_t format, void* room, size_t size);
// As fi_getname wants it: -FI_ETOOSMALL, and the length that is needed, when there is no room.
int give_name(const tw_address& address, uint32_t format, void* room, size_t* length);

// In memory of its own, in place of what `data` points to, as in fi_info.
void set_address(const tw_address& address, uint32_t format, void** data, size_t* length);

// A host name or number and a service name or number; either may be NULL.
int resolve(const char* node, const char* service, bool numeric, tw_address* address);
// "fi_sockaddr_in://10.0.0.1:18515" or "fi_sockaddr_in6://[::ffff:10.0.0.1]:18515", with "/3"
// behind it for an endpoint other than 0.
std::string to_text(const tw_address& address, uint32_t format);

}  // namespace tagwire::fi
