// SPDX-License-Identifier: BSD-3-Clause
// Events of connections, in their order. An event is part of the endpoint or of the request
// that it is about, so that none can be lost for want of room, and goes when that goes.
#pragma once

#include "tagwire/connect.h"

namespace tagwire {

class Connection;
class EventQueue;
class Worker;

struct QueuedEvent {
    QueuedEvent* next = nullptr;
    QueuedEvent* previous = nullptr;
    EventQueue* queue = nullptr;  // while it is in one
    const Connection* connection = nullptr;
    tw_request* request = nullptr;
    tw_event event = TW_CONNREQ;
    int error = 0;
    bool failed = false;  // for tw_eq_readerr
};

class EventQueue {
  public:
    explicit EventQueue(Worker& worker) : worker_(worker) {}

    Worker& worker() const { return worker_; }

    void push(QueuedEvent& event) noexcept;
    static void remove(QueuedEvent& event) noexcept;  // if it is in a queue

    int read(tw_eq_entry* entry, uint64_t flags) noexcept;
    int read_or_sleep(tw_eq_entry* entry, int timeout_ms, uint64_t flags) noexcept;
    int read_error(tw_eq_error* error) noexcept;

    void bind() { ++bindings_; }
    void unbind() { --bindings_; }
    bool bound() const { return bindings_ != 0; }

  private:
    Worker& worker_;
    QueuedEvent* first_ = nullptr;
    QueuedEvent* last_ = nullptr;
    uint32_t bindings_ = 0;
};

}  // namespace tagwire

struct tw_eq final : tagwire::EventQueue {
    using EventQueue::EventQueue;
};
