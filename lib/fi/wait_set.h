// SPDX-License-Identifier: BSD-3-Clause
// Wait sets, poll sets and fi_trywait.
#pragma once

#include <rdma/fi_eq.h>

namespace tagwire::fi {

int join_wait_set(fid_wait* set, fid* member);
void leave_wait_sets(fid* member);

}  // namespace tagwire::fi
