// SPDX-License-Identifier: BSD-3-Clause
// A UCP context: what a program asked for once, for all its workers.
#pragma once

#include <ucp/api/ucp.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

namespace tagwire::ucp {

class Worker;
struct Memory;

struct Context {
    uint64_t features = 0;
    size_t request_size = 0;
    ucp_request_init_callback_t request_init = nullptr;
    ucp_request_cleanup_callback_t request_cleanup = nullptr;
    bool shared_by_threads = false;
    size_t expected_endpoints = 0;
    size_t offer_threshold = 0;
    std::chrono::nanoseconds keepalive_interval{};
    std::string name;

    // Memory is mapped for the context, and reached through each of its workers.
    std::mutex mutex;
    std::vector<Worker*> workers;
    std::vector<Memory*> memory;

    bool has(uint64_t feature) const { return (features & feature) != 0; }
};

}  // namespace tagwire::ucp

struct ucp_context final : tagwire::ucp::Context {};
