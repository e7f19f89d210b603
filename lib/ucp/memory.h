// SPDX-License-Identifier: BSD-3-Clause
// Memory that a program maps: a region of every worker of its context, under one key.
#pragma once

#include <ucp/api/ucp.h>

#include <map>

#include "tagwire/tagwire.h"

namespace tagwire::ucp {

class Worker;
struct Context;

struct Memory {
    Context* context;
    void* address;
    size_t length;
    uint64_t access;  // TW_REMOTE_READ, TW_REMOTE_WRITE
    uint64_t key;
    bool allocated;  // here
    std::map<Worker*, tw_mr*> regions;

    int open_region(Worker& worker);
    void close_region(Worker& worker);
};

// All memory of the context becomes reachable through the worker, or no more.
int open_regions(Worker& worker);
void close_regions(Worker& worker);

}  // namespace tagwire::ucp

struct ucp_mem final : tagwire::ucp::Memory {};

// What a peer knows of it.
struct ucp_rkey {
    uint64_t key;
    uint64_t address;
    uint64_t length;
};
