// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rdma/fi_eq.h>
#include <tagwire/tagwire.h>

#include "lib/fi/domain.h"

namespace tagwire::fi {

struct Counter {
    fid_cntr fid;
    Domain* domain;
    tw_cntr* counter;
    fi_wait_obj wait_object;
    tw_wait* wait = nullptr;  // behind the descriptor of FI_GETWAIT
    int fd = -1;
    uint64_t seen = 0;  // value and errors at the last moved()

    // Whether it changed since the last look.
    bool moved();
    int arm();
};

}  // namespace tagwire::fi
