// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/wait_set.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <tagwire/types.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "lib/fi/completion_queue.h"
#include "lib/fi/counter.h"
#include "lib/fi/event_queue.h"
#include "lib/fi/fabric.h"
#include "lib/fi/object.h"
#include "lib/fi/refusal.h"

namespace tagwire::fi {
namespace {

struct WaitSet {
    fid_wait fid;
    Fabric* fabric;
    fi_wait_obj wait_object;
    std::mutex mutex;
    std::vector<struct fid*> members;
};

struct PollSet {
    fid_poll fid;
    Domain* domain;
    std::vector<struct fid*> members;
};

std::mutex all_mutex;
std::vector<WaitSet*> all_sets;

// Whether there is something to read, after a turn of the worker behind it.
bool is_ready(fid* object) {
    switch (object->fclass) {
        case FI_CLASS_CQ:
            return object_of<CompletionQueue>(object).ready();
        case FI_CLASS_CNTR:
            return object_of<Counter>(object).moved();
        case FI_CLASS_EQ:
            object_of<EventQueue>(object).work();
            return object_of<EventQueue>(object).ready();
        default:
            return false;
    }
}

// What the members' events wake.
struct Sleeps {
    std::vector<std::unique_ptr<Sleep>> domains;
    std::vector<pollfd> descriptors;
    bool may_sleep = true;
    bool nap = false;  // connection events come with the progress of domains that are not here

    void add(fid* member) {
        Domain* domain = nullptr;
        if (member->fclass == FI_CLASS_EQ) {
            auto& eq = object_of<EventQueue>(member);
            descriptors.push_back({.fd = eq.fd, .events = POLLIN, .revents = 0});
            nap = nap || eq.has_sources();
            return;
        }
        domain = member->fclass == FI_CLASS_CQ ? object_of<CompletionQueue>(member).domain
                                               : object_of<Counter>(member).domain;
        domains.push_back(std::make_unique<Sleep>(*domain));
        may_sleep = may_sleep && domains.back()->may_sleep();
        descriptors.push_back({.fd = domains.back()->fd(), .events = POLLIN, .revents = 0});
    }
};

int wait(fid_wait* handle, int timeout) {
    auto& set = object_of<WaitSet>(handle);
    Patience patience(timeout);
    std::unique_ptr<Sleeps> sleeps;
    for (;;) {
        {
            const std::lock_guard guard(set.mutex);
            if (std::any_of(set.members.begin(), set.members.end(), is_ready)) {
                return 0;
            }
        }
        if (patience.over()) {
            return -FI_ETIMEDOUT;
        }
        if (sleeps != nullptr) {
            if (sleeps->may_sleep) {
                const int left = patience.left_ms();
                poll(sleeps->descriptors.data(), sleeps->descriptors.size(),
                     sleeps->nap && (left < 0 || left > 1) ? 1 : left);
            }
            sleeps.reset();
        } else if (patience.tired()) {
            sleeps = std::make_unique<Sleeps>();
            const std::lock_guard guard(set.mutex);
            for (fid* member : set.members) {
                sleeps->add(member);
            }
        }
    }
}

int close_wait_set(fid* handle) {
    auto& set = object_of<WaitSet>(handle);
    if (!set.members.empty()) {
        return refuse_busy(FI_LOG_FABRIC, "a wait set",
                           "the queues and counters that were opened with it");
    }
    const std::lock_guard guard(all_mutex);
    std::erase(all_sets, &set);
    --set.fabric->children;
    delete &set;
    return 0;
}

int control_wait_set(fid* handle, int command, void* argument) {
    if (command != FI_GETWAITOBJ) {
        return -FI_ENOSYS;
    }
    *static_cast<fi_wait_obj*>(argument) = object_of<WaitSet>(handle).wait_object;
    return 0;
}

fi_ops wait_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_wait_set,
    .bind = kAbsent,
    .control = control_wait_set,
    .ops_open = kAbsent,
    .tostr = kAbsent,
    .ops_set = kAbsent,
};
fi_ops_wait wait_ops = {.size = sizeof(fi_ops_wait), .wait = wait};

int poll_all(fid_poll* handle, void** contexts, int count) {
    auto& set = object_of<PollSet>(handle);
    int found = 0;
    for (fid* member : set.members) {
        if (is_ready(member) && found < count) {
            contexts[found++] = member->context;
        }
    }
    return found;
}

int poll_add(fid_poll* handle, fid* member, uint64_t flags) {
    auto& set = object_of<PollSet>(handle);
    if (flags != 0 || (member->fclass != FI_CLASS_CQ && member->fclass != FI_CLASS_CNTR &&
                       member->fclass != FI_CLASS_EQ)) {
        return refuse(-FI_EINVAL, FI_LOG_DOMAIN,
                      "fi_poll_add takes completion queues, counters and event queues, and no "
                      "flags");
    }
    if (std::find(set.members.begin(), set.members.end(), member) == set.members.end()) {
        set.members.push_back(member);
    }
    return 0;
}

int poll_remove(fid_poll* handle, fid* member, uint64_t flags) {
    auto& set = object_of<PollSet>(handle);
    if (flags != 0 || std::erase(set.members, member) == 0) {
        return refuse(-FI_EINVAL, FI_LOG_DOMAIN,
                      "fi_poll_del takes what fi_poll_add was given, and no flags");
    }
    return 0;
}

int close_poll_set(fid* handle) {
    auto& set = object_of<PollSet>(handle);
    --set.domain->children;
    delete &set;
    return 0;
}

fi_ops poll_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_poll_set,
    .bind = kAbsent,
    .control = kAbsent,
    .ops_open = kAbsent,
    .tostr = kAbsent,
    .ops_set = kAbsent,
};
fi_ops_poll poll_ops = {
    .size = sizeof(fi_ops_poll),
    .poll = poll_all,
    .poll_add = poll_add,
    .poll_del = poll_remove,
};

}  // namespace

