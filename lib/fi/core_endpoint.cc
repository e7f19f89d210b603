// SPDX-License-Identifier: BSD-3-Clause
// The core's endpoint behind the handles.
#include <algorithm>
#include <chrono>
#include <utility>

#include "lib/fi/completion_queue.h"
#include "lib/fi/counter.h"
#include "lib/fi/endpoint.h"
#include "lib/fi/flags.h"
#include "lib/fi/provider.h"
#include "lib/fi/refusal.h"

namespace tagwire::fi {
namespace {

constexpr size_t kReceiveKind = 1;
constexpr uint64_t kKinds[] = {TW_SEND,  TW_RECV,        TW_READ,
                               TW_WRITE, TW_REMOTE_READ, TW_REMOTE_WRITE};
static_assert(kKinds[kReceiveKind] == TW_RECV);

// A queue for several handles is bound once.
int bind_direction(CoreEndpoint& core, CompletionQueue& cq, uint64_t direction, uint64_t selective,
                   CompletionQueue** bound) {
    if (*bound == &cq) {
        return 0;
    }
    const int result = tw_ep_bind_cq(core.ep, cq.cq, direction | selective);
    if (result == 0) {
        *bound = &cq;
    }
    return result;
}

// What connected endpoints of one receive context were bound to for their receives.
int check_shared(int result) {
    return result == 0 ? 0
                       : refuse(result, FI_LOG_EP_CTRL,
                                "endpoints of one receive context have the same completion queue, "
                                "and the same counter, for receives");
}

}  // namespace

int no_receive_context() {
    return refuse(-FI_EOPBADSTATE, FI_LOG_EP_CTRL,
                  "bind the shared receive context first (fi_ep_bind)");
}

int CoreEndpoint::open(const tw_ep_attr& attr) {
    if (const int result = tw_ep_open(domain.worker, &attr, &ep); result != 0) {
        return result;
    }
    receive_flags = attr.rx_flags;
    // Programs take the error of a receive for the death of a rank; nothing else would tell them.
    const size_t watch = 1;
    return attr.type == TW_EP_RDM ? tw_ep_setopt(ep, TW_OPT_WATCH_SOURCES, &watch, sizeof(watch))
                                  : 0;
}

int CoreEndpoint::bind(CompletionQueue& cq, uint64_t flags) {
    const uint64_t selective = move_bit(flags, FI_SELECTIVE_COMPLETION, TW_SELECTIVE_COMPLETION);
    int result = 0;
    if ((flags & FI_SEND) != 0) {
        result = bind_direction(*this, cq, TW_SEND, selective, &send_queue);
    }
    if ((flags & FI_RECV) == 0 || result != 0) {
        return result;
    }
    if (wants_receiver) {
        flags &= FI_RECV | FI_SELECTIVE_COMPLETION;
        const bool other = receive_queue != nullptr && receive_queue != &cq;
        result = other ? -FI_EBUSY : receiver != nullptr ? receiver->bind(cq, flags) : 0;
        if (result == 0) {
            receive_queue = &cq;
            receive_queue_flags = flags;
        }
        return check_shared(result);
    }
    result = bind_direction(*this, cq, TW_RECV, selective, &receive_queue);
    name_sources();
    return result;
}

int CoreEndpoint::bind(Counter& counter, uint64_t flags) {
    uint64_t kinds = bind_flags(flags);
    if (wants_receiver && (kinds & TW_RECV) != 0) {
        Counter*& receives = counters[kReceiveKind];
        const bool other = receives != nullptr && receives != &counter;
        const int result = other                 ? -FI_EBUSY
                           : receiver != nullptr ? receiver->bind(counter, FI_RECV)
                                                 : 0;
        if (result != 0) {
            return check_shared(result);
        }
        receives = &counter;
    }
    // As a queue, a counter for several handles is bound once; that of receives, of which there is
    // another endpoint's, has been.
    for (size_t i = 0; i < std::size(kKinds); ++i) {
        kinds &= counters[i] == &counter ? ~kKinds[i] : UINT64_MAX;
    }
    const bool bound = kinds == 0 && bind_flags(flags) != 0;
    const int result = bound ? 0 : tw_ep_bind_cntr(ep, counter.counter, kinds);
    for (size_t i = 0; result == 0 && i < std::size(kKinds); ++i) {
        if ((kinds & kKinds[i]) != 0) {
            counters[i] = &counter;
        }
    }
    return result;
}

void CoreEndpoint::name_sources() {
    if (receive_queue != nullptr && av != nullptr && av->context_bits != 0) {
        receive_queue->contexts = av;
    }
}

Counter* CoreEndpoint::counter_of(uint64_t kind) const {
    const auto* found = std::find(std::begin(kKinds), std::end(kKinds), kind);
    return found == std::end(kKinds) ? nullptr
                                     : counters[static_cast<size_t>(found - std::begin(kKinds))];
}

int CoreEndpoint::bind(AddressVector& vector) {
    if (av == &vector) {
        return 0;
    }
    const int result = tw_ep_bind_av(ep, vector.av);
    if (result == 0) {
        av = &vector;
        name_sources();
    }
    return result;
}

int CoreEndpoint::bind(std::shared_ptr<CoreEndpoint> receive_context) {
    int result =
        receive_queue != nullptr ? receive_context->bind(*receive_queue, receive_queue_flags) : 0;
    if (Counter* const receives = counters[kReceiveKind]; receives != nullptr && result == 0) {
        result = receive_context->bind(*receives, FI_RECV);
    }
    if (result != 0) {
        return check_shared(result);
    }
    if (result = tw_ep_bind_receiver(ep, receive_context->ep); result != 0) {
        return log_failure("the endpoint refuses its receive context", result);
    }
    receiver = std::move(receive_context);
    receiver->without_addresses = true;
    ++receiver->connections;
    return 0;
}

int CoreEndpoint::enable() {
    if (enabled) {
        return 0;
    }
    if (wants_receiver) {
        if (receiver == nullptr) {
            return no_receive_context();
        }
        if (const int result = receiver->enable(); result != 0) {
            return result;
        }
    }
    if (without_addresses && av == nullptr) {
        int result = domain.open_no_addresses();
        if (result == 0) {
            result = tw_ep_bind_av(ep, domain.no_addresses);
        }
        if (result != 0) {
            return log_failure("the receive context has no address vector", result);
        }
    }
    const bool receives = receive_queue == nullptr && !wants_receiver;
    const uint64_t missing = (send_queue != nullptr ? 0 : TW_SEND) | (receives ? TW_RECV : 0);
    if (missing != 0) {
        if (const int result = domain.open_sink(); result != 0) {
            return log_failure("no queue for errors", result);
        }
        tw_ep_bind_cq(ep, domain.sink, missing | TW_SELECTIVE_COMPLETION);
    }
    if (const int result = tw_ep_enable(ep); result != 0) {
        return log_failure("the endpoint is not enabled", result);
    }
    enabled = true;
    return 0;
}

int CoreEndpoint::close() {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(domain.peer_timeout_ms + 1000);
    int result = 0;
    while ((result = tw_ep_close(ep)) == -EBUSY && std::chrono::steady_clock::now() < end) {
        domain.progress();
    }
    if (result != 0) {
        return log_failure("the endpoint does not close", result);
    }
    domain.deferred.forget(*this);
    if (const auto its_receiver = std::exchange(receiver, nullptr); its_receiver != nullptr) {
        --its_receiver->connections;
        return its_receiver.use_count() == 1 ? its_receiver->close() : 0;
    }
    return 0;
}

int CoreEndpoint::renew() {
    tw_address address{};
    if (const int result = tw_ep_name(ep, &address); result != 0) {
        return result;
    }
    if (const int result = close(); result != 0) {
        return result;
    }
    av = nullptr;
    send_queue = receive_queue = nullptr;
    counters = {};
    enabled = false;
    const tw_ep_attr attr{
        .size = sizeof(tw_ep_attr), .endpoint = address.endpoint, .rx_flags = receive_flags};
    if (const int result = open(attr); result != 0) {
        return log_failure("the shared receive context is lost", result);
    }
    shared->ep = ep;
    return 0;
}

int CoreEndpoint::leave(const void* queue_or_counter) {
    const bool bound =
        receive_queue == queue_or_counter || counters[kReceiveKind] == queue_or_counter;
    const bool idle = without_addresses && connections == 0 && shared != nullptr;
    return bound && idle ? renew() : 0;
}

int Domain::free_from_receive_contexts(const void* queue_or_counter) {
    int result = 0;
    for (CoreEndpoint* const core : receive_contexts) {
        result = result == 0 ? core->leave(queue_or_counter) : result;
    }
    return result;
}

}  // namespace tagwire::fi
