// SPDX-License-Identifier: BSD-3-Clause
#include "lib/tagwire/connection.h"

#include <cassert>
#include <cstring>

#include "lib/tagwire/address.h"
#include "lib/tagwire/endpoint.h"
#include "lib/tagwire/error.h"
#include "lib/tagwire/guard.h"
#include "lib/tagwire/passive_endpoint.h"
#include "lib/tagwire/worker.h"

namespace tagwire {

using transport::IncomingMessage;
using transport::PeerId;
using wire::ConnectionMessage;

int check_param(const void* param, size_t length) noexcept {
    if (length > TW_CM_PARAM_MAX || (param == nullptr && length != 0)) {
        return refuse(EINVAL,
                      "param has at most TW_CM_PARAM_MAX (256) bytes, or is NULL with length 0");
    }
    return 0;
}

Connection::Connection(Endpoint& endpoint, tw_request* request)
    : endpoint_(endpoint), request_(request) {
    for (CmSend* send : {&open_, &end_, &ping_}) {
        send->connection = this;
    }
    open_event_.connection = end_event_.connection = this;
    if (request_ != nullptr) {
        request_->state = tw_request::State::kTaken;
    }
}

Connection::~Connection() {
    if (is_live(state_)) {
        connections().live_ended();
    }
    if (request_ != nullptr) {  // opening the endpoint failed after all
        request_->state = tw_request::State::kWaiting;
    }
    for (const PeerId held : {path_, peer_}) {
        if (held != transport::kNoPeer) {
            endpoint_.worker().transport().release_peer(held);
        }
    }
    EventQueue::remove(open_event_);
    EventQueue::remove(end_event_);
    if (eq_ != nullptr) {
        eq_->unbind();
    }
}

Connections& Connection::connections() const {
    return endpoint_.worker().connections();
}

tw_ep* Connection::ep() const {
    return static_cast<tw_ep*>(&endpoint_);
}

const transport::EndpointAddress& Connection::remote() const {
    return endpoint_.worker().transport().address_of(peer_ != transport::kNoPeer ? peer_ : path_);
}

int Connection::bind(EventQueue& eq) {
    if (&eq.worker() != &endpoint_.worker()) {
        return refuse(EINVAL, "tw_ep_bind_eq: the event queue belongs to another worker");
    }
    if (eq_ != nullptr) {
        return refuse(EBUSY, "tw_ep_bind_eq: the endpoint has an event queue already");
    }
    eq_ = &eq;
    eq.bind();
    return 0;
}

int Connection::may_open(const char* call) const {
    switch (state_) {
        case State::kIdle:
            break;
        case State::kConnecting:
        case State::kAccepting:
            return fail(EALREADY, "%s: the endpoint is being connected already", call);
        case State::kConnected:
            return fail(EISCONN, "%s: the endpoint is connected", call);
        case State::kEnding:
        case State::kEnded:
            return fail(TW_EOPBADSTATE, "%s: the endpoint was connected once; open another one",
                        call);
    }
    if (eq_ == nullptr) {
        return fail(TW_ENOEQ, "%s: bind an event queue first (tw_ep_bind_eq)", call);
    }
    return endpoint_.enabled() ? 0 : endpoint_.enable();
}

int Connection::connect(const tw_address& address, const void* param, size_t length) {
    if (request_ != nullptr) {
        return refuse(EINVAL, "tw_connect: the endpoint was opened for a request: call tw_accept");
    }
    if (const int error = may_open("tw_connect"); error != 0) {
        return error;
    }
    transport::Transport& transport = endpoint_.worker().transport();
    PeerId path;
    if (const int error =
            transport.open_peer(endpoint_.number(), to_transport(address), endpoint_.key(), &path);
        error != 0) {
        return fail(-error, "tw_connect: no session: %s%s", tw_strerror(error),
                    error == -ENOSPC ? " (max_peers)" : "");
    }
    open_.param.length = length;
    if (length != 0) {
        std::memcpy(open_.param.bytes, param, length);
    }
    const uint64_t id = connections().new_id();
    if (const int error = connections().send(open_, path, ConnectionMessage::kRequest, id, true);
        error != 0) {
        transport.release_peer(path);
        return refuse(-error,
                      "tw_connect: an earlier connection closes; call tw_progress and try "
                      "again");
    }
    id_ = id;
    path_ = path;
    set_state(State::kConnecting);
    return 0;
}

int Connection::accept(const void* param, size_t length) {
    if (request_ == nullptr && state_ != State::kConnected) {
        return refuse(EINVAL, "tw_accept: the endpoint was not opened for a request");
    }
    if (const int error = may_open("tw_accept"); error != 0) {
        return error;
    }
    if (request_->dead) {
        return refuse(ECONNRESET, "tw_accept: the peer is gone");
    }
    transport::Transport& transport = endpoint_.worker().transport();
    PeerId peer;
    if (const int error =
            transport.open_peer(endpoint_.number(), request_->client(), endpoint_.key(), &peer);
        error != 0) {
        return fail(-error, "tw_accept: no session: %s%s", tw_strerror(error),
                    error == -ENOSPC ? " (max_peers)" : "");
    }
    open_.param.length = length;
    if (length != 0) {
        std::memcpy(open_.param.bytes, param, length);
    }
    if (const int error =
            connections().send(open_, peer, ConnectionMessage::kAccept, request_->id, true);
        error != 0) {
        transport.release_peer(peer);
        return refuse(-error,
                      "tw_accept: an earlier connection closes; call tw_progress and try again");
    }
    id_ = request_->id;
    set_state(State::kAccepting);
    attach(peer);
    return 0;
}

// Everything sent before goes first: messages are announced in the order of their posting.
int Connection::shutdown() noexcept {
    switch (state_) {
        case State::kIdle:
        case State::kEnding:
        case State::kEnded:
            return refuse(ENOTCONN, "tw_shutdown: the endpoint is not connected");
        case State::kConnecting:
            set_state(State::kEnded);
            break;
        case State::kAccepting:
        case State::kConnected:
            if (const int error =
                    connections().send(end_, peer_, ConnectionMessage::kShutdown, id_, true);
                error != 0) {
                return refuse(-error, "tw_shutdown: the worker shuts down");
            }
            set_state(State::kEnding);
            break;
    }
    endpoint_.disconnected(peer_, ECANCELED);
    endpoint_.drop_messages();
    return 0;
}

int Connection::peer_name(tw_address* address) const {
    if (peer_ == transport::kNoPeer || state_ == State::kAccepting) {
        return refuse(ENOTCONN, "tw_getpeer: the endpoint is not connected");
    }
    *address = from_transport(remote());
    return 0;
}

int Connection::close() noexcept {
    if (open_.busy || end_.busy || ping_.busy) {
        return -EBUSY;
    }
    release_request(false);
    return 0;
}

bool Connection::is_busy() const {
    return peer_ != transport::kNoPeer && endpoint_.worker().transport().is_busy(peer_);
}

int Connection::refuse_send() const noexcept {
    return refuse(ENOTCONN, peer_ == transport::kNoPeer
                                ? "the endpoint is not connected yet: wait for TW_CONNECTED"
                                : "the connection has ended");
}

int Connection::refuse_receive() const noexcept {
    return refuse(ENOTCONN, "the connection has ended, and no message for the receive is left");
}

void Connection::set_state(State state) noexcept {
    if (is_live(state) != is_live(state_)) {
        is_live(state) ? connections().live_began() : connections().live_ended();
    }
    state_ = state;
}

void Connection::attach(PeerId peer) noexcept {
    peer_ = peer;
    endpoint_.connected_to(peer);
}

void Connection::push(QueuedEvent& event, tw_event type, int error, bool failed) noexcept {
    event.event = type;
    event.error = error;
    event.failed = failed;
    eq_->push(event);
}

void Connection::connected() noexcept {
    set_state(State::kConnected);
    endpoint_.allow_sends();
    push(open_event_, TW_CONNECTED, 0, false);
}

void Connection::failed(int error) noexcept {
    set_state(State::kEnded);
    endpoint_.disconnected(peer_, error);
    push(open_event_, TW_CONNECTED, error, true);
}

void Connection::ended(int error) noexcept {
    peer_ended_ = true;
    set_state(State::kEnded);
    endpoint_.disconnected(peer_, error != 0 ? error : ESHUTDOWN);
    push(end_event_, TW_SHUTDOWN, error, false);
}

bool Connection::arrived(ConnectionMessage type, IncomingMessage& message, PeerId peer,
                         uint64_t id) noexcept {
    if (id != id_ || state_ == State::kIdle) {
        return false;
    }
    switch (type) {
        case ConnectionMessage::kAccept: {
            transport::Transport& transport = endpoint_.worker().transport();
            const transport::EndpointAddress& from = transport.address_of(peer);
            const transport::EndpointAddress& asked = transport.address_of(path_);
            if (state_ != State::kConnecting || from.ip != asked.ip ||
                from.udp_port != asked.udp_port || !connections().take(message, answer_)) {
                return false;
            }
            transport.hold_peer(peer);
            attach(peer);
            connected();
            return true;
        }
        case ConnectionMessage::kReject:
            if (state_ != State::kConnecting || peer != path_ ||
                !connections().take(message, answer_)) {
                return false;
            }
            failed(ECONNREFUSED);
            return true;
        case ConnectionMessage::kShutdown: {
            CmParam none;
            const bool expected = state_ == State::kConnected || state_ == State::kAccepting ||
                                  state_ == State::kEnding;
            if (!expected || peer != peer_ || !connections().take(message, none)) {
                return false;
            }
            if (state_ == State::kEnding) {
                push(end_event_, TW_SHUTDOWN, 0, false);
            } else if (state_ == State::kConnected) {
                ended(0);
            } else {
                // Its answer to ACCEPT is on the way: it was connected.
                connected();
                ended(0);
            }
            return true;
        }
        case ConnectionMessage::kRequest:
        case ConnectionMessage::kPing:
            break;
    }
    return false;
}

void Connection::sent(CmSend& send, int status) noexcept {
    if (&send == &ping_) {
        return;  // a peer that is gone is reported by the end of its session
    }
    if (&send == &end_) {
        set_state(State::kEnded);
        return;
    }
    if (state_ == State::kConnecting) {
        if (status != 0) {
            failed(-status);
        }
        return;
    }
    if (request_ != nullptr) {
        release_request(status == 0);
    }
    if (state_ == State::kAccepting) {
        status == 0 ? connected() : failed(-status);
    }
}

void Connection::peer_down(PeerId peer, int status) noexcept {
    if (state_ == State::kConnecting && peer == path_) {
        failed(status != 0 ? -status : ECONNREFUSED);
    } else if (state_ == State::kConnected && peer == peer_) {
        ended(-status);
    }
}

void Connection::ping() noexcept {
    const PeerId peer = state_ == State::kConnecting ? path_ : peer_;
    if (!is_live(state_) || ping_.busy || endpoint_.worker().transport().is_busy(peer)) {
        return;
    }
    if (connections().send(ping_, peer, ConnectionMessage::kPing, id_, false) == 0) {
        ++connections().counters.pings;
    }
}

// A peer that still waits for an answer gets one.
void Connection::release_request(bool accepted) noexcept {
    if (request_ == nullptr) {
        return;
    }
    if (accepted) {
        request_->release();
    } else {
        request_->reply.param.length = 0;
        request_->reject();
    }
    request_ = nullptr;
}

}  // namespace tagwire

