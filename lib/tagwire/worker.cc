// SPDX-License-Identifier: BSD-3-Clause
#include "lib/tagwire/worker.h"

#include <algorithm>
#include <cassert>

#include "lib/tagwire/address_vector.h"
#include "lib/tagwire/endpoint.h"
#include "lib/tagwire/error.h"
#include "lib/tagwire/guard.h"

namespace tagwire {

using transport::Event;
using transport::EventType;
using transport::IncomingMessage;
using transport::MessageKind;
using transport::PeerId;

// False: a part of them waits for the next turn.
inline bool Worker::records_arrived(Event& event, bool rest_may_wait) {
    PeerEntry& entry = peer_entry(event.peer);
    if (entry.receiver != nullptr) [[likely]] {
        return entry.receiver->records_arrived(event, address_of(entry, event.peer),
                                               entry.key_group, rest_may_wait);
    }
    counters_.unwanted += event.count;  // its endpoint is closed
    transport_->records_done(event, 0);
    return true;
}

inline void Worker::send_done(const Event& event) {
    const MessageKind kind = event.send->header.kind;
    if (kind > MessageKind::kUntagged) [[unlikely]] {
        handler_of(kind)->send_done(*event.send, event.status);
        return;
    }
    // All that end together went from one endpoint to one peer.
    Endpoint& endpoint = *static_cast<SendRequest*>(event.send->user)->endpoint;
    endpoint.sends_done(*event.send, event.count, event.status);
}

// The events that are left; with `rest_may_wait` up to a frame of which a part waits. Returns how
// many it looked at.
inline uint32_t Worker::handle(bool rest_may_wait) noexcept {
    const uint32_t first = next_event_;
    for (; next_event_ != event_count_; ++next_event_) {
        Event& event = events_[next_event_];
        if (event.type == EventType::kRecords) [[likely]] {
            if (!records_arrived(event, rest_may_wait)) [[unlikely]] {
                return next_event_ + 1 - first;
            }
        } else if (event.type == EventType::kSendDone) {
            send_done(event);
        } else {
            handle_rare(event);
        }
    }
    return next_event_ - first;
}

inline int Worker::turn() noexcept {
    if (!has_events()) [[likely]] {
        next_event_ = 0;
        event_count_ = transport_->poll(events_);
    } else {
        transport_->poll({});  // what was posted leaves all the same
    }
    const uint32_t count = handle(true);
    if (!blocked_.empty()) [[unlikely]] {
        resume_blocked();
    }
    if (stalled_ != nullptr) [[unlikely]] {
        stalled_->resume();
    }
    if (connections_.has_live()) [[unlikely]] {
        connections_.turn();
    }
    if (answered_) [[unlikely]] {
        answered_ = false;
        transport_->push();
    }
    activity_ += count;
    return static_cast<int>(count);
}

int Worker::progress() noexcept {
    return turn();
}

// Everything that the frames bring is handled at once: a pipeline that offers more than
// tw_progress takes up in a turn must not fill the transport with what waits.
uint16_t Worker::input(rte_mbuf** packets, uint16_t count) noexcept {
    handle(false);
    uint16_t given_back = 0;
    next_event_ = 0;
    event_count_ = transport_->input({packets, count}, &given_back, events_);
    handle(false);
    while (event_count_ == events_.size())
        [[unlikely]] {
            uint16_t none = 0;
            next_event_ = 0;
            event_count_ = transport_->input({}, &none, events_);
            handle(false);
        }
    return given_back;
}

void Worker::handle_rare(const Event& event) {
    switch (event.type) {
        case EventType::kRecords:
        case EventType::kSendDone:
            break;  // handle()
        case EventType::kMessage:
            message_arrived(*event.message);
            break;
        case EventType::kMessageLost:
            message_lost(*event.message, event.status);
            break;
        case EventType::kReceiveDone:
            receive_done(event);
            break;
        case EventType::kPeerDown:
            connections_.peer_down(event.peer, event.status);
            break;
        case EventType::kPeerUp:
            forget_peer(event.peer);  // the PeerId may have been another peer's
            connections_.peer_up(event.peer);
            break;
    }
}

void Worker::message_arrived(IncomingMessage& message) {
    transport::user_of(message) = nullptr;
    const MessageKind kind = transport::header_of(message).kind;
    const PeerEntry& entry = peer_entry(transport::peer_of(message));
    if (entry.receiver != nullptr && kind <= MessageKind::kUntagged) [[likely]] {
        entry.receiver->message_arrived(message);
        return;
    }
    Endpoint* const endpoint = entry.endpoint;
    if (endpoint != nullptr && handler_of(kind) != nullptr) {
        handler_of(kind)->arrived(*endpoint, message);
        return;
    }
    if (kind == MessageKind::kConnection) {
        connections_.arrived(message);
        return;
    }
    refuse_unwanted(message);
}

void Worker::refuse_unwanted(IncomingMessage& message) {
    const uint16_t number = transport_->local_endpoint_of(transport::peer_of(message));
    const Endpoint* const local = endpoint(number);
    const bool foreign = local != nullptr && local->connection() != nullptr;
    ++(foreign ? counters_.foreign : counters_.unwanted);
    transport_->refuse(message, foreign ? ENOTCONN : EOPNOTSUPP);
}

void Worker::message_lost(IncomingMessage& message, int status) {
    const MessageKind kind = transport::header_of(message).kind;
    if (kind > MessageKind::kUntagged) {
        if (handler_of(kind) != nullptr) {
            handler_of(kind)->lost(message, status);
        }
        return;
    }
    auto* unexpected = static_cast<UnexpectedMessage*>(transport::user_of(message));
    if (unexpected != nullptr) {
        unexpected->endpoint->message_lost(*unexpected, status);
    }
}

void Worker::receive_done(const Event& event) {
    const MessageKind kind = transport::header_of(*event.message).kind;
    if (kind > MessageKind::kUntagged) [[unlikely]] {
        handler_of(kind)->receive_done(*event.receive, *event.message, event.status);
        return;
    }
    auto& request = *static_cast<ReceiveRequest*>(event.receive->user);
    request.endpoint->receive_done(request, *event.message, event.status);
}

void Worker::add_blocked(Endpoint& endpoint) {
    if (std::find(blocked_.begin(), blocked_.end(), &endpoint) == blocked_.end()) {
        blocked_.push_back(&endpoint);
    }
}

void Worker::resume_blocked() noexcept {
    std::erase_if(blocked_, [](Endpoint* endpoint) {
        endpoint->resume();
        return !endpoint->blocked();
    });
}

uint64_t Worker::deadline() const {
    const bool ready = std::any_of(blocked_.begin(), blocked_.end(), [](const Endpoint* endpoint) {
        return endpoint->receive_queue().has_room();
    });
    return ready || has_events() || (stalled_ != nullptr && stalled_->can_resume())
               ? clock_->now_ns()
               : std::min(transport_->next_deadline_ns(), connections_.deadline());
}

uint64_t Worker::received_frames() const {
    return transport_->counters()[transport::Counter::rx_frames];
}

int Worker::choose_endpoint_number(uint16_t* number, uint16_t first) const {
    if (*number != TW_EP_ANY) {
        return has_number(*number)
                   ? fail(EADDRINUSE, "the worker has an endpoint %u already", *number)
                   : 0;
    }
    *number = first;
    while (*number < TW_EP_ANY && has_number(*number)) {
        ++*number;
    }
    return *number < TW_EP_ANY ? 0 : refuse(ENOSPC, "the worker has 65535 endpoints already");
}

void Worker::add_endpoint(uint16_t number, Endpoint& endpoint) {
    if (number >= endpoints_.size()) {
        endpoints_.resize(size_t{number} + 1);
    }
    endpoints_[number] = &endpoint;
}

void Worker::remove_endpoint(uint16_t number) {
    for (PeerEntry& peer : peers_) {
        if (peer.endpoint == endpoints_[number]) {
            peer = {};
        }
    }
    std::erase(blocked_, endpoints_[number]);
    endpoints_[number] = nullptr;
}

uint32_t Worker::key_group(const Endpoint& endpoint, PeerId peer) const {
    const uint32_t number = endpoint.address_vector().find_key(transport_->key_of(peer));
    return number == UINT32_MAX ? match::kNoKey : match::key_group(number);
}

void Worker::forget_address(const AddressVector& av, tw_addr address) {
    for (PeerEntry& peer : peers_) {
        if (peer.address == address && &peer.endpoint->address_vector() == &av) {
            peer.address = TW_ADDR_NOTAVAIL;
            peer.av_size = 0;
        }
    }
}

// A peer may have called with the new key already: it is the endpoint's own.
void Worker::forget_key_groups() {
    for (PeerId peer = 0; peer < peers_.size(); ++peer) {
        if (peers_[peer].endpoint != nullptr) {
            peers_[peer].key_group = key_group(*peers_[peer].endpoint, peer);
        }
    }
}

Worker::PeerEntry& Worker::new_peer_entry(PeerId peer) {
    if (peer >= peers_.size()) [[unlikely]] {
        peers_.resize(size_t{peer} + 1);
    }
    PeerEntry& entry = peers_[peer];
    if (entry.endpoint == nullptr) [[unlikely]] {
        Endpoint* const local = endpoint(transport_->local_endpoint_of(peer));
        entry.endpoint = local != nullptr && local->takes(peer) ? local : nullptr;
        if (entry.endpoint != nullptr) {
            entry.receiver = &entry.endpoint->receiver();
            entry.key_group = key_group(*entry.endpoint, peer);
        }
    }
    return entry;
}

void Worker::find_address(PeerEntry& entry, PeerId peer) {
    if (entry.endpoint != nullptr) {
        // A vector that did not grow since the last look still lacks the address.
        const AddressVector& av = entry.endpoint->address_vector();
        if (av.size() != entry.av_size) {
            entry.av_size = av.size();
            entry.address = av.find(transport_->address_of(peer), transport_->key_of(peer),
                                    entry.endpoint->key());
        }
    }
}

void Worker::index_contexts() {
    for (Endpoint* endpoint : endpoints_) {
        if (endpoint != nullptr) {
            endpoint->for_each_posted(
                [this](ReceiveRequest& request) { contexts_.insert(request); });
        }
    }
    contexts_.activate();
}

}  // namespace tagwire

