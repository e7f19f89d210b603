// SPDX-License-Identifier: BSD-3-Clause
// What "show port" prints, in the shape of testpmd's.
#pragma once

#include <cstdint>

namespace tagwire::testpmd {

void show_port_info(uint16_t port);
void show_port_stats(uint16_t port);
void show_port_xstats(uint16_t port);
void show_port_summary_header();
void show_port_summary(uint16_t port);

}  // namespace tagwire::testpmd
