// SPDX-License-Identifier: BSD-3-Clause
// RDMA_VERBS_IOCTL: the command with its attributes.
#pragma once

#include <cstdint>

#include "drivers/softcx/model/context.h"

namespace softcx {

// `message` is a client address (struct ib_uverbs_ioctl_hdr and its attributes).
// Returns 0 or an errno. Nothing is believed: every address is looked at first.
int execute_ioctl(Context& context, uint64_t message);

}  // namespace softcx
