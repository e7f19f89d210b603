// SPDX-License-Identifier: BSD-3-Clause
// The file descriptors by which a client hears of completion and asynchronous
// events: one record per read, as uverbs gives them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace softcx {

struct EventQueue {
    EventQueue() = default;
    EventQueue(const EventQueue&) = delete;
    EventQueue& operator=(const EventQueue&) = delete;
    ~EventQueue();

    // Makes the descriptor pair; the client's end is returned, or -errno.
    int open(bool nonblocking);

    void push(const void* record, size_t size);

    // Takes back the records of `element` that the client has not read; returns how
    // many. A destroy command must not count them.
    uint32_t withdraw(uint64_t element);

    // Moves records that found the descriptor full; called while stepping.
    void retry();

    int model_fd = -1;
    int reader_fd = -1;  // the client's end, kept so that the queue outlives a close
    std::deque<std::vector<uint8_t>> backlog;
};

// True while any queue has a backlog.
bool events_wait_for_room() noexcept;

}  // namespace softcx
