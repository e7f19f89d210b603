// SPDX-License-Identifier: BSD-3-Clause
// The kernel network device that belongs to a device: drivers ask it, not verbs, for
// the address, the MTU and the link.
#pragma once

#include <string>

#include "drivers/softcx/model/objects.h"

namespace softcx {

// The address of the network device `name` of this network namespace. False, and why
// with a remedy, when there is none or its address is not that of an Ethernet port.
bool read_netdev_mac(const std::string& name, MacAddress& mac, std::string& error);

}  // namespace softcx
