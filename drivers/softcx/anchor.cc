// SPDX-License-Identifier: BSD-3-Clause
// Part of every program that links softcx.
#include "drivers/softcx/softcx.h"

namespace {

// A reference that the linker cannot drop, so that --as-needed keeps the library.
[[gnu::used]] const char* (*const anchor)() = softcx_describe;

}  // namespace
