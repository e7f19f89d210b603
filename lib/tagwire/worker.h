// SPDX-License-Identifier: BSD-3-Clause
// A worker: one transport, the pools behind every operation, and the loop that
// turns the transport's events into matches and completions.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "lib/tagwire/connections.h"
#include "lib/tagwire/context_index.h"
#include "lib/tagwire/kind_handler.h"
#include "lib/tagwire/loans.h"
#include "lib/tagwire/lock.h"
#include "lib/tagwire/memory.h"
#include "lib/tagwire/nic.h"
#include "lib/tagwire/requests.h"
#include "lib/tagwire/wait.h"
#include "lib/transport/transport.h"
#include "tagwire/tagwire.h"

namespace tagwire {

class AddressVector;

// Of every turn, and defined in worker.cc, which makes one function of it.
#define TAGWIRE_OF_A_TURN [[gnu::always_inline]] inline

// How matching went beyond the usual (doc/matching.md).
struct MatchCounters {
    uint64_t without_class = 0;    // receives put in the list that is scanned
    uint64_t long_posted = 0;      // times that posted receives outgrew their short list
    uint64_t long_unexpected = 0;  // the same for unexpected messages

    MatchCounters& operator+=(const MatchCounters& other) {
        without_class += other.without_class;
        long_posted += other.long_posted;
        long_unexpected += other.long_unexpected;
        return *this;
    }
};

struct CoreCounters {
    uint64_t matched_posted = 0;      // messages that met a posted receive
    uint64_t matched_unexpected = 0;  // receives that met an unexpected message
    uint64_t unexpected_peak = 0;
    uint64_t truncated = 0;
    uint64_t lost = 0;       // unexpected messages whose sender died before they were complete
    uint64_t unwanted = 0;   // messages of a kind, or for an endpoint, that nothing here takes
    uint64_t foreign = 0;    // messages for a connected endpoint from others than its peer
    uint64_t discarded = 0;  // by TW_DISCARD
    uint64_t blocked = 0;    // times that a multi-receive found the completion queue full
    uint64_t send_errors = 0;
    uint64_t receive_errors = 0;
    MatchCounters closed;  // of endpoints that are closed
};

class Worker {
  public:
    // 0, or a negative errno with its text.
    static int open(const tw_worker_attr& attr, tw_worker** worker);
    Worker(const tw_worker_attr& attr, uint64_t seed);
    ~Worker();

    int progress() noexcept;
    TAGWIRE_OF_A_TURN int turn() noexcept;  // the same, for tw_progress
    uint16_t input(rte_mbuf** packets, uint16_t count) noexcept;

    transport::Transport& transport() { return *transport_; }
    const transport::EndpointAddress& address() const { return address_; }
    uint64_t deadline() const;
    uint64_t now_ns() noexcept { return clock_->now_ns(); }
    int stats(tw_stat* stats, int count) const;

    // Entries that a completion queue for everything needs: messages and remote memory.
    uint32_t all_operations() const { return 2 * sends_.capacity() + receives_.capacity(); }

    Pool<SendRequest>& sends() { return sends_; }
    Pool<ReceiveRequest>& receives() { return receives_; }
    Pool<UnexpectedMessage>& unexpected() { return unexpected_; }
    CoreCounters& counters() { return counters_; }
    uint64_t match_seed() const { return match_seed_; }
    ContextIndex& contexts() { return contexts_; }
    void index_contexts();

    // Several threads use the objects of the worker (TW_THREAD_SAFE): see guard.h.
    bool shared() const { return shared_; }
    WorkerLock& lock() { return lock_; }
    Waiting& waiting() { return waiting_; }
    // Grows with each completion and with each event of a turn.
    uint64_t& activity() { return activity_; }
    uint64_t received_frames() const;

    Connections& connections() { return connections_; }
    KindHandler& remote_memory() { return *remote_memory_; }
    // The layer has messages that wait for room somewhere; nullptr: no longer.
    void set_stalled(KindHandler* handler) { stalled_ = handler; }
    // The layer has answered a peer that waits for that: it leaves with this turn.
    void answered() { answered_ = true; }

    // To be resumed in each turn until nothing waits.
    void add_blocked(Endpoint& endpoint);

    // Endpoints by number.
    Endpoint* endpoint(uint16_t number) const {
        return number < endpoints_.size() ? endpoints_[number] : nullptr;
    }
    // TW_EP_ANY becomes the first number that is free. 0, or a negative errno with its text.
    int choose_endpoint_number(uint16_t* number, uint16_t first) const;
    template <typename Call>
    void for_each_endpoint(Call&& call) {
        for (Endpoint* endpoint : endpoints_) {
            if (endpoint != nullptr) {
                call(*endpoint);
            }
        }
    }
    void add_endpoint(uint16_t number, Endpoint& endpoint);
    void remove_endpoint(uint16_t number);

