// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/completion_queue.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "lib/fi/av.h"
#include "lib/fi/flags.h"
#include "lib/fi/object.h"
#include "lib/fi/provider.h"
#include "lib/fi/refusal.h"
#include "lib/fi/wait_set.h"

namespace tagwire::fi {
namespace {

void convert(const tw_cq_entry& from, fi_cq_entry* to) {
    to->op_context = from.context;
}
void convert(const tw_cq_entry& from, fi_cq_msg_entry* to) {
    to->op_context = from.context;
    to->flags = completion_flags(from.flags);
    to->len = from.length;
}
void convert(const tw_cq_entry& from, fi_cq_data_entry* to) {
    to->op_context = from.context;
    to->flags = completion_flags(from.flags);
    to->len = from.length;
    to->buf = from.buffer;
    to->data = from.data;
}
// The same fields in the same order.
void convert(const tw_cq_entry& from, fi_cq_tagged_entry* to) {
    static_assert(sizeof(*to) == offsetof(tw_cq_entry, source));
    static_assert(offsetof(fi_cq_tagged_entry, len) == offsetof(tw_cq_entry, length) &&
                  offsetof(fi_cq_tagged_entry, buf) == offsetof(tw_cq_entry, buffer) &&
                  offsetof(fi_cq_tagged_entry, data) == offsetof(tw_cq_entry, data) &&
                  offsetof(fi_cq_tagged_entry, tag) == offsetof(tw_cq_entry, tag));
    std::memcpy(to, &from, sizeof(*to));
    to->flags = completion_flags(from.flags);
}

// The lock is held.
template <class Entry, bool kSources>
[[gnu::always_inline]] inline ssize_t read_under_lock(CompletionQueue& cq, void* buffer,
                                                      size_t count, fi_addr_t* sources) {
    tw_cq_entry found[CompletionQueue::kBatch];
    const ssize_t number = cq.fetch(found, std::min(count, CompletionQueue::kBatch));
    auto* entry = static_cast<Entry*>(buffer);
    const tw_cq_entry* next = found;
    for (ssize_t left = number; left > 0; --left, ++next, ++entry) {
        convert(*next, entry);
        if constexpr (kSources) {
            *sources++ = cq.contexts == nullptr ? next->source : cq.contexts->name_of(next->source);
        }
    }
    return number;
}

template <class Entry, bool kSources>
[[gnu::noinline]] ssize_t read_with_mutex(CompletionQueue& cq, void* buffer, size_t count,
                                          fi_addr_t* sources) {
    const Guard guard(*cq.domain);
    return read_under_lock<Entry, kSources>(cq, buffer, count, sources);
}

template <class Entry, bool kSources>
[[gnu::always_inline]] inline ssize_t read_some(fid_cq* handle, void* buffer, size_t count,
                                                fi_addr_t* sources) {
    auto& cq = object_of<CompletionQueue>(handle);
    if (!cq.domain->lock.lock_alone()) [[unlikely]] {
        return read_with_mutex<Entry, kSources>(cq, buffer, count, sources);
    }
    const ssize_t number = read_under_lock<Entry, kSources>(cq, buffer, count, sources);
    cq.domain->lock.unlock_alone();
    return number;
}

template <class Entry>
ssize_t read(fid_cq* handle, void* buffer, size_t count) {
    return read_some<Entry, false>(handle, buffer, count, nullptr);
}

template <class Entry>
ssize_t read_from(fid_cq* handle, void* buffer, size_t count, fi_addr_t* sources) {
    return sources == nullptr ? read<Entry>(handle, buffer, count)
                              : read_some<Entry, true>(handle, buffer, count, sources);
}

template <class Entry>
ssize_t sleep_and_read_from(fid_cq* handle, void* buffer, size_t count, fi_addr_t* sources,
                            const void*, int timeout) {
    auto& cq = object_of<CompletionQueue>(handle);
    Patience patience(timeout);
    std::optional<Sleep> sleep;
    for (;;) {
        const ssize_t number = read_from<Entry>(handle, buffer, count, sources);
        if (number != -FI_EAGAIN) {
            return number;
        }
        if (cq.signaled.exchange(false) || patience.over()) {
            return -FI_EAGAIN;
        }
        if (sleep) {
            sleep_on(*sleep, patience);
            sleep.reset();
        } else if (patience.tired()) {
            sleep.emplace(*cq.domain);
        }
    }
}

template <class Entry>
ssize_t sleep_and_read(fid_cq* handle, void* buffer, size_t count, const void* condition,
                       int timeout) {
    return sleep_and_read_from<Entry>(handle, buffer, count, nullptr, condition, timeout);
}

ssize_t read_error(fid_cq* handle, fi_cq_err_entry* entry, uint64_t) {
    auto& cq = object_of<CompletionQueue>(handle);
    const Guard guard(*cq.domain);
    tw_cq_error error{};
    if (!cq.stash.empty()) {
        return -FI_EAGAIN;
    }
    if (cq.stash_error) {
        error = *cq.stash_error;
        cq.stash_error.reset();
        cq.note();
    } else if (const ssize_t result = tw_cq_readerr(cq.cq, &error); result != 1) {
        return result;
    }
    convert(error.entry, reinterpret_cast<fi_cq_tagged_entry*>(entry));
    entry->olen = error.overflow;
    entry->err = error.error == ENOKEY ? FI_ENOKEY : error.error;
    entry->prov_errno = error.provider_error != 0 ? error.provider_error : error.error;
    entry->err_data = nullptr;
    entry->err_data_size = 0;
    cq.error_text = in_libfabric_words(error.text != nullptr ? error.text : "");
    return 1;
}

// The text of the error that was read last; its number alone says less.
const char* error_to_string(fid_cq* handle, int, const void*, char* text, size_t length) {
    const auto& cq = object_of<CompletionQueue>(handle);
    if (text != nullptr && length > 0) {
        std::strncpy(text, cq.error_text.c_str(), length - 1);
        text[length - 1] = '\0';
    }
    return cq.error_text.c_str();
}

int signal(fid_cq* handle) {
    auto& cq = object_of<CompletionQueue>(handle);
    cq.signaled = true;
    cq.domain->sleepers.wake();
    return 0;
}

int control(fid* handle, int command, void* argument) {
    auto& cq = object_of<CompletionQueue>(handle);
    switch (command) {
        case FI_GETWAIT:
            if (cq.fd < 0) {
                return refuse_descriptor();
            }
            *static_cast<int*>(argument) = cq.fd;
            return 0;
        case FI_GETWAITOBJ:
            *static_cast<fi_wait_obj*>(argument) = cq.wait_object;
            return 0;
        default:
            return -FI_ENOSYS;
    }
}

int close_cq(fid* handle) {
    auto& cq = object_of<CompletionQueue>(handle);
    {
        const Guard guard(*cq.domain);
        int result = cq.domain->free_from_receive_contexts(&cq);
        if (result == 0) {
            result = tw_cq_close(cq.cq);
        }
        if (result != 0) {
            return log_failure("the completion queue does not close", result);
        }
        if (cq.wait != nullptr) {
            cq.domain->sleepers.remove(cq.wait);
        }
    }
    leave_wait_sets(handle);
    std::erase(cq.domain->queues, &cq);
    --cq.domain->children;
    delete &cq;
    return 0;
}

fi_ops cq_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_cq,
    .bind = kAbsent,
    .control = control,
    .ops_open = kAbsent,
    .tostr = kAbsent,
    .ops_set = kAbsent,
};

template <class Entry>
fi_ops_cq cq_ops = {
    .size = sizeof(fi_ops_cq),
    .read = read<Entry>,
    .readfrom = read_from<Entry>,
    .readerr = read_error,
    .sread = sleep_and_read<Entry>,
    .sreadfrom = sleep_and_read_from<Entry>,
    .signal = signal,
    .strerror = error_to_string,
};

fi_ops_cq* operations_for(fi_cq_format format) {
    switch (format) {
        case FI_CQ_FORMAT_UNSPEC:
        case FI_CQ_FORMAT_CONTEXT:
            return &cq_ops<fi_cq_entry>;
        case FI_CQ_FORMAT_TAGGED:
            return &cq_ops<fi_cq_tagged_entry>;
        case FI_CQ_FORMAT_MSG:
            return &cq_ops<fi_cq_msg_entry>;
        case FI_CQ_FORMAT_DATA:
            return &cq_ops<fi_cq_data_entry>;
    }
    return nullptr;
}

}  // namespace

