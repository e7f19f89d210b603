// SPDX-License-Identifier: BSD-3-Clause
// How an operation is given to the core: under the lock, and what goes out leaves soon.
#pragma once

#include <rdma/fi_errno.h>

#include "lib/fi/endpoint.h"
#include "lib/fi/object.h"
#include "lib/fi/provider.h"

namespace tagwire::fi {

// With `more` the next operation makes it leave.
template <class Call>
[[gnu::always_inline]] inline ssize_t send(fid_ep* handle, Call call, bool more = false) {
    auto& ep = object_of<Endpoint>(handle);
    const Guard guard(*ep.domain);
    int result = call(ep);
    if (result < 0 && result != -EAGAIN && ep.mend(result)) [[unlikely]] {
        result = call(ep);
    }
    if (result == 0) [[likely]] {
        if (!more) {
            ep.domain->posted();
        }
    } else if (result == -EAGAIN) {
        ep.domain->progress();
    } else {
        log_failure("the operation is refused", result);
    }
    return result;
}

template <class Call>
[[gnu::always_inline]] inline ssize_t receive(fid_ep* handle, Call call) {
    auto& ep = object_of<Endpoint>(handle);
    const Guard guard(*ep.domain);
    int result = call(ep);
    if (result == -FI_EOPBADSTATE && ep.mend(result)) [[unlikely]] {
        result = call(ep);
    }
    if (result != 0) [[unlikely]] {
        if (result == -EAGAIN) {
            ep.domain->progress();
        } else {
            log_failure("the receive is refused", result);
        }
    }
    return result;
}

}  // namespace tagwire::fi
