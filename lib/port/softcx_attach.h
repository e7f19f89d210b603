// SPDX-License-Identifier: BSD-3-Clause
// The software ConnectX in a process that was not started under softcx-run: a library that a
// program loads at run time comes too late for LD_PRELOAD. So libsoftcx.so is loaded here, and
// the calls by which libibverbs, libmlx5 and the driver reach the kernel are led to it, in these
// libraries alone; the program's own calls stay as they are.
#pragma once

#include <string>

namespace tagwire::port {

struct SoftcxSettings {
    std::string library;   // path of libsoftcx.so; empty: beside this library, or installed
    std::string wire;      // SOFTCX_WIRE; TAGWIRE_WIRE in error texts
    std::string mac;       // SOFTCX_MAC
    unsigned devices = 1;  // SOFTCX_DEVICES
};

// Whether softcx is in the process: preloaded, linked, or attached before.
bool softcx_is_here();

// What softcx says of itself: why no device is shown, or the last one could not be opened. Empty:
// nothing failed, or there is no softcx.
std::string softcx_complaint();

// The value of softcx's own variables wins over the settings. Throws Failure.
void attach_softcx(const SoftcxSettings& settings);

}  // namespace tagwire::port
