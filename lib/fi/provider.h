// SPDX-License-Identifier: BSD-3-Clause
// The provider as libfabric sees it, its parameters and its log.
#pragma once

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include "lib/port/settings.h"

namespace tagwire::fi {

extern fi_provider provider;

// From FI_TAGWIRE_* (registered with libfabric, shown by fi_info -e), else TAGWIRE_*. Throws
// port::Failure.
port::Settings read_settings();

// What a call of the core failed with, in libfabric's log; returns `result`.
[[gnu::cold]] int log_failure(const char* what, int result);

}  // namespace tagwire::fi