int tw_progress(tw_worker* worker) {
    if (worker == nullptr) {
        return tagwire::refuse(EINVAL, "tw_progress: worker cannot be NULL");
    }
    int events;
    {
        const tagwire::Guard guard(*worker);
        events = worker->turn();
    }
    if (worker->shared()) [[unlikely]] {
        worker->lock().give_way();
    }
    return events;
}

uint16_t tw_worker_input(tw_worker* worker, rte_mbuf** mbufs, uint16_t count) {
    if (worker == nullptr || (mbufs == nullptr && count != 0)) {
        tagwire::refuse(EINVAL,
                        "tw_worker_input: worker and mbufs cannot be NULL; nothing was taken");
        return count;
    }
    const tagwire::Guard guard(*worker);
    return worker->input(mbufs, count);
}

uint64_t tw_worker_deadline(const tw_worker* worker) {
    if (worker == nullptr) {
        return UINT64_MAX;
    }
    const tagwire::Guard guard(*worker);
    return worker->deadline();
}

int tw_worker_stats(const tw_worker* worker, tw_stat* stats, int count) {
    if (worker == nullptr || count < 0 || (stats == nullptr && count != 0)) {
        return tagwire::refuse(
            EINVAL, "tw_worker_stats: worker and stats cannot be NULL, nor count negative");
    }
    const tagwire::Guard guard(*worker);
    return worker->stats(stats, count);
}