ssize_t CompletionQueue::fetch_later(tw_cq_entry* entries, size_t count, ssize_t result) noexcept {
    if (count == 0) {
        return fetch_collected(entries, count);
    }
    if (result != -EAGAIN) {
        return result;
    }
    domain->progress();
    return unusual ? fetch_collected(entries, count) : tw_cq_read(cq, entries, count);
}

ssize_t CompletionQueue::fetch_collected(tw_cq_entry* entries, size_t count) noexcept {
    const ssize_t state = look();
    if (count == 0 || stash.empty()) {
        return state;
    }
    const size_t number = std::min(count, stash.size());
    std::copy_n(stash.begin(), number, entries);
    stash.erase(stash.begin(), stash.begin() + static_cast<ptrdiff_t>(number));
    note();
    return static_cast<ssize_t>(number);
}

bool CompletionQueue::ready() {
    const Guard guard(*domain);
    return look() != -FI_EAGAIN;
}

ssize_t CompletionQueue::look() {
    collect();
    if (!has_stash()) {
        domain->progress();
        collect();
    }
    if (!stash.empty()) {
        return 0;
    }
    return stash_error ? -FI_EAVAIL : -FI_EAGAIN;
}

void CompletionQueue::collect() {
    tw_cq_entry found[kBatch];
    while (!stash_error) {
        const ssize_t number = tw_cq_read(cq, found, kBatch);
        if (number == -TW_EAVAIL) {
            tw_cq_error error{};
            if (tw_cq_readerr(cq, &error) == 1 && !domain->deferred.take(error.entry, true)) {
                stash_error = error;
                note();
            }
            continue;
        }
        for (ssize_t i = 0; i < number; ++i) {
            if (!domain->deferred.take(found[i], false)) {
                stash.push_back(found[i]);
                unusual = true;
            }
        }
        if (number < static_cast<ssize_t>(kBatch)) {
            return;
        }
    }
}

