// SPDX-License-Identifier: BSD-3-Clause
// A worker: one transport, the pools behind every operation, and the loop that
// turns the transport's events into matches and completions.
#pragma once

#include <memory>
#include <vector>

#include "lib/tagwire/memory.h"
#include "lib/tagwire/nic.h"
#include "lib/tagwire/requests.h"
#include "lib/transport/transport.h"
#include "tagwire/tagwire.h"

namespace tagwire {

class AddressVector;

struct CoreCounters {
    uint64_t matched_posted = 0;      // messages that met a posted receive
    uint64_t matched_unexpected = 0;  // receives that met an unexpected message
    uint64_t unexpected_peak = 0;
    uint64_t truncated = 0;
    uint64_t lost = 0;      // unexpected messages whose sender died before they were complete
    uint64_t unwanted = 0;  // messages of a kind, or for an endpoint, that nothing here takes
    uint64_t send_errors = 0;
    uint64_t receive_errors = 0;
};

class Worker {
  public:
    // 0, or a negative errno with its text.
    static int open(const tw_worker_attr& attr, tw_worker** worker);
    Worker(const tw_worker_attr& attr, uint64_t seed);

    int progress() noexcept;

    transport::Transport& transport() { return *transport_; }
    const transport::EndpointAddress& address() const { return address_; }
    uint64_t deadline() const { return transport_->next_deadline_ns(); }
    int stats(tw_stat* stats, int count) const;

    // Entries that a completion queue for everything needs.
    uint32_t all_operations() const { return sends_.capacity() + receives_.capacity(); }

    Pool<SendRequest>& sends() { return sends_; }
    Pool<ReceiveRequest>& receives() { return receives_; }
    Pool<UnexpectedMessage>& unexpected() { return unexpected_; }
    CoreCounters& counters() { return counters_; }
    uint64_t match_seed() const { return match_seed_; }
    uint64_t next_sequence() { return ++sequence_; }

    // Endpoints by number.
    Endpoint* endpoint(uint16_t number) const {
        return number < endpoints_.size() ? endpoints_[number] : nullptr;
    }
    // The first number that is free, or TW_EP_ANY.
    uint16_t free_endpoint_number() const;
    void add_endpoint(uint16_t number, Endpoint& endpoint);
    void remove_endpoint(uint16_t number);

    // The local endpoint that a peer belongs to; nullptr when it is closed.
    Endpoint* endpoint_of(transport::PeerId peer);
    // The peer's index in its endpoint's address vector.
    tw_addr address_of(transport::PeerId peer);

    void child_opened() { ++children_; }
    void child_closed() { --children_; }
    bool has_children() const { return children_ != 0; }

  private:
    struct PeerEntry {
        Endpoint* endpoint = nullptr;
        tw_addr address = TW_ADDR_NOTAVAIL;
        size_t av_size = 0;  // of the vector when the address was not in it
    };

    int make_transport(const tw_worker_attr& attr);
    PeerEntry& peer_entry(transport::PeerId peer);
    void handle(const transport::Event& event);
    void message_arrived(transport::IncomingMessage& message);
    void message_lost(transport::IncomingMessage& message);

    std::unique_ptr<transport::Transport> transport_;
    Pool<SendRequest> sends_;
    Pool<ReceiveRequest> receives_;
    Pool<UnexpectedMessage> unexpected_;
    std::vector<PeerEntry> peers_;  // by PeerId
    CoreCounters counters_;
    uint64_t sequence_ = 0;
    // Cold from here on.
    std::vector<Endpoint*> endpoints_;
    std::unique_ptr<transport::PacketIo> port_;
    std::unique_ptr<UserNic> user_nic_;
    std::unique_ptr<TscClock> tsc_;
    transport::EndpointAddress address_;
    uint64_t match_seed_;
    uint32_t children_ = 0;
};

}  // namespace tagwire

struct tw_worker final : tagwire::Worker {
    using Worker::Worker;
};
