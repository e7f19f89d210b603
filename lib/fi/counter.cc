// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/counter.h"

#include <rdma/fi_errno.h>

#include <new>
#include <optional>

#include "lib/fi/object.h"
#include "lib/fi/provider.h"
#include "lib/fi/refusal.h"
#include "lib/fi/wait_set.h"

namespace tagwire::fi {
namespace {

uint64_t read(fid_cntr* handle) {
    auto& counter = object_of<Counter>(handle);
    const Guard guard(*counter.domain);
    counter.domain->progress();
    return tw_cntr_read(counter.counter);
}

uint64_t read_errors(fid_cntr* handle) {
    auto& counter = object_of<Counter>(handle);
    const Guard guard(*counter.domain);
    counter.domain->progress();
    return tw_cntr_readerr(counter.counter);
}

template <int (*Change)(tw_cntr*, uint64_t)>
int change(fid_cntr* handle, uint64_t value) {
    auto& counter = object_of<Counter>(handle);
    const Guard guard(*counter.domain);
    return Change(counter.counter, value);
}

int wait(fid_cntr* handle, uint64_t threshold, int timeout) {
    auto& counter = object_of<Counter>(handle);
    Patience patience(timeout);
    std::optional<Sleep> sleep;
    uint64_t errors = 0;
    {
        const Guard guard(*counter.domain);
        errors = tw_cntr_readerr(counter.counter);
    }
    for (;;) {
        {
            const Guard guard(*counter.domain);
            if (tw_cntr_read(counter.counter) >= threshold) {
                return 0;
            }
            if (tw_cntr_readerr(counter.counter) != errors) {
                return -FI_EAVAIL;
            }
            counter.domain->progress();
        }
        if (patience.over()) {
            return -FI_ETIMEDOUT;
        }
        if (sleep) {
            sleep_on(*sleep, patience);
            sleep.reset();
        } else if (patience.tired()) {
            sleep.emplace(*counter.domain);
        }
    }
}

int control(fid* handle, int command, void* argument) {
    auto& counter = object_of<Counter>(handle);
    switch (command) {
        case FI_GETWAIT:
            if (counter.fd < 0) {
                return refuse_descriptor();
            }
            *static_cast<int*>(argument) = counter.fd;
            return 0;
        case FI_GETWAITOBJ:
            *static_cast<fi_wait_obj*>(argument) = counter.wait_object;
            return 0;
        default:
            return -FI_ENOSYS;
    }
}

int close_counter(fid* handle) {
    auto& counter = object_of<Counter>(handle);
    {
        const Guard guard(*counter.domain);
        int result = counter.domain->free_from_receive_contexts(&counter);
        if (result == 0) {
            result = tw_cntr_close(counter.counter);
        }
        if (result != 0) {
            return log_failure("the counter does not close", result);
        }
        if (counter.wait != nullptr) {
            counter.domain->sleepers.remove(counter.wait);
        }
    }
    leave_wait_sets(handle);
    --counter.domain->children;
    delete &counter;
    return 0;
}

fi_ops counter_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_counter,
    .bind = kAbsent,
    .control = control,
    .ops_open = kAbsent,
    .tostr = kAbsent,
    .ops_set = kAbsent,
};

fi_ops_cntr counter_ops = {
    .size = sizeof(fi_ops_cntr),
    .read = read,
    .readerr = read_errors,
    .add = change<tw_cntr_add>,
    .set = change<tw_cntr_set>,
    .wait = wait,
    .adderr = change<tw_cntr_adderr>,
    .seterr = change<tw_cntr_seterr>,
};

}  // namespace

bool Counter::moved() {
    const Guard guard(*domain);
    domain->progress();
    const uint64_t now = tw_cntr_read(counter) + tw_cntr_readerr(counter);
    const bool different = now != seen;
    seen = now;
    return different;
}

int Counter::arm() {
    const Guard guard(*domain);
    return wait != nullptr ? tw_wait_arm(wait) : 0;
}

int open_counter(fid_domain* handle, fi_cntr_attr* attr, fid_cntr** opened, void* context) {
    auto& domain = object_of<Domain>(handle);
    const fi_wait_obj object = attr != nullptr ? attr->wait_obj : FI_WAIT_UNSPEC;
    if (attr != nullptr && (attr->flags != 0 || attr->events != FI_CNTR_EVENTS_COMP)) {
        return refuse(-FI_EINVAL, FI_LOG_CNTR,
                      "a counter takes no flags, and counts FI_CNTR_EVENTS_COMP");
    }
    if (const int error = check_wait_object(object); error != 0) {
        return error;
    }
    auto* counter = new (std::nothrow) Counter{};
    if (counter == nullptr) {
        return -FI_ENOMEM;
    }
    const Guard guard(domain);
    if (const int result = tw_cntr_open(domain.worker, &counter->counter); result != 0) {
        delete counter;
        return log_failure("the counter does not open", result);
    }
    counter->fid.fid.fclass = FI_CLASS_CNTR;
    counter->fid.fid.context = context;
    counter->fid.fid.ops = &counter_fid_ops;
    counter->fid.ops = &counter_ops;
    counter->domain = &domain;
    counter->wait_object = object;
    if (object == FI_WAIT_FD) {
        if (const int error = domain.open_wait(&counter->wait, &counter->fd); error != 0) {
            tw_cntr_close(counter->counter);
            delete counter;
            return error;
        }
    } else if (object == FI_WAIT_SET) {
        if (const int error = join_wait_set(attr->wait_set, &counter->fid.fid); error != 0) {
            tw_cntr_close(counter->counter);
            delete counter;
            return error;
        }
    }
    ++domain.children;
    *opened = &counter->fid;
    return 0;
}

}  // namespace tagwire::fi
