// SPDX-License-Identifier: BSD-3-Clause
#include "lib/tagwire/counter.h"

#include "lib/tagwire/error.h"
#include "lib/tagwire/guard.h"
#include "lib/tagwire/worker.h"

namespace tagwire {

CompletionCounter::CompletionCounter(Worker& worker)
    : worker_(worker), activity_(worker.activity()) {}

int CompletionCounter::wait(uint64_t threshold, int timeout_ms) noexcept {
    const uint64_t errors_before = errors;
    const ssize_t result = worker_.waiting().wait(timeout_ms, [&]() -> std::optional<ssize_t> {
        if (value >= threshold) {
            return 0;
        }
        if (errors != errors_before) {
            return -TW_EAVAIL;
        }
        return std::nullopt;
    });
    switch (result) {
        case -EAGAIN:
            return refuse(ETIMEDOUT, "tw_cntr_wait: the counter did not reach the threshold");
        case -TW_EAVAIL:
            return refuse(TW_EAVAIL, "tw_cntr_wait: an operation failed; see its completion");
        default:
            return static_cast<int>(result);
    }
}

}  // namespace tagwire

namespace {

constexpr const char* kNull = "tw_cntr_*: cntr cannot be NULL";

}  // namespace

int tw_cntr_open(tw_worker* worker, tw_cntr** cntr) {
    using namespace tagwire;
    if (worker == nullptr || cntr == nullptr) {
        return refuse(EINVAL, "tw_cntr_open: worker and cntr cannot be NULL");
    }
    const Guard guard(*worker);
    return guarded([&] {
        *cntr = new tw_cntr(*worker);
        worker->child_opened();
        return 0;
    });
}

int tw_cntr_close(tw_cntr* cntr) {
    using namespace tagwire;
    if (cntr == nullptr) {
        return refuse(EINVAL, kNull);
    }
    const Guard guard(cntr->worker());
    if (cntr->bound()) {
        return refuse(EBUSY, "tw_cntr_close: an endpoint is bound to the counter; close it first");
    }
    cntr->worker().child_closed();
    delete cntr;
    return 0;
}

uint64_t tw_cntr_read(const tw_cntr* cntr) {
    if (cntr == nullptr) {
        return 0;
    }
    const tagwire::Guard guard(cntr->worker());
    return cntr->value;
}

uint64_t tw_cntr_readerr(const tw_cntr* cntr) {
    if (cntr == nullptr) {
        return 0;
    }
    const tagwire::Guard guard(cntr->worker());
    return cntr->errors;
}

int tw_cntr_add(tw_cntr* cntr, uint64_t value) {
    if (cntr == nullptr) {
        return tagwire::refuse(EINVAL, kNull);
    }
    const tagwire::Guard guard(cntr->worker());
    cntr->change(cntr->value, cntr->value + value);
    return 0;
}

int tw_cntr_adderr(tw_cntr* cntr, uint64_t value) {
    if (cntr == nullptr) {
        return tagwire::refuse(EINVAL, kNull);
    }
    const tagwire::Guard guard(cntr->worker());
    cntr->change(cntr->errors, cntr->errors + value);
    return 0;
}

int tw_cntr_set(tw_cntr* cntr, uint64_t value) {
    if (cntr == nullptr) {
        return tagwire::refuse(EINVAL, kNull);
    }
    const tagwire::Guard guard(cntr->worker());
    cntr->change(cntr->value, value);
    return 0;
}

int tw_cntr_seterr(tw_cntr* cntr, uint64_t value) {
    if (cntr == nullptr) {
        return tagwire::refuse(EINVAL, kNull);
    }
    const tagwire::Guard guard(cntr->worker());
    cntr->change(cntr->errors, value);
    return 0;
}

int tw_cntr_wait(tw_cntr* cntr, uint64_t threshold, int timeout_ms) {
    using namespace tagwire;
    if (cntr == nullptr) {
        return refuse(EINVAL, kNull);
    }
    const Guard guard(cntr->worker());
    return cntr->wait(threshold, timeout_ms);
}
