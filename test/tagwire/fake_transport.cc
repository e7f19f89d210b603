// SPDX-License-Identifier: BSD-3-Clause
#include "test/tagwire/fake_transport.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tagwire::transport {

const MessageHeader& header_of(const IncomingMessage& message) noexcept {
    return message.header;
}
PeerId peer_of(const IncomingMessage& message) noexcept {
    return message.peer;
}
void*& user_of(IncomingMessage& message) noexcept {
    return message.user;
}
bool is_complete(const IncomingMessage& message) noexcept {
    return message.complete;
}

}  // namespace tagwire::transport

namespace tagwire::test {

using namespace tagwire::transport;

namespace {

FakeTransport* latest = nullptr;

void scatter(const std::string& payload, const ReceiveOperation& operation) {
    size_t done = 0;
    for (uint32_t i = 0; i < operation.iov_count && done < payload.size(); ++i) {
        const size_t part = std::min(operation.iov[i].iov_len, payload.size() - done);
        std::memcpy(operation.iov[i].iov_base, payload.data() + done, part);
        done += part;
    }
}

}  // namespace

bool FakeTransport::refuse_creation = false;

FakeTransport& FakeTransport::current() {
    return *latest;
}

IncomingMessage& FakeTransport::arrive(const EndpointAddress& from, uint64_t tag,
                                       std::string payload, bool complete) {
    PeerId peer = kNoPeer;
    open_peer(endpoints.at(0), from, kNoKey, &peer);
    release_peer(peer);
    IncomingMessage& message = messages_.emplace_back();
    message.header.tag = tag;
    message.header.length = payload.size();
    message.peer = peer;
    message.payload = std::move(payload);
    message.complete = complete;
    message.user = this;  // garbage that the core must not take for its own
    events_.push_back({.type = EventType::kMessage, .peer = peer, .message = &message});
    return message;
}

void FakeTransport::finish(IncomingMessage& message, int status) {
    if (status == 0) {
        scatter(message.payload, *message.accepted);
    }
    events_.push_back({.type = EventType::kReceiveDone,
                       .status = status,
                       .message = &message,
                       .receive = message.accepted});
}

void FakeTransport::lose(IncomingMessage& message) {
    message.lost = true;
    events_.push_back({.type = EventType::kMessageLost, .message = &message});
}

void FakeTransport::finish_send(size_t index, int status) {
    events_.push_back({.type = EventType::kSendDone, .status = status, .send = sends.at(index)});
}

int FakeTransport::open_endpoint(uint16_t endpoint, KeyDigest) {
    endpoints.push_back(endpoint);
    return 0;
}

int FakeTransport::close_endpoint(uint16_t endpoint) {
    if (close_endpoint_result == 0) {
        std::erase(endpoints, endpoint);
    }
    return close_endpoint_result;
}

int FakeTransport::open_peer(uint16_t local_endpoint, const EndpointAddress& remote, KeyDigest key,
                             PeerId* peer) {
    if (open_peer_result != 0) {
        return open_peer_result;
    }
    for (size_t i = 0; i < peers_.size(); ++i) {
        if (peers_[i].local == local_endpoint && peers_[i].remote == remote &&
            peers_[i].key == key) {
            *peer = static_cast<PeerId>(i);
            ++holds[*peer];
            return 0;
        }
    }
    *peer = static_cast<PeerId>(peers_.size());
    peers_.push_back({local_endpoint, remote, key});
    ++holds[*peer];
    return 0;
}

const EndpointAddress& FakeTransport::address_of(PeerId peer) const {
    return peers_.at(peer).remote;
}

uint16_t FakeTransport::local_endpoint_of(PeerId peer) const {
    return peers_.at(peer).local;
}

int FakeTransport::send(PeerId, SendOperation& operation) noexcept {
    if (send_result == 0) {
        sends.push_back(&operation);
    }
    return send_result;
}

int FakeTransport::accept(IncomingMessage& message, ReceiveOperation& operation) noexcept {
    if (message.lost) {
        return -ECONNRESET;
    }
    if (!message.complete) {
        message.accepted = &operation;
        return 0;
    }
    scatter(message.payload, operation);
    message.header = {};  // gone
    message.peer = kNoPeer;
    return 1;
}

void FakeTransport::keep(IncomingMessage& message) noexcept {
    kept.push_back(message.header.tag);
}

void FakeTransport::discard(IncomingMessage& message) noexcept {
    discarded.push_back(message.header.tag);
}

void FakeTransport::refuse(IncomingMessage& message, uint16_t) noexcept {
    discarded.push_back(message.header.tag);
}

uint32_t FakeTransport::input(std::span<rte_mbuf*> packets, uint16_t* given_back,
                              std::span<Event> events) noexcept {
    *given_back = static_cast<uint16_t>(packets.size());
    return poll(events);
}

uint32_t FakeTransport::poll(std::span<Event> events) noexcept {
    uint32_t count = 0;
    for (; count < events.size() && !events_.empty(); ++count) {
        events[count] = events_.front();
        events_.pop_front();
    }
    return count;
}

}  // namespace tagwire::test

namespace tagwire::transport {

std::unique_ptr<Transport> Transport::create(const TransportConfig& config, PacketIo&, Clock&,
                                             std::string* error) {
    if (test::FakeTransport::refuse_creation) {
        *error = "the fake refuses";
        return nullptr;
    }
    auto transport = std::make_unique<test::FakeTransport>();
    transport->config = config;
    test::latest = transport.get();
    return transport;
}

}  // namespace tagwire::transport
