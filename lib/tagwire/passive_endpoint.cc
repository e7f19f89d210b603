// SPDX-License-Identifier: BSD-3-Clause
#include "lib/tagwire/passive_endpoint.h"

#include <cstring>

#include "lib/tagwire/address.h"
#include "lib/tagwire/attributes.h"
#include "lib/tagwire/auth_key.h"
#include "lib/tagwire/connection.h"
#include "lib/tagwire/error.h"
#include "lib/tagwire/guard.h"
#include "lib/tagwire/worker.h"

namespace tagwire {

using transport::PeerId;
using State = tw_request::State;

namespace {

constexpr uint32_t kDefaultBacklog = 64;
constexpr uint32_t kMaxBacklog = 65535;

}  // namespace

PassiveEndpoint::PassiveEndpoint(Worker& worker, uint16_t number, const tw_pep_attr& attr)
    : worker_(worker),
      number_(number),
      backlog_(attr.backlog != 0 ? attr.backlog : kDefaultBacklog),
      eq_(*attr.eq),
      context_(attr.context),
      key_(attr.auth_key != nullptr ? digest_of(attr.auth_key, attr.auth_key_size)
                                    : transport::kNoKey),
      requests_(new tw_request[backlog_]) {
    for (uint32_t i = 0; i < backlog_; ++i) {
        requests_[i].pep = static_cast<tw_pep*>(this);
        requests_[i].reply.request = &requests_[i];
        requests_[i].event.request = &requests_[i];
    }
    eq_.bind();
}

PassiveEndpoint::~PassiveEndpoint() {
    for (uint32_t i = 0; i < backlog_; ++i) {
        EventQueue::remove(requests_[i].event);
    }
    eq_.unbind();
}

transport::EndpointAddress PassiveEndpoint::address() const {
    transport::EndpointAddress address = worker_.address();
    address.endpoint = number_;
    return address;
}

int PassiveEndpoint::listen() {
    if (listening_ || open_) {
        return refuse(TW_EOPBADSTATE,
                      "tw_listen: the passive endpoint listens, or closes, already");
    }
    if (const int error = worker_.transport().open_endpoint(number_, key_); error != 0) {
        return fail(-error, "tw_listen: the transport does not open endpoint %u: %s", number_,
                    tw_strerror(error));
    }
    listening_ = open_ = true;
    return 0;
}

bool PassiveEndpoint::requested(transport::IncomingMessage& message, PeerId peer,
                                uint64_t id) noexcept {
    if (!listening_) {
        return false;
    }
    tw_request* free = nullptr;
    for (uint32_t i = 0; i < backlog_; ++i) {
        tw_request& request = requests_[i];
        if (request.state == State::kFree) {
            free = free != nullptr ? free : &request;
        } else if (request.peer == peer && request.id == id) {
            return false;
        }
    }
    if (free == nullptr || !worker_.connections().take(message, free->param)) {
        return false;
    }
    free->state = State::kWaiting;
    free->dead = false;
    free->peer = peer;
    worker_.transport().hold_peer(peer);
    free->id = id;
    free->event.event = TW_CONNREQ;
    eq_.push(free->event);
    ++worker_.connections().counters.requests;
    return true;
}

// One that nobody saw yet goes; the others stay until they are answered.
void PassiveEndpoint::peer_down(PeerId peer) noexcept {
    for (uint32_t i = 0; i < backlog_; ++i) {
        tw_request& request = requests_[i];
        if (request.peer != peer || request.state == State::kFree) {
            continue;
        }
        request.dead = true;
        if (request.event.queue != nullptr) {
            EventQueue::remove(request.event);
            request.release();
        }
    }
}

tw_request* PassiveEndpoint::find_waiting(tw_request* request) noexcept {
    const bool ours = request >= requests_.get() && request < requests_.get() + backlog_;
    return ours && request->state == State::kWaiting ? request : nullptr;
}

int PassiveEndpoint::reject(tw_request* request, const void* param, size_t length) noexcept {
    if (find_waiting(request) == nullptr) {
        return refuse(EINVAL,
                      "tw_reject: the request is not of this passive endpoint, was answered, or an "
                      "endpoint was opened for it");
    }
    request->reply.param.length = length;
    if (length != 0) {
        std::memcpy(request->reply.param.bytes, param, length);
    }
    request->reject();
    return 0;
}

int PassiveEndpoint::close() noexcept {
    listening_ = false;
    bool busy = false;
    for (uint32_t i = 0; i < backlog_; ++i) {
        tw_request& request = requests_[i];
        if (request.state == State::kWaiting) {
            EventQueue::remove(request.event);
            request.reply.param.length = 0;
            request.reject();
        }
        busy = busy || request.state != State::kFree;
    }
    if (busy || (open_ && worker_.transport().close_endpoint(number_) != 0)) {
        return refuse(EBUSY,
                      "tw_pep_close: requests are being rejected (call tw_progress and try again), "
                      "or endpoints that were opened for some are neither connected nor closed");
    }
    open_ = false;
    return 0;
}

}  // namespace tagwire

