// SPDX-License-Identifier: BSD-3-Clause
#include "lib/tagwire/event_queue.h"

#include <cstring>
#include <memory>

#include "lib/tagwire/address.h"
#include "lib/tagwire/attributes.h"
#include "lib/tagwire/connection.h"
#include "lib/tagwire/error.h"
#include "lib/tagwire/guard.h"
#include "lib/tagwire/passive_endpoint.h"

namespace tagwire {

namespace {

const char* describe(int error) {
    switch (error) {
        case ECONNREFUSED:
            return "nobody listens there, too many requests wait, or the request was rejected";
        case ECONNRESET:
            return "the peer restarted, or closed, before the connection was there";
        case ETIMEDOUT:
            return "the peer was silent for longer than peer_timeout_ms";
        case EKEYREJECTED:
            return "the peer does not have this authorization key";
        case EHOSTUNREACH:
            return "no station answers for the peer's IP address (ARP)";
        default:
            return tw_strerror(error);
    }
}

void fill(const QueuedEvent& event, tw_eq_entry* entry) {
    *entry = {};
    entry->event = event.event;
    entry->error = event.error;
    const CmParam* param = nullptr;
    if (event.request != nullptr) {
        entry->pep = event.request->pep;
        entry->context = event.request->pep->context();
        entry->request = event.request;
        entry->peer = from_transport(event.request->client());
        param = &event.request->param;
    } else {
        entry->ep = event.connection->ep();
        entry->peer = from_transport(event.connection->remote());
        param = event.event == TW_CONNECTED ? &event.connection->answer() : nullptr;
    }
    if (param != nullptr) {
        entry->param_length = param->length;
        std::memcpy(entry->param, param->bytes, param->length);
    }
}

}  // namespace

void EventQueue::push(QueuedEvent& event) noexcept {
    event.queue = this;
    event.next = nullptr;
    event.previous = last_;
    (last_ != nullptr ? last_->next : first_) = &event;
    last_ = &event;
    ++worker_.activity();
}

void EventQueue::remove(QueuedEvent& event) noexcept {
    EventQueue* const queue = event.queue;
    if (queue == nullptr) {
        return;
    }
    (event.previous != nullptr ? event.previous->next : queue->first_) = event.next;
    (event.next != nullptr ? event.next->previous : queue->last_) = event.previous;
    event.queue = nullptr;
}

int EventQueue::read(tw_eq_entry* entry, uint64_t flags) noexcept {
    if (first_ == nullptr) {
        return -EAGAIN;
    }
    if (first_->failed) {
        return -TW_EAVAIL;
    }
    fill(*first_, entry);
    if ((flags & TW_PEEK) == 0) {
        remove(*first_);
    }
    return 1;
}

int EventQueue::read_or_sleep(tw_eq_entry* entry, int timeout_ms, uint64_t flags) noexcept {
    return static_cast<int>(worker_.waiting().wait(timeout_ms, [&]() -> std::optional<ssize_t> {
        const int result = read(entry, flags);
        return result == -EAGAIN ? std::nullopt : std::optional<ssize_t>(result);
    }));
}

int EventQueue::read_error(tw_eq_error* error) noexcept {
    if (first_ == nullptr || !first_->failed) {
        return -EAGAIN;
    }
    const QueuedEvent& event = *first_;
    *error = {};
    error->ep = event.connection->ep();
    error->error = event.error;
    error->text = describe(event.error);
    const CmParam& param = event.connection->answer();
    error->param_length = param.length;
    std::memcpy(error->param, param.bytes, param.length);
    remove(*first_);
    return 1;
}

}  // namespace tagwire

using namespace tagwire;

int tw_eq_open(tw_worker* worker, const tw_eq_attr* attr, tw_eq** eq) {
    if (worker == nullptr || eq == nullptr) {
        return refuse(EINVAL, "tw_eq_open: worker and eq cannot be NULL");
    }
    tw_eq_attr wanted{};
    if (const int error = take_attributes(attr, &wanted, "tw_eq_attr"); error != 0) {
        return error;
    }
    const Guard guard(*worker);
    return guarded([&] {
        *eq = new tw_eq(*worker);
        worker->child_opened();
        return 0;
    });
}

int tw_eq_close(tw_eq* eq) {
    if (eq == nullptr) {
        return refuse(EINVAL, "tw_eq_close: eq cannot be NULL");
    }
    const Guard guard(eq->worker());
    if (eq->bound()) {
        return refuse(EBUSY, "tw_eq_close: an endpoint is bound to the queue; close it first");
    }
    eq->worker().child_closed();
    delete eq;
    return 0;
}

int tw_eq_read(tw_eq* eq, tw_eq_entry* entry, uint64_t flags) {
    if (eq == nullptr || entry == nullptr || (flags & ~TW_PEEK) != 0) {
        return refuse(EINVAL, "tw_eq_read: eq and entry cannot be NULL; flags are TW_PEEK or none");
    }
    const Guard guard(eq->worker());
    return eq->read(entry, flags);
}

int tw_eq_sread(tw_eq* eq, tw_eq_entry* entry, int timeout_ms, uint64_t flags) {
    if (eq == nullptr || entry == nullptr || (flags & ~TW_PEEK) != 0) {
        return refuse(EINVAL,
                      "tw_eq_sread: eq and entry cannot be NULL; flags are TW_PEEK or none");
    }
    const Guard guard(eq->worker());
    return eq->read_or_sleep(entry, timeout_ms, flags);
}

int tw_eq_readerr(tw_eq* eq, tw_eq_error* error) {
    if (eq == nullptr || error == nullptr) {
        return refuse(EINVAL, "tw_eq_readerr: eq and error cannot be NULL");
    }
    const Guard guard(eq->worker());
    return eq->read_error(error);
}
