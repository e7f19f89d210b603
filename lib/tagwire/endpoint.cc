// SPDX-License-Identifier: BSD-3-Clause
// An endpoint's life: open, bind, enable, close.
#include "lib/tagwire/endpoint.h"

#include "lib/tagwire/address.h"
#include "lib/tagwire/attributes.h"
#include "lib/tagwire/error.h"

namespace tagwire {

namespace {

// Classes of receives for which unexpected messages may have a hash of their own beside the
// shared one; each takes 32 bytes for each message.
constexpr uint32_t kUnexpectedClasses = 4;

}  // namespace

int Endpoint::bind(AddressVector& av) {
    if (enabled_) {
        return refuse(TW_EOPBADSTATE, "tw_ep_bind_av: the endpoint is enabled already");
    }
    if (&av.worker() != &worker_) {
        return refuse(EINVAL, "tw_ep_bind_av: the address vector belongs to another worker");
    }
    if (av_ != nullptr) {
        return refuse(EBUSY, "tw_ep_bind_av: the endpoint has an address vector already");
    }
    av.bind();
    av_ = &av;
    return 0;
}

int Endpoint::bind(CompletionQueue& cq, uint64_t flags) {
    if (enabled_) {
        return refuse(TW_EOPBADSTATE, "tw_ep_bind_cq: the endpoint is enabled already");
    }
    if (&cq.worker() != &worker_) {
        return refuse(EINVAL, "tw_ep_bind_cq: the completion queue belongs to another worker");
    }
    if (flags == 0 || (flags & ~(TW_SEND | TW_RECV)) != 0) {
        return refuse(EINVAL, "tw_ep_bind_cq: flags are TW_SEND, TW_RECV or both");
    }
    if (((flags & TW_SEND) != 0 && send_cq_ != nullptr) ||
        ((flags & TW_RECV) != 0 && receive_cq_ != nullptr)) {
        return refuse(EBUSY, "tw_ep_bind_cq: the endpoint has a completion queue for that already");
    }
    if ((flags & TW_SEND) != 0) {
        cq.bind();
        send_cq_ = &cq;
    }
    if ((flags & TW_RECV) != 0) {
        cq.bind();
        receive_cq_ = &cq;
    }
    return 0;
}

int Endpoint::enable() {
    if (enabled_) {
        return refuse(TW_EOPBADSTATE, "tw_ep_enable: the endpoint is enabled already");
    }
    if (av_ == nullptr) {
        return refuse(TW_ENOAV, "tw_ep_enable: bind an address vector first (tw_ep_bind_av)");
    }
    if (send_cq_ == nullptr || receive_cq_ == nullptr) {
        return refuse(TW_ENOCQ,
                      "tw_ep_enable: bind a completion queue for TW_SEND and for TW_RECV first");
    }
    const match::QueueConfig posted{worker_.receives().capacity(), 0, worker_.match_seed()};
    const match::QueueConfig unexpected{worker_.unexpected().capacity(), kUnexpectedClasses,
                                        worker_.match_seed() + 1};
    const size_t posted_bytes = match::PostedQueue::bytes_needed(posted);
    const size_t bytes = posted_bytes + match::UnexpectedQueue::bytes_needed(unexpected);
    match_memory_ = huge_memory("tagwire_match", bytes, match::Arena::kAlignment);
    if (match_memory_ == nullptr) {
        return fail(ENOMEM,
                    "tw_ep_enable: no memory to match %u receives and %u messages, %zu MiB: start "
                    "EAL with more (-m), or open the worker with less max_operations",
                    posted.capacity, unexpected.capacity, (bytes >> 20) + 1);
    }
    if (const int error = worker_.transport().open_endpoint(number_, transport::kNoKey);
        error != 0) {
        return fail(-error, "tw_ep_enable: the transport does not open endpoint %u: %s", number_,
                    tw_strerror(error));
    }
    posted_.emplace(posted, match_memory_.get());
    unexpected_.emplace(unexpected, match_memory_.get() + posted_bytes);
    enabled_ = true;
    return 0;
}

int Endpoint::close_busy() const {
    return refuse(
        EBUSY,
        "tw_ep_close: sends or matched receives are under way; call tw_progress and try again");
}

int Endpoint::close() {
    if (enabled_) {
        if (sends_ != 0 || accepting_ != 0) {
            return close_busy();
        }
        abandon_messages();
        if (const int error = worker_.transport().close_endpoint(number_); error != 0) {
            return close_busy();
        }
        abandon_receives();
    }
    worker_.remove_endpoint(number_);
    if (av_ != nullptr) {
        av_->unbind();
    }
    if (send_cq_ != nullptr) {
        send_cq_->unbind();
    }
    if (receive_cq_ != nullptr) {
        receive_cq_->unbind();
    }
    return 0;
}

void Endpoint::abandon_receives() {
    for (const match::Slot slot : posted_->slots()) {
        posted_->remove(slot);
        complete_cancelled(worker_.receives()[slot]);
    }
}

void Endpoint::abandon_messages() {
    while (unexpected_->size() != 0) {
        UnexpectedMessage& oldest = worker_.unexpected()[unexpected_->oldest()];
        transport::IncomingMessage& message = *oldest.message;
        forget(oldest);
        worker_.transport().discard(message);
    }
}

transport::EndpointAddress Endpoint::address() const {
    transport::EndpointAddress address = worker_.address();
    address.endpoint = number_;
    return address;
}

}  // namespace tagwire

