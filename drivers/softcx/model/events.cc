// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/model/events.h"

#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "drivers/softcx/engine.h"
#include "drivers/softcx/model/context.h"

namespace softcx {

namespace {

std::atomic<uint32_t> waiting_records{0};

uint64_t element_of(const uint8_t* record) {
    uint64_t element;
    std::memcpy(&element, record, sizeof(element));
    return element;
}

}  // namespace

bool events_wait_for_room() noexcept {
    return waiting_records.load(std::memory_order_relaxed) != 0;
}

EventQueue::~EventQueue() {
    waiting_records.fetch_sub(static_cast<uint32_t>(backlog.size()), std::memory_order_relaxed);
    if (model_fd >= 0)
        ::close(model_fd);
    if (reader_fd >= 0)
        ::close(reader_fd);
}

// A SEQPACKET pair, because it keeps records apart, and the model can take unread
// ones back without blocking whatever flags the client gave its own end.
int EventQueue::open(bool nonblocking) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return -errno;
    model_fd = ends[0];
    reader_fd = ::fcntl(ends[1], F_DUPFD_CLOEXEC, 0);
    if (reader_fd < 0) {
        const int error = errno;
        ::close(ends[1]);
        return -error;
    }
    if (nonblocking)
        ::fcntl(ends[1], F_SETFL, ::fcntl(ends[1], F_GETFL) | O_NONBLOCK);
    return ends[1];
}

void EventQueue::push(const void* record, size_t size) {
    retry();
    if (backlog.empty() &&
        ::send(model_fd, record, size, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(size))
        return;
    const auto* bytes = static_cast<const uint8_t*>(record);
    backlog.emplace_back(bytes, bytes + size);
    waiting_records.fetch_add(1, std::memory_order_relaxed);
}

void EventQueue::retry() {
    while (!backlog.empty()) {
        const auto& record = backlog.front();
        if (::send(model_fd, record.data(), record.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            return;
        backlog.pop_front();
        waiting_records.fetch_sub(1, std::memory_order_relaxed);
    }
}

uint32_t EventQueue::withdraw(uint64_t element) {
    uint32_t withdrawn = 0;
    std::deque<std::vector<uint8_t>> kept;
    for (;;) {
        uint8_t record[sizeof(ib_uverbs_async_event_desc)];
        const ssize_t size = ::recv(reader_fd, record, sizeof(record), MSG_DONTWAIT);
        if (size <= 0)
            break;
        if (size >= 8 && element_of(record) == element)
            ++withdrawn;
        else
            kept.emplace_back(record, record + size);
    }
    for (auto& record : backlog) {
        waiting_records.fetch_sub(1, std::memory_order_relaxed);
        if (element_of(record.data()) == element)
            ++withdrawn;
        else
            kept.push_back(std::move(record));
    }
    backlog.clear();
    for (const auto& record : kept)
        push(record.data(), record.size());
    return withdrawn;
}

void raise_completion_event(CompletionQueue& cq) noexcept {
    if (cq.channel == nullptr || !cq.channel->events)
        return;
    const ib_uverbs_comp_event_desc record{.cq_handle = cq.user_handle};
    cq.channel->events->push(&record, sizeof(record));
    ++cq.events_reported;
}

namespace {

// The counter of the object that an event names: its destroy command reports it.
uint32_t* reported_counter(Device& device, const Context& context, uint64_t element) {
    for (const auto& [handle, entry] : context.handles) {
        switch (entry.kind) {
            case ObjectKind::kCompletionQueue: {
                CompletionQueue& cq = *device.cqs.at(entry.number);
                if (cq.user_handle == element)
                    return &cq.async_reported;
                break;
            }
            case ObjectKind::kWorkQueue: {
                WorkQueue& wq = *device.wqs.at(entry.number);
                if (wq.user_handle == element)
                    return &wq.async_reported;
                break;
            }
            case ObjectKind::kQueuePair: {
                QueuePair& qp = *device.qps.at(entry.number);
                if (qp.user_handle == element)
                    return &qp.async_reported;
                break;
            }
            default:
                break;
        }
    }
    return nullptr;
}

}  // namespace

void report_async_event(Device& device, uint32_t event_type, uint64_t element) noexcept {
    const ib_uverbs_async_event_desc record{
        .element = element, .event_type = event_type, .reserved = 0};
    const bool port_event = element <= 1;
    for (Context* context : device.contexts) {
        if (!context->async_events)
            continue;
        if (!port_event) {
            uint32_t* counter = reported_counter(device, *context, element);
            if (counter == nullptr)
                continue;
            ++*counter;
        }
        context->async_events->push(&record, sizeof(record));
        if (port_event)
            for (const auto& events : context->more_async_events)
                events->push(&record, sizeof(record));
    }
}

}  // namespace softcx
