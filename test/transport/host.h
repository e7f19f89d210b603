// SPDX-License-Identifier: BSD-3-Clause
// A simulated machine with a Transport on it, and a record of what it did.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "lib/transport/transport.h"
#include "test/sim/simulator.h"

namespace transport_test {

using namespace tagwire::transport;

inline constexpr uint64_t kUs = 1'000;
inline constexpr uint64_t kMs = 1'000'000;
inline constexpr uint64_t kSecond = 1'000'000'000;
inline constexpr int kPending = 1;

struct Sent {
    SendOperation operation;
    std::vector<uint8_t> payload;
    int status = kPending;
    uint32_t ended = 0;  // how often
};

struct Received {
    MessageHeader header;
    PeerId peer = kNoPeer;
    IncomingMessage* message = nullptr;  // while it is not accepted
    ReceiveOperation operation;
    std::vector<uint8_t> buffer;
    int status = kPending;
    uint32_t ended = 0;
    bool lost = false;
};

struct PeerEvent {
    EventType type;
    PeerId peer;
    int status;
};

TransportConfig small_config(const sim::Node& node);

class Host {
  public:
    Host(sim::Node& node, const TransportConfig& config) : config(config), node_(node) { start(); }
    explicit Host(sim::Node& node) : Host(node, small_config(node)) {}
    ~Host() { stop(); }

    void start();
    void stop();  // the operations outstanding stay kPending
    void restart() {
        stop();
        sent.clear();
        received.clear();
        start();
    }

    PeerId peer(const Host& other, uint16_t local_endpoint = 0, uint16_t remote_endpoint = 0);
    Sent& send(PeerId peer, uint64_t tag, std::vector<uint8_t> payload, uint8_t flags = 0);
    Sent& send(PeerId peer, uint64_t tag, uint32_t length, uint8_t flags = 0) {
        return send(peer, tag, pattern(tag, length), flags);
    }
    void accept(Received& received, uint64_t capacity = UINT64_MAX);
    void discard(Received& received);

    // What message `tag` of `length` bytes holds.
    static std::vector<uint8_t> pattern(uint64_t tag, uint32_t length);

    uint64_t count(Counter counter) const { return transport->counters()[counter]; }
    uint32_t sends_pending() const;
    uint32_t peer_events(EventType type) const;
    void expect_exact_counters() const;

    TransportConfig config;
    KeyDigest config_key = kNoKey;  // of endpoint 0
    std::unique_ptr<Transport> transport;
    sim::Node& node() { return node_; }

    bool accept_at_once = true;
    size_t event_space = 32;
    std::deque<Sent> sent;          // of this life
    std::deque<Received> received;  // in the order of announcement, of this life
    std::vector<PeerEvent> peers;

  private:
    uint64_t turn();
    void handle(const Event& event);

    sim::Node& node_;
};

}  // namespace transport_test
