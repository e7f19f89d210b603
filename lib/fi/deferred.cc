// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/deferred.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <vector>

#include "lib/fi/completion_queue.h"
#include "lib/fi/counter.h"
#include "lib/fi/domain.h"
#include "lib/fi/endpoint.h"
#include "lib/fi/flags.h"
#include "lib/fi/object.h"
#include "lib/fi/provider.h"
#include "lib/fi/refusal.h"

namespace tagwire::fi {
namespace {

// The arrays of a call belong to the caller only until it returns.
template <class Element>
std::vector<Element> copy(const Element* elements, size_t count) {
    return elements == nullptr ? std::vector<Element>{}
                               : std::vector<Element>(elements, elements + count);
}

using Post = std::function<ssize_t(void* context)>;

Post make(tw_ep* ep, const fi_msg& msg, uint64_t flags, bool receive) {
    return [ep, msg, flags, receive, iov = copy(msg.msg_iov, msg.iov_count)](void* context) {
        const tw_msg core{.iov = iov.data(),
                          .iov_count = iov.size(),
                          .addr = msg.addr,
                          .context = context,
                          .data = msg.data};
        return ssize_t{receive ? tw_recvmsg(ep, &core, receive_flags(flags))
                               : tw_sendmsg(ep, &core, send_flags(flags))};
    };
}

Post make(tw_ep* ep, const fi_msg_tagged& msg, uint64_t flags, bool receive) {
    return [ep, msg, flags, receive, iov = copy(msg.msg_iov, msg.iov_count)](void* context) {
        const tw_msg_tagged core{.iov = iov.data(),
                                 .iov_count = iov.size(),
                                 .addr = msg.addr,
                                 .tag = msg.tag,
                                 .ignore = msg.ignore,
                                 .context = context,
                                 .data = msg.data};
        return ssize_t{receive ? tw_trecvmsg(ep, &core, receive_flags(flags))
                               : tw_tsendmsg(ep, &core, send_flags(flags))};
    };
}

Post make(tw_ep* ep, const fi_msg_rma& msg, uint64_t flags, bool read) {
    return [ep, msg, flags, read, iov = copy(msg.msg_iov, msg.iov_count),
            remote = copy(reinterpret_cast<const tw_rma_iov*>(msg.rma_iov), msg.rma_iov_count)](
               void* context) {
        const tw_msg_rma core{.iov = iov.data(),
                              .iov_count = iov.size(),
                              .addr = msg.addr,
                              .rma_iov = remote.data(),
                              .rma_iov_count = remote.size(),
                              .context = context,
                              .data = msg.data};
        return ssize_t{read ? tw_readmsg(ep, &core, send_flags(flags))
                            : tw_writemsg(ep, &core, send_flags(flags))};
    };
}

enum class Form { kBase, kFetch, kCompare };

Post make(tw_ep* ep, const fi_msg_atomic& msg, const fi_msg_fetch* fetch,
          const fi_msg_compare* compare, uint64_t flags) {
    const auto core_of = [](const fi_ioc* ioc) { return reinterpret_cast<const tw_ioc*>(ioc); };
    return [ep, msg, flags,
            form = compare != nullptr ? Form::kCompare
                   : fetch != nullptr ? Form::kFetch
                                      : Form::kBase,
            operands = copy(core_of(msg.msg_iov), msg.iov_count),
            remote = copy(reinterpret_cast<const tw_rma_ioc*>(msg.rma_iov), msg.rma_iov_count),
            results = fetch != nullptr ? copy(core_of(fetch->msg_iov), fetch->iov_count)
                                       : std::vector<tw_ioc>{},
            compares = compare != nullptr ? copy(core_of(compare->msg_iov), compare->iov_count)
                                          : std::vector<tw_ioc>{}](void* context) {
        const tw_msg_atomic core{.ioc = operands.data(),
                                 .ioc_count = operands.size(),
                                 .addr = msg.addr,
                                 .rma_ioc = remote.data(),
                                 .rma_ioc_count = remote.size(),
                                 .datatype = static_cast<tw_datatype>(msg.datatype),
                                 .op = static_cast<tw_op>(msg.op),
                                 .context = context,
                                 .data = 0};
        const uint64_t core_flags = send_flags(flags);
        switch (form) {
            case Form::kBase:
                return ssize_t{tw_atomicmsg(ep, &core, core_flags)};
            case Form::kFetch:
                return ssize_t{
                    tw_fetch_atomicmsg(ep, &core, results.data(), results.size(), core_flags)};
            case Form::kCompare:
                break;
        }
        return ssize_t{tw_compare_atomicmsg(ep, &core, compares.data(), compares.size(),
                                            results.data(), results.size(), core_flags)};
    };
}

// The operation of a request, with everything that the call's arrays held.
template <class Operation, class Make>
void set_operation(Work& work, const Operation& operation, uint64_t kind, Make make_post) {
    auto& ep = object_of<Endpoint>(operation.ep);
    work.endpoint = ep.core.get();
    work.kind = kind;
    work.context = operation.msg.context;
    // Its end must be seen, whatever the application wants to see.
    work.quiet = (operation.flags & FI_COMPLETION) == 0;
    work.post = make_post(ep.ep, operation.flags | FI_COMPLETION);
}

int fill(Work& work, const fi_deferred_work& request) {
    switch (request.op_type) {
        case FI_OP_RECV:
        case FI_OP_SEND: {
            const bool receive = request.op_type == FI_OP_RECV;
            set_operation(work, *request.op.msg, receive ? TW_RECV : TW_SEND,
                          [&](tw_ep* ep, uint64_t flags) {
                              return make(ep, request.op.msg->msg, flags, receive);
                          });
            return 0;
        }
        case FI_OP_TRECV:
        case FI_OP_TSEND: {
            const bool receive = request.op_type == FI_OP_TRECV;
            set_operation(work, *request.op.tagged, receive ? TW_RECV : TW_SEND,
                          [&](tw_ep* ep, uint64_t flags) {
                              return make(ep, request.op.tagged->msg, flags, receive);
                          });
            return 0;
        }
        case FI_OP_READ:
        case FI_OP_WRITE: {
            const bool read = request.op_type == FI_OP_READ;
            set_operation(work, *request.op.rma, read ? TW_READ : TW_WRITE,
                          [&](tw_ep* ep, uint64_t flags) {
                              return make(ep, request.op.rma->msg, flags, read);
                          });
            return 0;
        }
        case FI_OP_ATOMIC:
            set_operation(work, *request.op.atomic, TW_WRITE, [&](tw_ep* ep, uint64_t flags) {
                return make(ep, request.op.atomic->msg, nullptr, nullptr, flags);
            });
            return 0;
        case FI_OP_FETCH_ATOMIC:
            set_operation(work, *request.op.fetch_atomic, TW_READ, [&](tw_ep* ep, uint64_t flags) {
                const auto& operation = *request.op.fetch_atomic;
                return make(ep, operation.msg, &operation.fetch, nullptr, flags);
            });
            return 0;
        case FI_OP_COMPARE_ATOMIC:
            set_operation(
                work, *request.op.compare_atomic, TW_READ, [&](tw_ep* ep, uint64_t flags) {
                    const auto& operation = *request.op.compare_atomic;
                    return make(ep, operation.msg, &operation.fetch, &operation.compare, flags);
                });
            return 0;
        case FI_OP_CNTR_SET:
        case FI_OP_CNTR_ADD: {
            tw_cntr* counter = object_of<Counter>(request.op.cntr->cntr).counter;
            const uint64_t value = request.op.cntr->value;
            const bool set = request.op_type == FI_OP_CNTR_SET;
            work.post = [counter, value, set](void*) {
                return ssize_t{set ? tw_cntr_set(counter, value) : tw_cntr_add(counter, value)};
            };
            return 0;
        }
    }
    return refuse(-FI_EINVAL, FI_LOG_DOMAIN,
                  fmt::format("op_type {} is none of enum fi_op_type",
                              static_cast<unsigned>(request.op_type)));
}

int queue(Domain& domain, const fi_deferred_work* request) {
    if (request == nullptr || request->triggering_cntr == nullptr) {
        return refuse(-FI_EINVAL, FI_LOG_DOMAIN, "deferred work needs a triggering_cntr");
    }
    auto work = std::make_unique<Work>();
    work->trigger = &object_of<Counter>(request->triggering_cntr);
    work->threshold = request->threshold;
    work->request = request;
    if (request->completion_cntr != nullptr) {
        work->completion = &object_of<Counter>(request->completion_cntr);
    }
    if (const int error = fill(*work, *request); error != 0) {
        return error;
    }
    domain.deferred.add(std::move(work));
    domain.deferred.run();
    return 0;
}

int add_triggered(CoreEndpoint& endpoint, const void* context, Post post) {
    const auto* when = static_cast<const fi_triggered_context*>(context);
    if (when == nullptr || when->event_type != FI_TRIGGER_THRESHOLD ||
        when->trigger.threshold.cntr == nullptr) {
        return refuse(-FI_EINVAL, FI_LOG_EP_DATA,
                      "the context of a triggered operation is a struct fi_triggered_context with "
                      "FI_TRIGGER_THRESHOLD and a counter");
    }
    auto work = std::make_unique<Work>();
    work->trigger = &object_of<Counter>(when->trigger.threshold.cntr);
    work->threshold = when->trigger.threshold.threshold;
    work->context = const_cast<void*>(context);
    work->endpoint = &endpoint;
    work->post = std::move(post);
    endpoint.domain.deferred.add(std::move(work));
    endpoint.domain.deferred.run();
    return 0;
}

}  // namespace

void DeferredWork::add(std::unique_ptr<Work> work) {
    waiting_.push_back(std::move(work));
    note();
}

void DeferredWork::note() {
    const bool active = !waiting_.empty() || !flying_.empty();
    if (active == active_) {
        return;
    }
    active_ = active;
    for (CompletionQueue* queue : domain_.queues) {
        queue->note();
    }
}

void DeferredWork::flush() {
    waiting_.clear();
    note();
}

void DeferredWork::run() {
    for (auto next = waiting_.begin(); next != waiting_.end();) {
        const auto current = next++;
        Work& work = **current;
        tw_cntr* counter = work.trigger->counter;
        if (tw_cntr_read(counter) + tw_cntr_readerr(counter) < work.threshold) {
            continue;
        }
        const bool watched = work.request != nullptr && work.endpoint != nullptr;
        const ssize_t result = work.post(watched ? &work : work.context);
        if (result == -EAGAIN) {
            continue;
        }
        if (result != 0) {
            log_failure("a deferred operation is refused", static_cast<int>(result));
            if (work.completion != nullptr) {
                tw_cntr_adderr(work.completion->counter, 1);
            }
        } else if (watched) {
            flying_.emplace(&work, std::move(*current));
        }
        waiting_.erase(current);
    }
    note();
}

bool DeferredWork::take(tw_cq_entry& entry, bool failed) {
    const auto found = flying_.find(entry.context);
    if (found == flying_.end()) {
        return false;
    }
    const std::unique_ptr<Work> work = std::move(found->second);
    flying_.erase(found);
    note();
    entry.context = work->context;
    // The core counted it with the endpoint's operations, to which it does not belong.
    Counter* counted = work->endpoint->counter_of(work->kind);
    if (counted != work->completion) {
        const auto add = failed ? tw_cntr_adderr : tw_cntr_add;
        if (counted != nullptr) {
            add(counted->counter, ~uint64_t{0});
        }
        if (work->completion != nullptr) {
            add(work->completion->counter, 1);
        }
    }
    return work->quiet;
}

int DeferredWork::cancel(const fi_deferred_work* request) {
    const size_t found =
        waiting_.remove_if([&](const auto& work) { return work->request == request; });
    note();
    return found > 0 ? 0 : -FI_ENOENT;
}

void DeferredWork::forget(const CoreEndpoint& endpoint) {
    waiting_.remove_if([&](const auto& work) { return work->endpoint == &endpoint; });
    std::erase_if(flying_, [&](const auto& entry) { return entry.second->endpoint == &endpoint; });
    note();
}

int control_work(Domain& domain, int command, void* argument) {
    const Guard guard(domain);
    switch (command) {
        case FI_QUEUE_WORK:
            return queue(domain, static_cast<fi_deferred_work*>(argument));
        case FI_CANCEL_WORK:
            return domain.deferred.cancel(static_cast<fi_deferred_work*>(argument));
        case FI_FLUSH_WORK:
            domain.deferred.flush();
            return 0;
        default:
            return -FI_ENOSYS;
    }
}

int trigger(CoreEndpoint& endpoint, const fi_msg& msg, uint64_t flags, bool receive) {
    return add_triggered(endpoint, msg.context, make(endpoint.ep, msg, flags, receive));
}
int trigger(CoreEndpoint& endpoint, const fi_msg_tagged& msg, uint64_t flags, bool receive) {
    return add_triggered(endpoint, msg.context, make(endpoint.ep, msg, flags, receive));
}
int trigger(CoreEndpoint& endpoint, const fi_msg_rma& msg, uint64_t flags, bool read) {
    return add_triggered(endpoint, msg.context, make(endpoint.ep, msg, flags, read));
}
int trigger(CoreEndpoint& endpoint, const fi_msg_atomic& msg, uint64_t flags) {
    return add_triggered(endpoint, msg.context, make(endpoint.ep, msg, nullptr, nullptr, flags));
}

}  // namespace tagwire::fi