using namespace tagwire;

namespace {

// The endpoint's connection, or nullptr with the error.
Connection* connection_of(const tw_ep* ep, const char* call, int* error) {
    if (ep->connection() == nullptr) {
        *error = fail(EOPNOTSUPP, "%s: the endpoint is connectionless (type TW_EP_RDM)", call);
    }
    return ep->connection();
}

}  // namespace

int tw_ep_bind_eq(tw_ep* ep, tw_eq* eq) {
    if (ep == nullptr || eq == nullptr) {
        return refuse(EINVAL, "tw_ep_bind_eq: ep and eq cannot be NULL");
    }
    const Guard guard(ep->worker());
    int error = 0;
    Connection* const connection = connection_of(ep, "tw_ep_bind_eq", &error);
    return connection != nullptr ? connection->bind(*eq) : error;
}

int tw_ep_bind_receiver(tw_ep* ep, tw_ep* receiver) {
    if (ep == nullptr || receiver == nullptr) {
        return refuse(EINVAL, "tw_ep_bind_receiver: ep and receiver cannot be NULL");
    }
    const Guard guard(ep->worker());
    return ep->bind_receiver(*receiver);
}

int tw_connect(tw_ep* ep, const tw_address* address, const void* param, size_t param_length) {
    if (ep == nullptr || address == nullptr) {
        return refuse(EINVAL, "tw_connect: ep and address cannot be NULL");
    }
    if (const int error = check_param(param, param_length); error != 0) {
        return error;
    }
    const Guard guard(ep->worker());
    int error = check_peer_address(ep->worker(), *address, "tw_connect");
    if (error != 0) {
        return error;
    }
    Connection* const connection = connection_of(ep, "tw_connect", &error);
    return connection != nullptr
               ? guarded([&] { return connection->connect(*address, param, param_length); })
               : error;
}

