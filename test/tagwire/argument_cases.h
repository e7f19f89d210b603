// SPDX-License-Identifier: BSD-3-Clause
// Calls with one argument wrong each, as tables. Every public call is in one of them, or in that of
// generated_arguments_test.cc; control_arguments_test.cc runs them and compares with the headers.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tagwire/tagwire.h"

struct rte_mbuf;

namespace tagwire::test {

// What the calls are made on. Nothing of it may change by a call that fails, least of all what the
// calls write their results to.
struct Objects {
    // Of one worker. `ep` is enabled with av and cq; `idle` is not, and nothing is bound to it.
    tw_worker* worker = nullptr;
    tw_av* av = nullptr;
    tw_cq* cq = nullptr;
    tw_ep* ep = nullptr;
    tw_ep* idle = nullptr;
    tw_cntr* cntr = nullptr;       // bound to ep
    tw_cntr* free_cntr = nullptr;  // bound to nothing
    tw_mr* mr = nullptr;           // counts, for `cntr`
    tw_mr* silent_mr = nullptr;    // does not count
    tw_addr peer = 0;
    tw_addr key_index = 0;
    uint64_t key = 0;  // of mr
    tw_wait* wait = nullptr;
    // Of another worker.
    tw_av* other_av = nullptr;
    tw_cq* other_cq = nullptr;
    tw_cntr* other_cntr = nullptr;

    // Results of calls, here so that a test sees that they stay as they are.
    struct Results {
        tw_worker* worker;
        tw_av* av;
        tw_cq* cq;
        tw_ep* ep;
        tw_cntr* cntr;
        tw_mr* mr;
        tw_wait* wait;
        int fd;
        tw_addr index;
        tw_address address;
        tw_cq_entry entry;
        tw_cq_error error;
        tw_stat stat;
        size_t size;
        size_t value;
        char text[64];
        uint64_t memory[32];
    } results;
};

struct Case {
    const char* call;
    const char* wrong;
    int64_t result;
    std::function<int64_t(Objects&)> run;
};
using Cases = std::vector<Case>;

Cases worker_cases();
Cases vector_cases();  // and addresses
Cases queue_cases();   // and counters
Cases endpoint_cases();
Cases wait_cases();
Cases memory_cases();
Cases connect_cases();
Cases region_cases();
Cases rma_cases();
Cases atomic_cases();

// Of the table in generated_arguments_test.cc.
std::set<std::string> generated_calls();

}  // namespace tagwire::test
