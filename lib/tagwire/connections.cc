// SPDX-License-Identifier: BSD-3-Clause
#include "lib/tagwire/connections.h"

#include <algorithm>
#include <cassert>

#include "lib/tagwire/connection.h"
#include "lib/tagwire/endpoint.h"
#include "lib/tagwire/passive_endpoint.h"
#include "lib/tagwire/worker.h"

namespace tagwire {

using transport::IncomingMessage;
using transport::PeerId;
using wire::ConnectionMessage;

int Connections::send(CmSend& send, PeerId peer, ConnectionMessage type, uint64_t id,
                      bool answered) noexcept {
    assert(!send.busy);
    transport::SendOperation& operation = send.operation;
    operation.header.kind = transport::MessageKind::kConnection;
    operation.header.tag = static_cast<uint64_t>(type);
    operation.header.data = id;
    operation.header.length = send.param.length;
    operation.header.flags =
        static_cast<uint8_t>(transport::kHasData | (answered ? transport::kWantsDeliveryNote : 0));
    operation.iov[0] = {send.param.bytes, send.param.length};
    operation.iov_count = send.param.length != 0 ? 1 : 0;
    operation.user = &send;
    const int error = worker_.transport().send(peer, operation);
    send.busy = error == 0;
    return error;
}

void Connections::send_done(transport::SendOperation& operation, int status) noexcept {
    CmSend& send = *static_cast<CmSend*>(operation.user);
    send.busy = false;
    if (send.connection != nullptr) {
        send.connection->sent(send, status);
    } else if (send.request != nullptr) {
        send.request->reject_sent();
    }
}

// One of at most 256 bytes is in one packet at every MTU: it is complete.
bool Connections::take(IncomingMessage& message, CmParam& param) noexcept {
    param.length = transport::header_of(message).length;
    transport::ReceiveOperation operation;
    operation.iov[0] = {param.bytes, param.length};
    operation.iov_count = param.length != 0 ? 1 : 0;
    operation.capacity = param.length;
    return worker_.transport().accept(message, operation) == 1;
}

void Connections::arrived(IncomingMessage& message) noexcept {
    const transport::MessageHeader header = transport::header_of(message);
    const PeerId peer = transport::peer_of(message);
    ConnectionMessage type;
    if (!wire::decode_connection(header.tag, (header.flags & transport::kHasData) != 0,
                                 header.length, &type) ||
        !transport::is_complete(message)) {
        ++counters.malformed;
        worker_.transport().refuse(message, EPROTO);
        return;
    }
    const uint16_t number = worker_.transport().local_endpoint_of(peer);
    if (type == ConnectionMessage::kPing) {
        CmParam none;
        take(message, none);
        return;
    }
    if (type == ConnectionMessage::kRequest) {
        PassiveEndpoint* const pep = passive(number);
        if (pep == nullptr || !pep->requested(message, peer, header.data)) {
            ++counters.refused;
            worker_.transport().refuse(message, ECONNREFUSED);
        }
        return;
    }
    const Endpoint* const endpoint = worker_.endpoint(number);
    Connection* const connection = endpoint != nullptr ? endpoint->connection() : nullptr;
    if (connection == nullptr || !connection->arrived(type, message, peer, header.data)) {
        ++counters.stale;
        worker_.transport().refuse(message, ECONNREFUSED);
    }
}

void Connections::peer_down(PeerId peer, int status) noexcept {
    const uint16_t number = worker_.transport().local_endpoint_of(peer);
    if (PassiveEndpoint* const pep = passive(number); pep != nullptr) {
        pep->peer_down(peer);
        return;
    }
    Endpoint* const endpoint = worker_.endpoint(number);
    if (endpoint == nullptr) {
        return;
    }
    if (endpoint->connection() != nullptr) {
        endpoint->connection()->peer_down(peer, status);
    } else if (status == 0) {
        if (peer < heard_.size()) {
            heard_[peer].reset();
        }
    } else if (status != -ECANCELED) {  // which is the end from this side
        endpoint->peer_down(peer, -status);
    }
}

void Connections::peer_up(PeerId peer) {
    if (peer >= heard_.size()) {
        heard_.resize(size_t{peer} + 1);
    }
    heard_[peer] = worker_.transport().address_of(peer);
}

PassiveEndpoint* Connections::passive(uint16_t number) const noexcept {
    const auto found = std::find_if(passive_.begin(), passive_.end(),
                                    [&](const auto* pep) { return pep->number() == number; });
    return found != passive_.end() ? *found : nullptr;
}

tw_request* Connections::find_waiting(tw_request* request) const noexcept {
    for (PassiveEndpoint* pep : passive_) {
        if (pep->find_waiting(request) != nullptr) {
            return request;
        }
    }
    return nullptr;
}

void Connections::live_began() noexcept {
    if (live_++ == 0) {
        next_ping_ns_ = worker_.now_ns() + ping_interval_ns_;
    }
}

// The transport notices that a peer is gone only while something is under way.
void Connections::turn() noexcept {
    const uint64_t now = worker_.now_ns();
    if (now < next_ping_ns_) {
        return;
    }
    next_ping_ns_ = now + ping_interval_ns_;
    worker_.for_each_endpoint([this](Endpoint& endpoint) {
        if (endpoint.connection() != nullptr) {
            endpoint.connection()->ping();
        }
        endpoint.for_each_watched([this](uint32_t source) { ping_source(source); });
    });
}

// One that was never heard may still be to come: a receive for it waits.
void Connections::ping_source(PeerId peer) {
    const transport::Transport& transport = worker_.transport();
    if (peer >= heard_.size() || heard_[peer] != transport.address_of(peer) ||
        transport.is_busy(peer)) {
        return;
    }
    CmSend& ping = pings_[peer];
    if (!ping.busy && send(ping, peer, ConnectionMessage::kPing, new_id(), false) == 0) {
        ++counters.pings;
    }
}

void Connections::shutdown_all() noexcept {
    worker_.for_each_endpoint([](Endpoint& endpoint) {
        if (endpoint.connection() != nullptr) {
            endpoint.connection()->shutdown();
        }
    });
}

int Connections::stats(tw_stat* stats, int count) const {
    const tw_stat all[] = {
        {"connection_requests", counters.requests},
        {"connection_requests_refused", counters.refused},
        {"connection_messages_malformed", counters.malformed},
        {"connection_messages_stale", counters.stale},
        {"connection_pings", counters.pings},
        {"connections_alive", live_ - watching_},
    };
    constexpr int kCount = sizeof(all) / sizeof(all[0]);
    std::copy_n(all, std::clamp(count, 0, kCount), stats);
    return kCount;
}

}  // namespace tagwire
