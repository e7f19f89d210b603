// SPDX-License-Identifier: BSD-3-Clause
// Triggered operations and deferred work (fi_trigger(3)): operations that wait until a counter has
// reached a threshold. They are looked at in each turn of the worker while there are any.
#pragma once

#include <rdma/fi_trigger.h>
#include <tagwire/tagwire.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <unordered_map>

namespace tagwire::fi {

struct Domain;
struct Counter;
struct CoreEndpoint;

struct Work {
    Counter* trigger = nullptr;
    uint64_t threshold = 0;
    // Of deferred work: what it is known by, and who hears of its end. A triggered operation ends
    // as any other.
    const fi_deferred_work* request = nullptr;
    Counter* completion = nullptr;
    bool quiet = false;  // no entry for the application
    void* context = nullptr;
    CoreEndpoint* endpoint = nullptr;  // nullptr: a counter operation
    uint64_t kind = 0;                 // TW_SEND, TW_RECV, TW_READ or TW_WRITE
    // Posts it with this context: 0 or a negative error.
    std::function<ssize_t(void* context)> post;
};

class DeferredWork {
  public:
    explicit DeferredWork(Domain& domain) : domain_(domain) {}

    void add(std::unique_ptr<Work> work);
    bool active() const { return active_; }
    // Posts what is due.
    void run();
    // Whether a completion is a deferred operation's and not for the application. Otherwise its
    // context is the application's afterwards.
    bool take(tw_cq_entry& entry, bool failed);
    int cancel(const fi_deferred_work* request);
    void flush();
    void forget(const CoreEndpoint& endpoint);

  private:
    // After a change; the completion queues look aside while there is any.
    void note();

    Domain& domain_;
    bool active_ = false;
    std::list<std::unique_ptr<Work>> waiting_;
    std::unordered_map<const void*, std::unique_ptr<Work>> flying_;  // by the context posted with
};

// fi_control of a domain: FI_QUEUE_WORK, FI_CANCEL_WORK, FI_FLUSH_WORK.
int control_work(Domain& domain, int command, void* argument);

// Calls with FI_TRIGGER, whose context says when; under the domain's lock.
int trigger(CoreEndpoint& endpoint, const fi_msg& msg, uint64_t flags, bool receive);
int trigger(CoreEndpoint& endpoint, const fi_msg_tagged& msg, uint64_t flags, bool receive);
int trigger(CoreEndpoint& endpoint, const fi_msg_rma& msg, uint64_t flags, bool read);
int trigger(CoreEndpoint& endpoint, const fi_msg_atomic& msg, uint64_t flags);

}  // namespace tagwire::fi