int tw_accept(tw_ep* ep, const void* param, size_t param_length) {
    if (ep == nullptr) {
        return refuse(EINVAL, "tw_accept: ep cannot be NULL");
    }
    if (const int error = check_param(param, param_length); error != 0) {
        return error;
    }
    const Guard guard(ep->worker());
    int error = 0;
    Connection* const connection = connection_of(ep, "tw_accept", &error);
    return connection != nullptr ? guarded([&] { return connection->accept(param, param_length); })
                                 : error;
}

int tw_shutdown(tw_ep* ep, uint64_t flags) {
    if (ep == nullptr || flags != 0) {
        return refuse(EINVAL, "tw_shutdown: ep cannot be NULL, and flags are 0");
    }
    const Guard guard(ep->worker());
    int error = 0;
    Connection* const connection = connection_of(ep, "tw_shutdown", &error);
    return connection != nullptr ? connection->shutdown() : error;
}

int tw_getpeer(const tw_ep* ep, tw_address* address) {
    if (ep == nullptr || address == nullptr) {
        return refuse(EINVAL, "tw_getpeer: ep and address cannot be NULL");
    }
    const Guard guard(ep->worker());
    int error = 0;
    const Connection* const connection = connection_of(ep, "tw_getpeer", &error);
    return connection != nullptr ? connection->peer_name(address) : error;
}
