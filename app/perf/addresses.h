// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rte_ether.h>
#include <tagwire/tagwire.h>

#include <cstdint>
#include <string>

namespace tagwire::perf {

// "IP" or "IP:PORT"; a missing port is `default_port`. Throws Failure (usage).
tw_address parse_address(const std::string& text, uint16_t default_port);
std::string format_address(const tw_address& address);

// 10.x.y.z with the last three bytes of the MAC address: the same for the same card,
// different for two cards of one wire with little doubt.
std::string default_ip(const rte_ether_addr& mac);

}  // namespace tagwire::perf