int CompletionQueue::arm() {
    const Guard guard(*domain);
    return wait != nullptr ? tw_wait_arm(wait) : 0;
}

int open_cq(fid_domain* handle, fi_cq_attr* attr, fid_cq** opened, void* context) {
    auto& domain = object_of<Domain>(handle);
    if (attr == nullptr) {
        return refuse(-FI_EINVAL, FI_LOG_CQ, "fi_cq_open: attr cannot be NULL");
    }
    if ((attr->flags & ~FI_AFFINITY) != 0) {
        return refuse_flags("fi_cq_open", attr->flags, FI_AFFINITY);
    }
    fi_ops_cq* operations = operations_for(attr->format);
    if (operations == nullptr) {
        return refuse(-FI_ENOSYS, FI_LOG_CQ,
                      fmt::format("format {} is none of enum fi_cq_format",
                                  static_cast<unsigned>(attr->format)));
    }
    if (const int error = check_wait_object(attr->wait_obj); error != 0) {
        return error;
    }
    auto* cq = new (std::nothrow) CompletionQueue{};
    if (cq == nullptr) {
        return -FI_ENOMEM;
    }
    const Guard guard(domain);
    // The core reserves an entry for each operation, a posted receive too; applications
    // count on more receives than their queue has entries.
    const tw_cq_attr core{.size = sizeof(tw_cq_attr), .entries = 0};
    if (const int result = tw_cq_open(domain.worker, &core, &cq->cq); result != 0) {
        delete cq;
        return log_failure("the completion queue does not open", result);
    }
    cq->fid.fid.fclass = FI_CLASS_CQ;
    cq->fid.fid.context = context;
    cq->fid.fid.ops = &cq_fid_ops;
    cq->fid.ops = operations;
    cq->domain = &domain;
    cq->wait_object = attr->wait_obj;
    if (attr->wait_obj == FI_WAIT_FD || attr->wait_obj == FI_WAIT_UNSPEC) {
        if (const int error = domain.open_wait(&cq->wait, &cq->fd); error != 0) {
            tw_cq_close(cq->cq);
            delete cq;
            return error;
        }
    } else if (attr->wait_obj == FI_WAIT_SET) {
        if (const int error = join_wait_set(attr->wait_set, &cq->fid.fid); error != 0) {
            tw_cq_close(cq->cq);
            delete cq;
            return error;
        }
    }
    if (attr->format == FI_CQ_FORMAT_UNSPEC) {
        attr->format = FI_CQ_FORMAT_CONTEXT;
    }
    domain.queues.push_back(cq);
    cq->note();
    ++domain.children;
    *opened = &cq->fid;
    return 0;
}

}  // namespace tagwire::fi
