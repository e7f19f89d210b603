// SPDX-License-Identifier: BSD-3-Clause
// A transport that does what the test says, for what a network does rarely: a
// message lost before it is complete, a full send queue, a peer that is refused.
#pragma once

#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/transport/transport.h"

namespace tagwire::transport {

struct IncomingMessage {
    MessageHeader header;
    PeerId peer = kNoPeer;
    void* user = nullptr;
    std::string payload;
    bool complete = true;
    bool lost = false;
    ReceiveOperation* accepted = nullptr;
};

}  // namespace tagwire::transport

namespace tagwire::test {

class FakeTransport final : public transport::Transport {
  public:
    // The one that Transport::create made last.
    static FakeTransport& current();

    // What the test does.
    transport::IncomingMessage& arrive(const transport::EndpointAddress& from, uint64_t tag,
                                       std::string payload, bool complete = true);
    void finish(transport::IncomingMessage& message, int status);  // one that was incomplete
    void lose(transport::IncomingMessage& message);
    void finish_send(size_t index, int status);  // of `sends`

    // What the test looks at and sets.
    static bool refuse_creation;
    transport::TransportConfig config;
    std::vector<transport::SendOperation*> sends;
    std::vector<uint64_t> kept;       // tags
    std::vector<uint64_t> discarded;  // tags
    std::vector<transport::PeerId> busy;
    int send_result = 0;
    int open_peer_result = 0;
    int close_endpoint_result = 0;
    std::vector<transport::PeerId> reset;
    bool quiet = false;
    std::vector<uint16_t> endpoints;
    std::map<transport::PeerId, int> holds;

    int open_endpoint(uint16_t endpoint, transport::KeyDigest key) override;
    void add_key(uint16_t, transport::KeyDigest) override {}
    int close_endpoint(uint16_t endpoint) override;
    int open_peer(uint16_t local_endpoint, const transport::EndpointAddress& remote,
                  transport::KeyDigest key, transport::PeerId* peer) override;
    void hold_peer(transport::PeerId peer) noexcept override { ++holds[peer]; }
    void release_peer(transport::PeerId peer) noexcept override { --holds[peer]; }
    const transport::EndpointAddress& address_of(transport::PeerId peer) const override;
    uint16_t local_endpoint_of(transport::PeerId peer) const override;
    transport::KeyDigest key_of(transport::PeerId peer) const override {
        return peers_.at(peer).key;
    }
    bool is_busy(transport::PeerId peer) const override {
        return std::find(busy.begin(), busy.end(), peer) != busy.end();
    }
    bool is_up(transport::PeerId /* peer */) const override { return true; }
    int send(transport::PeerId peer, transport::SendOperation& operation) noexcept override;
    int send_short(transport::PeerId peer, transport::SendOperation& operation) noexcept override {
        return send(peer, operation);
    }
    int accept(transport::IncomingMessage& message,
               transport::ReceiveOperation& operation) noexcept override;
    // It announces every message by itself, so there are no records to hold.
    transport::IncomingMessage& hold_record(const transport::Event& event, uint32_t,
                                            const transport::MessageHeader&,
                                            const uint8_t*) noexcept override {
        return *event.message;
    }
    void records_done(const transport::Event&, uint32_t) noexcept override {}
    void records_taken(transport::Event&, uint32_t, uint32_t, const uint8_t*) noexcept override {}
    void keep(transport::IncomingMessage& message) noexcept override;
    void discard(transport::IncomingMessage& message) noexcept override;
    void refuse(transport::IncomingMessage& message, uint16_t error) noexcept override;
    int answered(transport::SendOperation&) noexcept override { return 1; }
    int mark(transport::PeerId, transport::SendOperation&) noexcept override { return 1; }
    bool is_current(const transport::IncomingMessage&) const noexcept override { return true; }
    bool revoke(transport::IncomingMessage&, uint16_t) noexcept override { return false; }
    uint32_t poll(std::span<transport::Event> events) noexcept override;
    void push() noexcept override {}
    uint32_t input(std::span<rte_mbuf*> packets, uint16_t* given_back,
                   std::span<transport::Event> events) noexcept override;
    uint64_t next_deadline_ns() const noexcept override { return 77; }
    void reset_peer(transport::PeerId peer) noexcept override { reset.push_back(peer); }
    void probe_address() noexcept override {}
    void claim_address() noexcept override {}
    bool address_is_taken(transport::MacAddress*) const noexcept override { return false; }
    bool quiesce() noexcept override { return quiet; }
    const transport::Counters& counters() const noexcept override { return counters_; }
    transport::BudgetShare share_of(transport::PeerId) const noexcept override { return {}; }

  private:
    struct Peer {
        uint16_t local;
        transport::EndpointAddress remote;
        transport::KeyDigest key;
    };

    std::vector<Peer> peers_;
    std::list<transport::IncomingMessage> messages_;
    std::deque<transport::Event> events_;
    transport::Counters counters_;
};

}  // namespace tagwire::test
