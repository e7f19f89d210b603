// SPDX-License-Identifier: BSD-3-Clause
// Event queues: a list of events under a lock of its own, and an eventfd that tells sleepers.
#pragma once

#include <rdma/fi_eq.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "lib/fi/fabric.h"

namespace tagwire::fi {

struct Event {
    uint32_t type = 0;  // libfabric's and 1; 0: an error
    std::vector<uint8_t> data;
    fi_eq_err_entry error{};
};

struct Domain;

struct EventQueue {
    fid_eq fid;
    Fabric* fabric;
    fi_wait_obj wait_object;
    bool writable;
    size_t limit;
    int fd = -1;
    std::atomic<int> bound{0};
    std::mutex mutex;
    std::deque<Event> events;
    std::vector<uint8_t> error_data;

    std::vector<Domain*> sources;  // whose progress brings events; may be in it several times

    void add_source(Domain& domain);
    void remove_source(Domain& domain);
    bool has_sources();
    // A turn of each source.
    void work();
    void add(uint32_t type, struct fid* source, void* context, uint64_t data);
    void add_error(struct fid* source, void* context, uint64_t data, int error);
    void push(Event event);
    bool ready();
};

}  // namespace tagwire::fi
