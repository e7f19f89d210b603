// SPDX-License-Identifier: BSD-3-Clause
#include "lib/tagwire/completion_queue.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "lib/tagwire/attributes.h"
#include "lib/tagwire/error.h"
#include "lib/tagwire/guard.h"
#include "lib/tagwire/worker.h"

namespace tagwire {

namespace {

constexpr uint32_t kMaxEntries = 1u << 30;

const char* describe(const Completion& completion) {
    switch (completion.error) {
        case ECONNRESET:
            return "the peer restarted, or closed, before the operation ended";
        case ETIMEDOUT:
            return "the peer was silent for longer than peer_timeout_ms";
        case ECONNREFUSED:
            return "the peer refused the session: no such endpoint there, or another protocol "
                   "version";
        case EKEYREJECTED:
            return "the peer's endpoint does not have this authorization key";
        case ESHUTDOWN:
            return "the peer shut the connection down before a message for it came";
        case ENOMSG:
            return "no message that the peek asks for is here";
        case ENOKEY:
            return "the target has no region with this key, or closed it before the operation "
                   "ended";
        case EACCES:
            return "the target's region does not give this right (TW_REMOTE_READ, "
                   "TW_REMOTE_WRITE)";
        case EFAULT:
            return "the remote address and length reach beyond the target's region";
        case EHOSTUNREACH:
            return "no station answers for the peer's IP address (ARP)";
        case ECANCELED:
            return "cancelled by tw_cancel, or by closing the endpoint or the session";
        default:
            return tw_strerror(completion.error);
    }
}

}  // namespace

CompletionQueue::CompletionQueue(Worker& worker, uint32_t entries)
    : worker_(worker),
      activity_(worker.activity()),
      pages_(std::bit_ceil(entries) * sizeof(Completion)),
      ring_(static_cast<Completion*>(pages_.get())),
      mask_(std::bit_ceil(entries) - 1) {}

// In tw_cq_read, which finds nothing most of the time.
[[gnu::always_inline]] inline ssize_t CompletionQueue::read(tw_cq_entry* entries, size_t count) {
    if (head_ == tail_ || count == 0) {
        return count == 0 ? 0 : -EAGAIN;
    }
    return read_some(entries, count);
}

// There are some.
ssize_t CompletionQueue::read_some(tw_cq_entry* entries, size_t count) {
    uint32_t head = head_;
    const uint32_t end = head + static_cast<uint32_t>(std::min<size_t>(count, tail_ - head));
    const Completion* const ring = ring_;
    const uint32_t mask = mask_;
    for (; head != end; ++head) {
        const Completion& completion = ring[head & mask];
        if (completion.error != 0) [[unlikely]] {
            break;
        }
        *entries++ = completion.entry;
    }
    const uint32_t done = head - head_;
    head_ = head;
    used_ -= done;
    return done == 0 ? -TW_EAVAIL : static_cast<ssize_t>(done);
}

// A signal ends the calls that wait when it comes or, if none does, the next one.
ssize_t CompletionQueue::read_or_sleep(tw_cq_entry* entries, size_t count,
                                       int timeout_ms) noexcept {
    const uint32_t signals = signals_taken_;
    return worker_.waiting().wait(timeout_ms, [&]() -> std::optional<ssize_t> {
        const ssize_t got = read(entries, count);
        if (got != -EAGAIN) {
            return got;
        }
        const uint32_t now = signals_.load();
        if (now != signals) {
            signals_taken_ = now;
            return -EAGAIN;
        }
        return std::nullopt;
    });
}

void CompletionQueue::signal() noexcept {
    signals_.fetch_add(1);
    worker_.waiting().signal_sleepers();
}

ssize_t CompletionQueue::read_error(tw_cq_error* error) {
    if (head_ == tail_ || ring_[head_ & mask_].error == 0) {
        return -EAGAIN;
    }
    const Completion& completion = ring_[head_++ & mask_];
    --used_;
    *error = {};
    error->entry = completion.entry;
    error->message_length = completion.message_length;
    if (completion.error == TW_ETRUNC) {
        error->overflow = completion.message_length - completion.entry.length;
    }
    error->error = completion.error;
    error->provider_error = completion.provider_error;
    error->text = describe(completion);
    return 1;
}

}  // namespace tagwire

int tw_cq_open(tw_worker* worker, const tw_cq_attr* attr, tw_cq** cq) {
    using namespace tagwire;
    if (worker == nullptr || cq == nullptr) {
        return refuse(EINVAL, "tw_cq_open: worker and cq cannot be NULL");
    }
    tw_cq_attr wanted{};
    if (const int error = take_attributes(attr, &wanted, "tw_cq_attr"); error != 0) {
        return error;
    }
    if (wanted.entries > kMaxEntries) {
        return fail(EINVAL, "tw_cq_open: %u entries; at most %u", wanted.entries, kMaxEntries);
    }
    const Guard guard(*worker);
    return guarded([&] {
        *cq = new tw_cq(*worker, wanted.entries != 0 ? wanted.entries : worker->all_operations());
        worker->child_opened();
        return 0;
    });
}

int tw_cq_close(tw_cq* cq) {
    using namespace tagwire;
    if (cq == nullptr) {
        return refuse(EINVAL, "tw_cq_close: cq cannot be NULL");
    }
    const Guard guard(cq->worker());
    if (cq->bound()) {
        return refuse(EBUSY, "tw_cq_close: an endpoint is bound to the queue; close it first");
    }
    cq->worker().child_closed();
    delete cq;
    return 0;
}

ssize_t tw_cq_read(tw_cq* cq, tw_cq_entry* entries, size_t count) {
    if (cq == nullptr || (entries == nullptr && count != 0)) {
        return tagwire::refuse(EINVAL, "tw_cq_read: cq and entries cannot be NULL");
    }
    const tagwire::Guard guard(cq->worker());
    return cq->read(entries, count);
}

ssize_t tw_cq_readerr(tw_cq* cq, tw_cq_error* error) {
    if (cq == nullptr || error == nullptr) {
        return tagwire::refuse(EINVAL, "tw_cq_readerr: cq and error cannot be NULL");
    }
    const tagwire::Guard guard(cq->worker());
    return cq->read_error(error);
}

ssize_t tw_cq_sread(tw_cq* cq, tw_cq_entry* entries, size_t count, int timeout_ms) {
    if (cq == nullptr || (entries == nullptr && count != 0)) {
        return tagwire::refuse(EINVAL, "tw_cq_sread: cq and entries cannot be NULL");
    }
    const tagwire::Guard guard(cq->worker());
    return cq->read_or_sleep(entries, count, timeout_ms);
}

int tw_cq_signal(tw_cq* cq) {
    if (cq == nullptr) {
        return tagwire::refuse(EINVAL, "tw_cq_signal: cq cannot be NULL");
    }
    cq->signal();
    return 0;
}
