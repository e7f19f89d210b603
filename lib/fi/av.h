// SPDX-License-Identifier: BSD-3-Clause
// Address vectors, tables and maps alike: an fi_addr_t is the core's index.
#pragma once

#include <rdma/fi_domain.h>
#include <tagwire/tagwire.h>

#include <atomic>

#include "lib/fi/domain.h"

namespace tagwire::fi {

struct EventQueue;

struct AddressVector {
    fid_av fid;
    Domain* domain;
    tw_av* av;
    bool asynchronous;  // insertions end with an event
    EventQueue* eq;
    std::atomic<int> endpoints{0};
};

}  // namespace tagwire::fi
