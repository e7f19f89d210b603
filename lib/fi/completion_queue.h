// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rdma/fi_eq.h>
#include <tagwire/tagwire.h>

#include <atomic>
#include <chrono>

#include "lib/fi/domain.h"

namespace tagwire::fi {

// Calls that wait poll so often before they nap between turns.
inline constexpr unsigned kTurnsBeforeSleep = 2000;
inline constexpr auto kNap = std::chrono::microseconds(50);

struct CompletionQueue {
    static constexpr size_t kBatch = 16;

    fid_cq fid;
    Domain* domain;
    tw_cq* cq;
    fi_wait_obj wait_object;
    int fd = -1;
    std::atomic<bool> signaled{false};
    // What ready() found, before anything else.
    size_t stash_begin = 0;
    size_t stash_end = 0;
    tw_cq_entry stash[kBatch];
    const char* error_text = "";

    // Whether there is something to read, an error too, after a turn of the worker if need be.
    bool ready();
    // The same under the domain's lock: 0, -FI_EAGAIN, or -FI_EAVAIL for an error.
    ssize_t look();
    void arm();
    ssize_t fetch(tw_cq_entry* entries, size_t count);
};

}  // namespace tagwire::fi
