// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rdma/fi_eq.h>
#include <tagwire/tagwire.h>

#include <atomic>
#include <cerrno>
#include <deque>
#include <optional>
#include <string>

#include "lib/fi/domain.h"

namespace tagwire::fi {

struct AddressVector;

struct CompletionQueue {
    static constexpr size_t kBatch = 16;

    fid_cq fid;
    Domain* domain;
    tw_cq* cq;
    fi_wait_obj wait_object;
    tw_wait* wait = nullptr;  // behind the descriptor of FI_GETWAIT
    int fd = -1;
    std::atomic<bool> signaled{false};
    // Taken from the core, and not read yet.
    std::deque<tw_cq_entry> stash;
    std::optional<tw_cq_error> stash_error;  // behind them
    bool unusual = false;                    // there are some, or deferred work may come
    std::string error_text;
    // Of the endpoints of a scalable one that are bound to the queue, whose contexts it names.
    const AddressVector* contexts = nullptr;

    // Whether there is something to read, an error too, after a turn of the worker if need be.
    bool ready();
    // The same under the domain's lock: 0, -FI_EAGAIN, or -FI_EAVAIL for an error.
    ssize_t look();
    // Takes all that the core has, and gives deferred operations their part.
    void collect();
    bool has_stash() const { return !stash.empty() || stash_error.has_value(); }
    // After a change of what makes it unusual.
    void note() { unusual = has_stash() || domain->deferred.active(); }
    // 0: the descriptor tells of what comes from now on.
    int arm();
    ssize_t fetch(tw_cq_entry* entries, size_t count) noexcept {
        if (unusual) [[unlikely]] {
            return fetch_collected(entries, count);
        }
        const ssize_t number = tw_cq_read(cq, entries, count);
        return number > 0 ? number : fetch_later(entries, count, number);
    }
    // Nothing was there at first, or an error, or nothing is wanted.
    ssize_t fetch_later(tw_cq_entry* entries, size_t count, ssize_t result) noexcept;
    ssize_t fetch_collected(tw_cq_entry* entries, size_t count) noexcept;
};

}  // namespace tagwire::fi