const tagwire::transport::EndpointAddress& tw_request::client() const noexcept {
    return pep->worker().transport().address_of(peer);
}

// A peer that is gone, or whose session closes just now, has no use for it.
void tw_request::reject() noexcept {
    const bool sent =
        !dead && pep->worker().connections().send(
                     reply, peer, tagwire::wire::ConnectionMessage::kReject, id, false) == 0;
    if (sent) {
        state = State::kRejecting;
    } else {
        release();
    }
}

void tw_request::release() noexcept {
    if (state != State::kFree) {
        state = State::kFree;
        pep->worker().transport().release_peer(peer);
    }
}

using namespace tagwire;

int tw_pep_open(tw_worker* worker, const tw_pep_attr* attr, tw_pep** pep) {
    if (worker == nullptr || attr == nullptr || pep == nullptr) {
        return refuse(EINVAL, "tw_pep_open: worker, attr and pep cannot be NULL");
    }
    tw_pep_attr wanted{};
    wanted.endpoint = TW_EP_ANY;
    if (const int error = take_attributes(attr, &wanted, "tw_pep_attr"); error != 0) {
        return error;
    }
    const Guard guard(*worker);
    if (wanted.eq == nullptr || &wanted.eq->worker() != worker) {
        return refuse(EINVAL, "tw_pep_open: it needs an event queue of the same worker");
    }
    if (wanted.backlog > kMaxBacklog) {
        return fail(EINVAL, "tw_pep_open: a backlog of %u; at most %u", wanted.backlog,
                    kMaxBacklog);
    }
    if (const int error = check_auth_key(wanted.auth_key, wanted.auth_key_size); error != 0) {
        return error;
    }
    uint16_t number = wanted.endpoint;
    if (const int error = worker->choose_endpoint_number(&number, 0); error != 0) {
        return error;
    }
    return guarded([&] {
        auto opened = std::make_unique<tw_pep>(*worker, number, wanted);
        worker->connections().add(*opened);
        worker->child_opened();
        *pep = opened.release();
        return 0;
    });
}

int tw_pep_close(tw_pep* pep) {
    if (pep == nullptr) {
        return refuse(EINVAL, "tw_pep_close: pep cannot be NULL");
    }
    Worker& worker = pep->worker();
    const Guard guard(worker);
    if (const int error = pep->close(); error != 0) {
        return error;
    }
    worker.connections().remove(*pep);
    worker.child_closed();
    delete pep;
    return 0;
}

int tw_pep_name(const tw_pep* pep, tw_address* address) {
    if (pep == nullptr || address == nullptr) {
        return refuse(EINVAL, "tw_pep_name: pep and address cannot be NULL");
    }
    *address = from_transport(pep->address());
    return 0;
}

int tw_listen(tw_pep* pep) {
    if (pep == nullptr) {
        return refuse(EINVAL, "tw_listen: pep cannot be NULL");
    }
    const Guard guard(pep->worker());
    return guarded([&] { return pep->listen(); });
}

int tw_reject(tw_pep* pep, tw_request* request, const void* param, size_t param_length) {
    if (pep == nullptr || request == nullptr) {
        return refuse(EINVAL, "tw_reject: pep and request cannot be NULL");
    }
    if (const int error = check_param(param, param_length); error != 0) {
        return error;
    }
    const Guard guard(pep->worker());
    return pep->reject(request, param, param_length);
}
