// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/event_queue.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <sys/eventfd.h>
#include <tagwire/types.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include "lib/fi/domain.h"
#include "lib/fi/object.h"
#include "lib/fi/refusal.h"
#include "lib/fi/wait_set.h"

namespace tagwire::fi {
namespace {

constexpr size_t kDefaultEvents = 1024;

void drain(int fd) {
    uint64_t count = 0;
    while (::read(fd, &count, sizeof(count)) == sizeof(count)) {
    }
}

ssize_t read(fid_eq* handle, uint32_t* type, void* buffer, size_t length, uint64_t flags) {
    auto& eq = object_of<EventQueue>(handle);
    if (!eq.ready()) {
        eq.work();
    }
    const std::lock_guard guard(eq.mutex);
    if (eq.events.empty()) {
        return -FI_EAGAIN;
    }
    const Event& event = eq.events.front();
    if (event.type == 0) {
        return -FI_EAVAIL;
    }
    if (length < event.data.size() && event.data.size() <= sizeof(fi_eq_entry)) {
        return -FI_ETOOSMALL;
    }
    const size_t size = std::min(length, event.data.size());
    std::memcpy(buffer, event.data.data(), size);
    *type = event.type - 1;
    if ((flags & FI_PEEK) == 0) {
        eq.events.pop_front();
        if (eq.events.empty()) {
            drain(eq.fd);
        }
    }
    return static_cast<ssize_t>(size);
}

ssize_t read_error(fid_eq* handle, fi_eq_err_entry* entry, uint64_t flags) {
    auto& eq = object_of<EventQueue>(handle);
    const std::lock_guard guard(eq.mutex);
    if (eq.events.empty() || eq.events.front().type != 0) {
        return -FI_EAGAIN;
    }
    Event& event = eq.events.front();
    void* room = entry->err_data;
    const size_t room_size = entry->err_data_size;
    *entry = event.error;
    if (room != nullptr && room_size > 0) {
        entry->err_data = room;
        entry->err_data_size = std::min(room_size, event.data.size());
        std::memcpy(room, event.data.data(), entry->err_data_size);
    } else {
        eq.error_data = event.data;
        entry->err_data = eq.error_data.empty() ? nullptr : eq.error_data.data();
        entry->err_data_size = 0;
    }
    if ((flags & FI_PEEK) == 0) {
        eq.events.pop_front();
        if (eq.events.empty()) {
            drain(eq.fd);
        }
    }
    return sizeof(*entry);
}

ssize_t write(fid_eq* handle, uint32_t type, const void* buffer, size_t length, uint64_t flags) {
    auto& eq = object_of<EventQueue>(handle);
    if (!eq.writable || flags != 0 || (buffer == nullptr && length > 0)) {
        return refuse(-FI_EINVAL, FI_LOG_EQ,
                      !eq.writable ? "fi_eq_write needs a queue that was opened with FI_WRITE"
                      : flags != 0 ? "fi_eq_write takes no flags"
                                   : "fi_eq_write: buf cannot be NULL");
    }
    {
        const std::lock_guard guard(eq.mutex);
        if (eq.events.size() >= eq.limit) {
            return -FI_EAGAIN;
        }
    }
    const auto* bytes = static_cast<const uint8_t*>(buffer);
    eq.push({.type = type + 1, .data = {bytes, bytes + length}, .error = {}});
    return static_cast<ssize_t>(length);
}

ssize_t sleep_and_read(fid_eq* handle, uint32_t* type, void* buffer, size_t length, int timeout,
                       uint64_t flags) {
    auto& eq = object_of<EventQueue>(handle);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout);
    for (;;) {
        const ssize_t result = read(handle, type, buffer, length, flags);
        if (result != -FI_EAGAIN) {
            return result;
        }
        int left = -1;
        if (timeout >= 0) {
            left = static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                        end - std::chrono::steady_clock::now())
                                        .count());
            if (left <= 0) {
                return -FI_EAGAIN;
            }
        }
        if (eq.has_sources()) {
            left = left < 0 ? 1 : std::min(left, 1);
        }
        pollfd waiting{.fd = eq.fd, .events = POLLIN, .revents = 0};
        poll(&waiting, 1, left);
    }
}

const char* to_string(fid_eq*, int error, const void*, char* text, size_t length) {
    const char* whole = tw_strerror(error);
    if (text != nullptr && length > 0) {
        std::strncpy(text, whole, length - 1);
        text[length - 1] = '\0';
    }
    return whole;
}

