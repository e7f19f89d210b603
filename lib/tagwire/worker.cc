// SPDX-License-Identifier: BSD-3-Clause
#include "lib/tagwire/worker.h"

#include <array>
#include <cassert>

#include "lib/tagwire/address_vector.h"
#include "lib/tagwire/endpoint.h"
#include "lib/tagwire/error.h"

namespace tagwire {

using transport::Event;
using transport::EventType;
using transport::IncomingMessage;
using transport::PeerId;

int Worker::progress() noexcept {
    std::array<Event, 64> events;
    const uint32_t count = transport_->poll(events);
    for (uint32_t i = 0; i < count; ++i) {
        handle(events[i]);
    }
    return static_cast<int>(count);
}

void Worker::handle(const Event& event) {
    switch (event.type) {
        case EventType::kMessage:
            message_arrived(*event.message);
            break;
        case EventType::kMessageLost:
            message_lost(*event.message);
            break;
        case EventType::kSendDone: {
            auto& request = *static_cast<SendRequest*>(event.send->user);
            request.endpoint->send_done(request, event.status);
            break;
        }
        case EventType::kReceiveDone: {
            auto& request = *static_cast<ReceiveRequest*>(event.receive->user);
            request.endpoint->receive_done(request, *event.message, event.status);
            break;
        }
        case EventType::kPeerUp:
        case EventType::kPeerDown:
            break;  // the transport ends each operation with an event of its own, and counts
    }
}

void Worker::message_arrived(IncomingMessage& message) {
    transport::user_of(message) = nullptr;
    Endpoint* endpoint = endpoint_of(transport::peer_of(message));
    if (endpoint == nullptr ||
        transport::header_of(message).kind != transport::MessageKind::kTagged) {
        ++counters_.unwanted;
        transport_->discard(message);
        return;
    }
    endpoint->message_arrived(message);
}

void Worker::message_lost(IncomingMessage& message) {
    auto* unexpected = static_cast<UnexpectedMessage*>(transport::user_of(message));
    if (unexpected == nullptr) {
        return;
    }
    ++counters_.lost;
    unexpected->endpoint->forget(*unexpected);
}

uint16_t Worker::free_endpoint_number() const {
    uint32_t number = 0;
    while (number < TW_EP_ANY && endpoint(static_cast<uint16_t>(number)) != nullptr) {
        ++number;
    }
    return static_cast<uint16_t>(number);
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
    endpoints_[number] = nullptr;
}

Worker::PeerEntry& Worker::peer_entry(PeerId peer) {
    if (peer >= peers_.size()) [[unlikely]] {
        peers_.resize(size_t{peer} + 1);
    }
    PeerEntry& entry = peers_[peer];
    if (entry.endpoint == nullptr) [[unlikely]] {
        entry.endpoint = endpoint(transport_->local_endpoint_of(peer));
    }
    return entry;
}

Endpoint* Worker::endpoint_of(PeerId peer) {
    return peer_entry(peer).endpoint;
}

tw_addr Worker::address_of(PeerId peer) {
    PeerEntry& entry = peer_entry(peer);
    if (entry.address == TW_ADDR_NOTAVAIL && entry.endpoint != nullptr) [[unlikely]] {
        // A vector that did not grow since the last look still lacks the address.
        const AddressVector& av = entry.endpoint->address_vector();
        if (av.size() != entry.av_size) {
            entry.av_size = av.size();
            entry.address = av.find(transport_->address_of(peer));
        }
    }
    return entry.address;
}

}  // namespace tagwire

int tw_progress(tw_worker* worker) {
    if (worker == nullptr) {
        return tagwire::refuse(EINVAL, "tw_progress: worker cannot be NULL");
    }
    return worker->progress();
}

uint64_t tw_worker_deadline(const tw_worker* worker) {
    return worker == nullptr ? UINT64_MAX : worker->deadline();
}

int tw_worker_stats(const tw_worker* worker, tw_stat* stats, int count) {
    if (worker == nullptr || count < 0 || (stats == nullptr && count != 0)) {
        return tagwire::refuse(
            EINVAL, "tw_worker_stats: worker and stats cannot be NULL, nor count negative");
    }
    return worker->stats(stats, count);
}