    // The local endpoint that a peer belongs to; nullptr when it is closed.
    Endpoint* endpoint_of(transport::PeerId peer) { return peer_entry(peer).endpoint; }
    // The peer's index in its endpoint's address vector.
    tw_addr address_of(transport::PeerId peer) { return address_of(peer_entry(peer), peer); }
    // The group that the peer's authorization key stands for in receives.
    uint32_t key_group_of(transport::PeerId peer) { return peer_entry(peer).key_group; }
    void forget_address(const AddressVector& av, tw_addr address);
    void forget_key_groups();
    // What is known of it is looked up anew.
    void forget_peer(transport::PeerId peer) noexcept {
        if (peer < peers_.size()) {
            peers_[peer] = {};
        }
    }

    void child_opened() { ++children_; }
    void child_closed() { --children_; }
    bool has_children() const { return children_ != 0; }

  private:
    struct PeerEntry {
        Endpoint* endpoint = nullptr;
        Endpoint* receiver = nullptr;  // which takes its messages: most often `endpoint`
        tw_addr address = TW_ADDR_NOTAVAIL;
        size_t av_size = 0;  // of the vector when the address was not in it
        uint32_t key_group = match::kNoKey;
    };

    uint32_t key_group(const Endpoint& endpoint, transport::PeerId peer) const;
    int lend(const tw_worker_attr& attr, transport::TransportConfig* config);
    int make_transport(const tw_worker_attr& attr);
    int probe_address(const tw_worker_attr& attr);
    PeerEntry& peer_entry(transport::PeerId peer) {
        if (peer < peers_.size() && peers_[peer].endpoint != nullptr) [[likely]] {
            return peers_[peer];
        }
        return new_peer_entry(peer);
    }
    PeerEntry& new_peer_entry(transport::PeerId peer);
    bool has_events() const noexcept { return next_event_ != event_count_; }
    TAGWIRE_OF_A_TURN uint32_t handle(bool rest_may_wait) noexcept;
    tw_addr address_of(PeerEntry& entry, transport::PeerId peer) {
        if (entry.address == TW_ADDR_NOTAVAIL) [[unlikely]] {
            find_address(entry, peer);
        }
        return entry.address;
    }
    void find_address(PeerEntry& entry, transport::PeerId peer);
    void handle_rare(const transport::Event& event);
    TAGWIRE_OF_A_TURN bool records_arrived(transport::Event& event, bool rest_may_wait);
    void message_arrived(transport::IncomingMessage& message);
    void message_lost(transport::IncomingMessage& message, int status);
    TAGWIRE_OF_A_TURN void send_done(const transport::Event& event);
    void receive_done(const transport::Event& event);
    KindHandler* handler_of(transport::MessageKind kind) const {
        return handlers_[static_cast<size_t>(kind)];
    }
    void resume_blocked() noexcept;
    void refuse_unwanted(transport::IncomingMessage& message);
    bool has_number(uint16_t number) const {
        return endpoint(number) != nullptr || connections_.passive(number) != nullptr;
    }

    std::unique_ptr<transport::Transport> transport_;
    Pool<SendRequest> sends_;
    Pool<ReceiveRequest> receives_;
    Pool<UnexpectedMessage> unexpected_;
    ContextIndex contexts_;
    std::vector<PeerEntry> peers_;  // by PeerId
    CoreCounters counters_;
    std::vector<Endpoint*> blocked_;
    KindHandler* stalled_ = nullptr;
    // Of one poll, of which those from next_event_ on wait for the next turn; here so that none is
    // cleared.
    std::array<transport::Event, 64> events_;
    uint32_t event_count_ = 0;
    uint32_t next_event_ = 0;
    bool answered_ = false;
    KindHandler* handlers_[wire::kMessageKinds] = {};
    uint64_t activity_ = 0;
    const bool shared_;
    // Cold from here on.
    std::unique_ptr<KindHandler> remote_memory_;
    std::vector<Endpoint*> endpoints_;
    std::unique_ptr<Lending> lending_;
    std::unique_ptr<transport::PacketIo> port_;
    std::unique_ptr<UserNic> user_nic_;
    std::unique_ptr<TscClock> tsc_;
    transport::Clock* clock_ = nullptr;
    transport::EndpointAddress address_;
    uint64_t match_seed_;
    uint32_t children_ = 0;
    Connections connections_;
    WorkerLock lock_;
    Waiting waiting_{*this};
};

}  // namespace tagwire

struct tw_worker final : tagwire::Worker {
    using Worker::Worker;
};
