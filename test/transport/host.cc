// SPDX-License-Identifier: BSD-3-Clause
#include "test/transport/host.h"

#include <algorithm>

namespace transport_test {

TransportConfig small_config(const sim::Node& node) {
    TransportConfig config;
    config.local = node.address();
    config.mac.bytes = node.mac();
    config.packet_pool = node.pool();
    config.max_peers = 8;
    config.max_incoming_messages = 4096;
    config.random_seed = 1000 + node.index();
    config.first_psn = UINT32_MAX - 20;  // the wrap comes soon
    return config;
}

void Host::start() {
    std::string error;
    // Another life: other tags, other keys.
    config.random_seed += 7919;
    transport = Transport::create(config, node_, node_, &error);
    ASSERT_NE(transport, nullptr) << error;
    ASSERT_EQ(transport->open_endpoint(0, config_key), 0);
    node_.run([this] { return turn(); });
}

void Host::stop() {
    if (transport != nullptr) {
        expect_exact_counters();
    }
    node_.stop();
    transport.reset();
}

PeerId Host::peer(const Host& other, uint16_t local_endpoint, uint16_t remote_endpoint) {
    PeerId peer = kNoPeer;
    EXPECT_EQ(transport->open_peer(
                  local_endpoint, other.node_.address(other.config.local.udp_port, remote_endpoint),
                  config_key, &peer),
              0);
    return peer;
}

std::vector<uint8_t> Host::pattern(uint64_t tag, uint32_t length) {
    std::vector<uint8_t> bytes(length);
    uint64_t state = tag * 0x9e3779b97f4a7c15 + length;
    for (uint8_t& byte : bytes) {
        state = state * 6364136223846793005 + 1442695040888963407;
        byte = static_cast<uint8_t>(state >> 56);
    }
    return bytes;
}

Sent& Host::send(PeerId peer, uint64_t tag, std::vector<uint8_t> payload, uint8_t flags) {
    Sent& entry = sent.emplace_back();
    entry.payload = std::move(payload);
    entry.operation.header.tag = tag;
    entry.operation.header.flags = flags;
    entry.operation.header.length = entry.payload.size();
    // In uneven pieces.
    const size_t third = entry.payload.size() / 3;
    entry.operation.iov[0] = {entry.payload.data(), third};
    entry.operation.iov[1] = {entry.payload.data() + third, entry.payload.size() - third};
    entry.operation.iov_count = 2;
    entry.operation.user = &entry;
    EXPECT_EQ(transport->send(peer, entry.operation), 0);
    node_.wake();
    return entry;
}

void Host::accept(Received& entry, uint64_t capacity) {
    entry.buffer.assign(std::min(capacity, entry.header.length), 0xee);
    const size_t half = entry.buffer.size() / 2;
    entry.operation.iov[0] = {entry.buffer.data(), half};
    entry.operation.iov[1] = {entry.buffer.data() + half, entry.buffer.size() - half};
    entry.operation.iov_count = 2;
    entry.operation.capacity = entry.buffer.size();
    entry.operation.user = &entry;
    IncomingMessage* message = entry.message;
    entry.message = nullptr;
    const int result = transport->accept(*message, entry.operation);
    if (result == 1) {
        ++entry.ended;
        entry.status = 0;
    }
    node_.wake();
}

void Host::discard(Received& entry) {
    transport->discard(*entry.message);
    entry.message = nullptr;
    node_.wake();
}

uint32_t Host::sends_pending() const {
    return static_cast<uint32_t>(std::count_if(sent.begin(), sent.end(),
                                               [](const Sent& s) { return s.status == kPending; }));
}

uint32_t Host::peer_events(EventType type) const {
    return static_cast<uint32_t>(std::count_if(
        peers.begin(), peers.end(), [type](const PeerEvent& e) { return e.type == type; }));
}

void Host::expect_exact_counters() const {
    EXPECT_EQ(transport->counters().outcomes(), count(Counter::rx_frames))
        << "a received frame without an outcome, or with two";
}

uint64_t Host::turn() {
    std::vector<Event> events(event_space);
    const uint32_t count = transport->poll(events);
    for (uint32_t i = 0; i < count; ++i) {
        handle(events[i]);
    }
    return transport->next_deadline_ns();
}

void Host::handle(const Event& event) {
    switch (event.type) {
        case EventType::kMessage: {
            Received& entry = received.emplace_back();
            entry.header = header_of(*event.message);
            entry.peer = event.peer;
            entry.message = event.message;
            user_of(*event.message) = &entry;
            if (accept_at_once) {
                accept(entry);
            }
            break;
        }
        case EventType::kMessageLost: {
            auto* entry = static_cast<Received*>(user_of(*event.message));
            entry->message = nullptr;
            entry->lost = true;
            entry->status = event.status;
            ++entry->ended;
            break;
        }
        case EventType::kSendDone: {
            SendOperation* send = event.send;
            for (uint32_t i = 0; i < event.count; ++i, send = send->state.next) {
                auto* entry = static_cast<Sent*>(send->user);
                entry->status = event.status;
                ++entry->ended;
            }
            break;
        }
        case EventType::kReceiveDone: {
            auto* entry = static_cast<Received*>(event.receive->user);
            EXPECT_EQ(header_of(*event.message).tag, entry->header.tag);
            entry->status = event.status;
            ++entry->ended;
            break;
        }
        case EventType::kRecords:
            FAIL() << "groups_records is not set";
            break;
        case EventType::kPeerUp:
        case EventType::kPeerDown:
            peers.push_back({event.type, event.peer, event.status});
            break;
    }
}

}  // namespace transport_test