int join_wait_set(fid_wait* handle, fid* member) {
    if (handle == nullptr) {
        return refuse(-FI_EINVAL, FI_LOG_FABRIC, "FI_WAIT_SET needs a wait_set (fi_wait_open)");
    }
    auto& set = object_of<WaitSet>(handle);
    const std::lock_guard guard(set.mutex);
    set.members.push_back(member);
    return 0;
}

void leave_wait_sets(fid* member) {
    const std::lock_guard all_guard(all_mutex);
    for (WaitSet* set : all_sets) {
        const std::lock_guard guard(set->mutex);
        std::erase(set->members, member);
    }
}

int open_wait_set(fid_fabric* fabric, fi_wait_attr* attr, fid_wait** handle) {
    if (attr != nullptr && (attr->flags != 0 || (attr->wait_obj != FI_WAIT_UNSPEC &&
                                                 attr->wait_obj != FI_WAIT_YIELD))) {
        return refuse(attr->flags != 0 ? -FI_EINVAL : -FI_ENOSYS, FI_LOG_FABRIC,
                      "a wait set takes no flags, and FI_WAIT_UNSPEC or FI_WAIT_YIELD");
    }
    auto* set = new (std::nothrow) WaitSet{};
    if (set == nullptr) {
        return -FI_ENOMEM;
    }
    set->fid.fid.fclass = FI_CLASS_WAIT;
    set->fid.fid.ops = &wait_fid_ops;
    set->fid.ops = &wait_ops;
    set->fabric = &object_of<Fabric>(fabric);
    set->wait_object = FI_WAIT_UNSPEC;
    const std::lock_guard guard(all_mutex);
    all_sets.push_back(set);
    ++set->fabric->children;
    *handle = &set->fid;
    return 0;
}

int open_poll_set(fid_domain* domain, fi_poll_attr* attr, fid_poll** handle) {
    if (attr != nullptr && attr->flags != 0) {
        return refuse(-FI_EINVAL, FI_LOG_DOMAIN, "a poll set takes no flags");
    }
    auto* set = new (std::nothrow) PollSet{};
    if (set == nullptr) {
        return -FI_ENOMEM;
    }
    set->fid.fid.fclass = FI_CLASS_POLL;
    set->fid.fid.ops = &poll_fid_ops;
    set->fid.ops = &poll_ops;
    set->domain = &object_of<Domain>(domain);
    ++set->domain->children;
    *handle = &set->fid;
    return 0;
}

// Armed first, so that nothing that comes after the look is lost.
int try_wait(fid_fabric*, fid** fids, int count) {
    for (int i = 0; i < count; ++i) {
        const int result = fids[i]->fclass == FI_CLASS_CQ
                               ? object_of<CompletionQueue>(fids[i]).arm()
                           : fids[i]->fclass == FI_CLASS_CNTR ? object_of<Counter>(fids[i]).arm()
                                                              : 0;
        if (result != 0) {
            return result;
        }
    }
    return std::any_of(fids, fids + count, is_ready) ? -FI_EAGAIN : 0;
}

}  // namespace tagwire::fi