int tw_ep_open(tw_worker* worker, const tw_ep_attr* attr, tw_ep** ep) {
    using namespace tagwire;
    if (worker == nullptr || ep == nullptr) {
        return refuse(EINVAL, "tw_ep_open: worker and ep cannot be NULL");
    }
    tw_ep_attr wanted{sizeof(tw_ep_attr), TW_EP_ANY};
    if (const int error = take_attributes(attr, &wanted, "tw_ep_attr"); error != 0) {
        return error;
    }
    uint16_t number = wanted.endpoint;
    if (number == TW_EP_ANY) {
        number = worker->free_endpoint_number();
    }
    if (number == TW_EP_ANY) {
        return refuse(ENOSPC, "tw_ep_open: the worker has 65535 endpoints already");
    }
    if (worker->endpoint(number) != nullptr) {
        return fail(EADDRINUSE, "tw_ep_open: the worker has an endpoint %u already", number);
    }
    return guarded([&] {
        auto opened = std::make_unique<tw_ep>(*worker, number);
        worker->add_endpoint(number, *opened);
        worker->child_opened();
        *ep = opened.release();
        return 0;
    });
}

int tw_ep_close(tw_ep* ep) {
    using namespace tagwire;
    if (ep == nullptr) {
        return refuse(EINVAL, "tw_ep_close: ep cannot be NULL");
    }
    if (const int error = ep->close(); error != 0) {
        return error;
    }
    ep->worker().child_closed();
    delete ep;
    return 0;
}

int tw_ep_bind_av(tw_ep* ep, tw_av* av) {
    if (ep == nullptr || av == nullptr) {
        return tagwire::refuse(EINVAL, "tw_ep_bind_av: ep and av cannot be NULL");
    }
    return ep->bind(*av);
}

int tw_ep_bind_cq(tw_ep* ep, tw_cq* cq, uint64_t flags) {
    if (ep == nullptr || cq == nullptr) {
        return tagwire::refuse(EINVAL, "tw_ep_bind_cq: ep and cq cannot be NULL");
    }
    return ep->bind(*cq, flags);
}

int tw_ep_enable(tw_ep* ep) {
    if (ep == nullptr) {
        return tagwire::refuse(EINVAL, "tw_ep_enable: ep cannot be NULL");
    }
    return tagwire::guarded([&] { return ep->enable(); });
}

int tw_ep_name(const tw_ep* ep, tw_address* address) {
    if (ep == nullptr || address == nullptr) {
        return tagwire::refuse(EINVAL, "tw_ep_name: ep and address cannot be NULL");
    }
    *address = tagwire::from_transport(ep->address());
    return 0;
}
