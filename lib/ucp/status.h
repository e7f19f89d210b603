// SPDX-License-Identifier: BSD-3-Clause
// Results of the core in UCX's terms.
#pragma once

#include <ucs/type/status.h>

namespace tagwire::ucp {

// `error` is an errno or TW_E... of either sign; 0 is UCS_OK.
ucs_status_t status_of(int error);

// Whether a completion's error says that the peer is gone, not just that this operation failed.
bool is_peer_failure(ucs_status_t status);

}  // namespace tagwire::ucp
