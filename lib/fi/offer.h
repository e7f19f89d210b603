// SPDX-License-Identifier: BSD-3-Clause
// What the provider can do, held against what is asked for. Hints that ask for more are refused
// with a line of information in the log, attributes of a call that opens something with a warning.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#include <cstdint>
#include <string>

#include "lib/fi/flags.h"

namespace tagwire::fi {

inline constexpr const char* kFabricName = "tagwire";

inline constexpr uint64_t kMessageCaps = FI_MSG | FI_TAGGED;
inline constexpr uint64_t kRemoteCaps = FI_RMA | FI_ATOMIC;
inline constexpr uint64_t kDomainCaps = FI_LOCAL_COMM | FI_REMOTE_COMM | FI_SHARED_AV;
inline constexpr uint64_t kTransmitCaps = kMessageCaps | kRemoteCaps | FI_SEND | FI_READ |
                                          FI_WRITE | FI_FENCE | FI_NAMED_RX_CTX | FI_TRIGGER;
inline constexpr uint64_t kReceiveCaps =
    kMessageCaps | kRemoteCaps | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV |
    FI_DIRECTED_RECV | FI_SOURCE | FI_RMA_EVENT | kTaggedMultiReceive | kTaggedDirectedReceive;

// Of an endpoint of this type, to a program of this API version.
uint64_t caps_of(uint32_t version, fi_ep_type type);
bool type_is_offered(fi_ep_type type);
bool hints_fit(uint32_t version, const fi_info& hints, fi_ep_type type, const std::string& domain);

// 0, or -FI_EINVAL: of what a domain, a context or an endpoint is opened with.
int check_domain(const fi_domain_attr& wanted);
int check_transmit(const fi_tx_attr& wanted);
int check_receive(const fi_rx_attr& wanted);

}  // namespace tagwire::fi
