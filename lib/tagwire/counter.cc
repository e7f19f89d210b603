// SPDX-License-Identifier: BSD-3-Clause
#include "lib/tagwire/counter.h"

#include "lib/tagwire/error.h"
#include "lib/tagwire/worker.h"

namespace {

constexpr const char* kNull = "tw_cntr_*: cntr cannot be NULL";

}  // namespace

int tw_cntr_open(tw_worker* worker, tw_cntr** cntr) {
    using namespace tagwire;
    if (worker == nullptr || cntr == nullptr) {
        return refuse(EINVAL, "tw_cntr_open: worker and cntr cannot be NULL");
    }
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
    if (cntr->bound()) {
        return refuse(EBUSY, "tw_cntr_close: an endpoint is bound to the counter; close it first");
    }
    cntr->worker().child_closed();
    delete cntr;
    return 0;
}

uint64_t tw_cntr_read(const tw_cntr* cntr) {
    return cntr == nullptr ? 0 : cntr->value;
}

uint64_t tw_cntr_readerr(const tw_cntr* cntr) {
    return cntr == nullptr ? 0 : cntr->errors;
}

int tw_cntr_add(tw_cntr* cntr, uint64_t value) {
    if (cntr == nullptr) {
        return tagwire::refuse(EINVAL, kNull);
    }
    cntr->value += value;
    return 0;
}

int tw_cntr_adderr(tw_cntr* cntr, uint64_t value) {
    if (cntr == nullptr) {
        return tagwire::refuse(EINVAL, kNull);
    }
    cntr->errors += value;
    return 0;
}

int tw_cntr_set(tw_cntr* cntr, uint64_t value) {
    if (cntr == nullptr) {
        return tagwire::refuse(EINVAL, kNull);
    }
    cntr->value = value;
    return 0;
}

int tw_cntr_seterr(tw_cntr* cntr, uint64_t value) {
    if (cntr == nullptr) {
        return tagwire::refuse(EINVAL, kNull);
    }
    cntr->errors = value;
    return 0;
}

int tw_cntr_wait(tw_cntr* cntr, uint64_t threshold, int timeout_ms) {
    using namespace tagwire;
    if (cntr == nullptr) {
        return refuse(EINVAL, kNull);
    }
    Worker& worker = cntr->worker();
    const uint64_t errors = cntr->errors;
    const uint64_t start = worker.now_ns();
    for (;;) {
        if (cntr->value >= threshold) {
            return 0;
        }
        if (cntr->errors != errors) {
            return refuse(TW_EAVAIL, "tw_cntr_wait: an operation failed; see its completion");
        }
        if (timeout_ms >= 0 &&
            worker.now_ns() - start >= static_cast<uint64_t>(timeout_ms) * 1'000'000) {
            return refuse(ETIMEDOUT, "tw_cntr_wait: the counter did not reach the threshold");
        }
        worker.progress();
    }
}