int control(fid* handle, int command, void* argument) {
    auto& eq = object_of<EventQueue>(handle);
    switch (command) {
        case FI_GETWAIT:
            if (eq.wait_object != FI_WAIT_FD && eq.wait_object != FI_WAIT_UNSPEC) {
                return refuse_descriptor();
            }
            *static_cast<int*>(argument) = eq.fd;
            return 0;
        case FI_GETWAITOBJ:
            *static_cast<fi_wait_obj*>(argument) = eq.wait_object;
            return 0;
        default:
            return -FI_ENOSYS;
    }
}

int close_event_queue(fid* handle) {
    auto& eq = object_of<EventQueue>(handle);
    if (eq.bound != 0) {
        return refuse_busy(FI_LOG_EQ, "an event queue",
                           "the endpoints and address vectors that are bound to it");
    }
    leave_wait_sets(handle);
    close(eq.fd);
    --eq.fabric->children;
    delete &eq;
    return 0;
}

fi_ops eq_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_event_queue,
    .bind = kAbsent,
    .control = control,
    .ops_open = kAbsent,
    .tostr = kAbsent,
    .ops_set = kAbsent,
};

fi_ops_eq eq_ops = {
    .size = sizeof(fi_ops_eq),
    .read = read,
    .readerr = read_error,
    .write = write,
    .sread = sleep_and_read,
    .strerror = to_string,
};

}  // namespace

void EventQueue::push(Event event) {
    const std::lock_guard guard(mutex);
    events.push_back(std::move(event));
    const uint64_t one = 1;
    static_cast<void>(!::write(fd, &one, sizeof(one)));
}

void EventQueue::add(uint32_t type, struct fid* source, void* context, uint64_t data) {
    fi_eq_entry entry{.fid = source, .context = context, .data = data};
    const auto* bytes = reinterpret_cast<const uint8_t*>(&entry);
    push({.type = type + 1, .data = {bytes, bytes + sizeof(entry)}, .error = {}});
}

void EventQueue::add_error(struct fid* source, void* context, uint64_t data, int error) {
    Event event;
    event.error.fid = source;
    event.error.context = context;
    event.error.data = data;
    event.error.err = error;
    event.error.prov_errno = error;
    push(std::move(event));
}

void EventQueue::add_source(Domain& domain) {
    const std::lock_guard guard(mutex);
    sources.push_back(&domain);
    ++bound;
}

void EventQueue::remove_source(Domain& domain) {
    const std::lock_guard guard(mutex);
    sources.erase(std::find(sources.begin(), sources.end(), &domain));
    --bound;
}

bool EventQueue::has_sources() {
    const std::lock_guard guard(mutex);
    return !sources.empty();
}

void EventQueue::work() {
    std::vector<Domain*> domains;
    {
        const std::lock_guard guard(mutex);
        domains = sources;
    }
    std::sort(domains.begin(), domains.end());
    domains.erase(std::unique(domains.begin(), domains.end()), domains.end());
    for (Domain* domain : domains) {
        domain->help();
    }
}

bool EventQueue::ready() {
    const std::lock_guard guard(mutex);
    return !events.empty();
}

int open_event_queue(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** handle, void* context) {
    if (attr != nullptr && (attr->flags & ~(FI_WRITE | FI_AFFINITY)) != 0) {
        return refuse_flags("fi_eq_open", attr->flags, FI_WRITE | FI_AFFINITY);
    }
    const fi_wait_obj object = attr != nullptr ? attr->wait_obj : FI_WAIT_UNSPEC;
    if (const int error = check_wait_object(object); error != 0) {
        return error;
    }
    auto* eq = new (std::nothrow) EventQueue{};
    if (eq == nullptr) {
        return -FI_ENOMEM;
    }
    eq->fid.fid.fclass = FI_CLASS_EQ;
    eq->fid.fid.context = context;
    eq->fid.fid.ops = &eq_fid_ops;
    eq->fid.ops = &eq_ops;
    eq->fabric = &object_of<Fabric>(fabric);
    eq->wait_object = object;
    eq->writable = attr != nullptr && (attr->flags & FI_WRITE) != 0;
    eq->limit = attr != nullptr && attr->size != 0 ? attr->size : kDefaultEvents;
    eq->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (object == FI_WAIT_SET) {
        if (const int error = join_wait_set(attr->wait_set, &eq->fid.fid); error != 0) {
            close(eq->fd);
            delete eq;
            return error;
        }
    }
    ++eq->fabric->children;
    *handle = &eq->fid;
    return 0;
}

}  // namespace tagwire::fi
