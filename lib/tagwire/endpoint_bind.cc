// SPDX-License-Identifier: BSD-3-Clause
// What an endpoint is bound to, before it is enabled.
#include "lib/tagwire/connection.h"
#include "lib/tagwire/endpoint.h"
#include "lib/tagwire/error.h"
#include "lib/tagwire/guard.h"

namespace tagwire {

namespace {

constexpr uint64_t kCountedFlags[kCountedEvents] = {TW_SEND,  TW_RECV,        TW_READ,
                                                    TW_WRITE, TW_REMOTE_READ, TW_REMOTE_WRITE};

}  // namespace

int Endpoint::bind(AddressVector& av) {
    if (connection_ != nullptr) {
        return refuse(EINVAL, "tw_ep_bind_av: a connected endpoint needs no address vector");
    }
    if (enabled_) {
        return refuse(TW_EOPBADSTATE, "tw_ep_bind_av: the endpoint is enabled already");
    }
    if (&av.worker() != &worker_) {
        return refuse(EINVAL, "tw_ep_bind_av: the address vector belongs to another worker");
    }
    if (av_ != nullptr) {
        return refuse(EBUSY, "tw_ep_bind_av: the endpoint has an address vector already");
    }
    return guarded([&] {
        av.bind(*this);
        av_ = &av;
        return 0;
    });
}

int Endpoint::bind(CompletionQueue& cq, uint64_t flags) {
    if (enabled_) {
        return refuse(TW_EOPBADSTATE, "tw_ep_bind_cq: the endpoint is enabled already");
    }
    if (&cq.worker() != &worker_) {
        return refuse(EINVAL, "tw_ep_bind_cq: the completion queue belongs to another worker");
    }
    if ((flags & (TW_SEND | TW_RECV)) == 0 ||
        (flags & ~(TW_SEND | TW_RECV | TW_SELECTIVE_COMPLETION)) != 0) {
        return refuse(EINVAL,
                      "tw_ep_bind_cq: flags are TW_SEND, TW_RECV or both, and perhaps "
                      "TW_SELECTIVE_COMPLETION");
    }
    if (((flags & TW_SEND) != 0 && send_cq_ != nullptr) ||
        ((flags & TW_RECV) != 0 && receive_cq_ != nullptr)) {
        return refuse(EBUSY, "tw_ep_bind_cq: the endpoint has a completion queue for that already");
    }
    // fi_endpoint(3): without FI_SELECTIVE_COMPLETION every operation has an entry.
    const uint64_t always = (flags & TW_SELECTIVE_COMPLETION) != 0 ? 0 : TW_COMPLETION;
    if ((flags & TW_SEND) != 0) {
        cq.bind();
        send_cq_ = &cq;
        tx_flags_ |= always;
        tx_message_flags_ = always;
    }
    if ((flags & TW_RECV) != 0) {
        cq.bind();
        receive_cq_ = &cq;
        rx_flags_ |= always;
        rx_message_flags_ = always;
    }
    return 0;
}

int Endpoint::bind_receiver(Endpoint& receiver) {
    if (enabled_) {
        return refuse(TW_EOPBADSTATE, "tw_ep_bind_receiver: the endpoint is enabled already");
    }
    if (connection_ == nullptr || receiver.connection_ != nullptr) {
        return refuse(EINVAL,
                      "tw_ep_bind_receiver: ep is a connected endpoint (TW_EP_MSG), and its "
                      "receiver a connectionless one (TW_EP_RDM)");
    }
    if (&receiver.worker_ != &worker_) {
        return refuse(EINVAL, "tw_ep_bind_receiver: the receiver belongs to another worker");
    }
    if (receiver_ != this) {
        return refuse(EBUSY, "tw_ep_bind_receiver: the endpoint has a receiver already");
    }
    receiver_ = &receiver;
    ++receiver.receives_for_;
    return 0;
}

int Endpoint::bind(CompletionCounter& counter, uint64_t flags) {
    if (enabled_) {
        return refuse(TW_EOPBADSTATE, "tw_ep_bind_cntr: the endpoint is enabled already");
    }
    if (&counter.worker() != &worker_) {
        return refuse(EINVAL, "tw_ep_bind_cntr: the counter belongs to another worker");
    }
    uint64_t left = flags;
    for (size_t i = 0; i < kCountedEvents; ++i) {
        if ((flags & kCountedFlags[i]) != 0 && counters_[i] != nullptr) {
            return refuse(EBUSY, "tw_ep_bind_cntr: the endpoint has a counter for that already");
        }
        left &= ~kCountedFlags[i];
    }
    if (flags == 0 || left != 0) {
        return refuse(EINVAL,
                      "tw_ep_bind_cntr: flags are TW_SEND, TW_RECV, TW_READ, TW_WRITE, "
                      "TW_REMOTE_READ and TW_REMOTE_WRITE");
    }
    for (size_t i = 0; i < kCountedEvents; ++i) {
        if ((flags & kCountedFlags[i]) != 0) {
            counter.bind();
            counters_[i] = &counter;
        }
    }
    return 0;
}

}  // namespace tagwire

int tw_ep_bind_av(tw_ep* ep, tw_av* av) {
    if (ep == nullptr || av == nullptr) {
        return tagwire::refuse(EINVAL, "tw_ep_bind_av: ep and av cannot be NULL");
    }
    const tagwire::Guard guard(ep->worker());
    return ep->bind(*av);
}

int tw_ep_bind_cq(tw_ep* ep, tw_cq* cq, uint64_t flags) {
    if (ep == nullptr || cq == nullptr) {
        return tagwire::refuse(EINVAL, "tw_ep_bind_cq: ep and cq cannot be NULL");
    }
    const tagwire::Guard guard(ep->worker());
    return ep->bind(*cq, flags);
}

int tw_ep_bind_cntr(tw_ep* ep, tw_cntr* cntr, uint64_t flags) {
    if (ep == nullptr || cntr == nullptr) {
        return tagwire::refuse(EINVAL, "tw_ep_bind_cntr: ep and cntr cannot be NULL");
    }
    const tagwire::Guard guard(ep->worker());
    return ep->bind(*cntr, flags);
}
