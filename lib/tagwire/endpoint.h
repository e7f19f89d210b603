// SPDX-License-Identifier: BSD-3-Clause
// An endpoint: matching for the messages that peers send to it. One class, a source
// file per part:
//   endpoint.cc       open, enable, close, options
//   endpoint_bind.cc  what it is bound to
//   plain.h           a send or a receive as most are is posted
//   send.cc           a send is posted              matching.cc   a message meets a receive
//   receive.cc        a receive is posted           completion.cc an operation ends
//   peek.cc           peek, claim, discard          blocked.cc    a completion queue is full
//   multi_receive.cc  receives of many messages
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/match/posted_queue.h"
#include "lib/match/unexpected_queue.h"
#include "lib/tagwire/address_vector.h"
#include "lib/tagwire/completion_queue.h"
#include "lib/tagwire/counter.h"
#include "lib/tagwire/huge_memory.h"
#include "lib/tagwire/requests.h"
#include "lib/tagwire/worker.h"
#include "tagwire/endpoint.h"

namespace tagwire {

// What a counter may be bound for.
enum class Counted : uint8_t { kSend, kReceive, kRead, kWrite, kRemoteRead, kRemoteWrite };
inline constexpr size_t kCountedEvents = 6;

class Connection;

class Endpoint {
  public:
    Endpoint(Worker& worker, uint16_t number, const tw_ep_attr& attr);
    ~Endpoint();

    // Lifecycle (endpoint.cc).
    int bind(AddressVector& av);
    int bind(CompletionQueue& cq, uint64_t flags);
    int bind(CompletionCounter& counter, uint64_t flags);
    int bind_receiver(Endpoint& receiver);
    int enable();
    int close();  // the object can be deleted after 0
    int set_option(int option, const void* value, size_t size);
    int get_option(int option, void* value, size_t* size) const;

    // Operations. The flags of a call are complete: default flags are in them.
    int send(const SendCall& call) noexcept;
    int receive(const ReceiveCall& call) noexcept;
    int cancel(void* context) noexcept;
    // The same for what most calls ask for (plain.h).
    bool takes_plain_send(const void* buffer, size_t length, tw_addr dest) const noexcept;
    bool takes_plain_receive(const void* buffer, size_t length, tw_addr source,
                             transport::MessageKind kind) const noexcept;
    bool takes_plain_inject(const void* buffer, size_t length, tw_addr dest) const noexcept;
    bool takes_plain_copy(const tw_msg_tagged& message, uint64_t flags) const noexcept;
    template <bool kCopies>
    int send_plain(const void* buffer, size_t length, tw_addr dest, uint64_t tag, void* context,
                   SendRequest::End ends) noexcept;
    SendRequest::End plain_end() const { return plain_end_; }
    int receive_plain(void* buffer, size_t length, tw_addr source, uint64_t tag, uint64_t ignore,
                      void* context, transport::MessageKind kind) noexcept;
    uint64_t send_flags() const { return tx_flags_; }
    uint64_t receive_flags() const { return rx_flags_; }
    // Flags of a call with a flags argument.
    uint64_t message_send_flags(uint64_t flags) const { return flags | tx_message_flags_; }
    uint64_t message_receive_flags(uint64_t flags) const { return flags | rx_message_flags_; }

    // Events. `source`: the peer's index in the address vector.
    // False: a part of the records is left in the event for the next turn.
    bool records_arrived(transport::Event& event, tw_addr source, uint32_t key,
                         bool rest_may_wait) noexcept;
    bool has_posted() const noexcept {
        return sides_[0].posted->size() + sides_[1].posted->size() != 0;
    }
    // Whose receives meet the messages to this endpoint: itself, or what a connected one was bound
    // to.
    Endpoint& receiver() const { return *receiver_; }
    void message_arrived(transport::IncomingMessage& message) noexcept;
    void message_lost(UnexpectedMessage& unexpected, int status) noexcept;
    void sends_done(transport::SendOperation& first, uint32_t count, int status) noexcept;
    void receive_done(ReceiveRequest& request, const transport::IncomingMessage& message,
                      int status) noexcept;
    void resume() noexcept;  // completion queues may have room again
    bool blocked() const { return blocked_ != nullptr || hungry_ != nullptr; }
    // The address was removed from the vector: its peer is another one from now on.
    void forget_address(tw_addr address);
    bool is_busy(tw_addr address) const;
    int reset_peer(tw_addr address) noexcept;
    int peer_is_up(tw_addr address) noexcept;
    void allow_key(transport::KeyDigest key);

    // Of layers that send with the worker's transport: operations that are not completed keep
    // the endpoint open.
    void operation_began() { ++sends_; }
    void operation_ended() { --sends_; }
    void count(Counted what, int error) noexcept {
        if (CompletionCounter* counter = counters_[static_cast<size_t>(what)]) [[unlikely]] {
            counter->ended(error);
        }
    }

    // Of a connected endpoint; else nullptr.
    Connection* connection() const { return connection_.get(); }
    void connected_to(transport::PeerId peer);
    void allow_sends() { can_send_ = true; }
    // Nothing can be posted any more, posted receives end with `error`, and what the peer still
    // sends is refused.
    void disconnected(transport::PeerId peer, int error) noexcept;
    void drop_messages() noexcept;
    // Whether the peer's messages are for this endpoint.
    bool takes(transport::PeerId peer) const;

    // 0 and the peer of an address, or a negative errno.
    int peer_for(tw_addr address, transport::PeerId* peer) noexcept;

    std::span<const transport::PeerId> peers() const { return peers_; }

    MatchCounters match_counters() const;
    // Every posted receive with a context, oldest first of each kind.
    template <typename Visit>
    void for_each_posted(Visit visit);
    // The source of each posted receive, if it matters whether that lives: a peer, or something
    // that is none.
    template <typename Visit>
    void for_each_watched(Visit visit);
    // The peer is gone with an error. What has started has ended already.
    void peer_down(transport::PeerId peer, int error) noexcept;

    Worker& worker() const { return worker_; }
    uint16_t number() const { return number_; }
    bool enabled() const { return enabled_; }
    AddressVector& address_vector() const { return *av_; }
    transport::KeyDigest key() const { return key_; }
    transport::EndpointAddress address() const;
    int set_address(const transport::EndpointAddress& wanted);
    CompletionQueue& send_queue() const { return *send_cq_; }
    CompletionQueue& receive_queue() const { return *receive_cq_; }

  private:
    // Tagged and untagged messages are matched apart.
    struct Side {
        int open(Worker& worker, bool tagged);

        HugeMemory memory;
        std::optional<match::PostedQueue> posted;
        std::optional<match::UnexpectedQueue> unexpected;
    };
    // Everything about a message that a completion tells; the message itself may be gone by then.
    struct Arrival {
        transport::MessageHeader header;
        transport::PeerId peer;
    };
    static Arrival arrival_of(const transport::IncomingMessage& message);
    // Where it matches: none before it is enabled, and in one whose receiver is another.
    std::span<Side> open_sides() {
        return {sides_, enabled_ && receiver_ == this ? std::size(sides_) : 0};
    }
    Side& side_of(transport::MessageKind kind) { return sides_[static_cast<size_t>(kind)]; }
    Side& side_of(const ReceiveRequest& request) { return sides_[request.untagged ? 1 : 0]; }

    // endpoint.cc
    int close_busy() const;
    int set_watch(size_t wanted);
    void release_peers() noexcept;
    void abandon_receives(int error);
    void abandon(UnexpectedMessage& unexpected) noexcept;
    void abandon_messages() noexcept;
    void abandon_messages_of(transport::PeerId peer) noexcept;

    // send.cc
    int send_refused(SendRequest& request, int error) noexcept;
    int open_peer(tw_addr address, transport::PeerId* peer) noexcept;

    // receive.cc
    int check_receive(const ReceiveCall& call) noexcept;
    void take_back(ReceiveRequest& request, int error) noexcept;
    void index_context(ReceiveRequest& request) noexcept;
    int source_for(const ReceiveCall& call, uint32_t* source) noexcept;
    int post(ReceiveRequest& request, Side& side, const ReceiveCall& call) noexcept;
    void unpost(ReceiveRequest& request, Side& side) noexcept;
    ReceiveRequest* find_posted(const void* context) noexcept;
    bool is_matching_short() const;

    // peek.cc
    int peek(const ReceiveCall& call) noexcept;
    int claim(const ReceiveCall& call) noexcept;
    void lose_claimed(UnexpectedMessage& unexpected, int status) noexcept;

    // multi_receive.cc
    bool feed(ReceiveRequest& multi, transport::IncomingMessage& message) noexcept;
    bool fill_from_unexpected(ReceiveRequest& multi) noexcept;
    void part_ended(ReceiveRequest& multi, Completion* completion) noexcept;
    void release_multi(ReceiveRequest& multi, Completion* completion) noexcept;

    // matching.cc
    const uint8_t* take_record(const transport::Event& event, uint32_t index, const uint8_t* at,
                               uint32_t key, uint32_t& held) noexcept;
    const uint8_t* take_record(const transport::Event& event, uint32_t index, const uint8_t* at,
                               ReceiveRequest* request, uint32_t& held) noexcept;
    bool match(transport::IncomingMessage& message) noexcept;
    void keep(transport::IncomingMessage& message) noexcept;
    transport::IncomingMessage& take(UnexpectedMessage& unexpected) noexcept;
    void deliver(ReceiveRequest& request, transport::IncomingMessage& message) noexcept;
    void fit(ReceiveRequest& request, uint64_t length) noexcept;

    // blocked.cc
    void block(transport::IncomingMessage& message, bool first) noexcept;
    void unlink_blocked(UnexpectedMessage& unexpected) noexcept;
    void make_hungry(ReceiveRequest& multi, bool first) noexcept;
    void unlink_hungry(ReceiveRequest& multi) noexcept;

    // plain.h
    bool takes_plain(bool flags_are_plain, const void* buffer, size_t length,
                     tw_addr dest) const noexcept;

    // completion.cc
    void complete(ReceiveRequest& request, const Arrival& arrival, int status) noexcept;
    void complete_cancelled(ReceiveRequest& request, int error) noexcept;
    void write_sent(SendRequest& request, int status) noexcept;
    void send_done(SendRequest& request, int status) noexcept;
    void fill(Completion& completion, void* context, const Arrival& arrival) noexcept;

    Worker& worker_;
    Endpoint* receiver_ = this;
    uint32_t receives_for_ = 0;  // endpoints of which it is the receiver, beside itself
    CompletionQueue* send_cq_ = nullptr;
    CompletionQueue* receive_cq_ = nullptr;
    CompletionCounter* counters_[kCountedEvents] = {};
    bool enabled_ = false;
    bool can_send_ = false;  // enabled and, if it is a connected one, connected
    bool can_receive_ = false;
    bool plain_sends_ = false;   // enabled, and no default flag asks for more than a completion
    bool plain_copies_ = false;  // enabled, and no other thread and no connection to look after
    bool plain_receives_ = false;
    bool silent_receives_ = false;  // of the plain ones: success has no completion
    bool watches_sources_ = false;  // TW_OPT_WATCH_SOURCES
    SendRequest::End plain_end_{};  // of plain sends
    uint16_t number_;
    uint32_t sends_ = 0;      // not completed
    uint32_t accepting_ = 0;  // receives matched and not completed
    uint64_t tx_flags_;
    uint64_t rx_flags_;
    uint64_t tx_message_flags_ = 0;
    uint64_t rx_message_flags_ = 0;
    Side sides_[2];                         // by MessageKind
    std::vector<transport::PeerId> peers_;  // by index in the address vector
    UnexpectedMessage* blocked_ = nullptr;  // in order of arrival
    UnexpectedMessage* blocked_last_ = nullptr;
    ReceiveRequest* hungry_ = nullptr;  // multi-receives in posting order
    AddressVector* av_ = nullptr;
    transport::KeyDigest key_;
    uint32_t min_multi_receive_ = 64;
    bool whole_messages_ = false;  // what is longer than its receive leaves the buffers untouched
    std::unique_ptr<Connection> connection_;
    std::optional<AddressVector> no_addresses_;  // in place of one, when it is a connected one
};

template <typename Visit>
void Endpoint::for_each_posted(Visit visit) {
    for (Side& side : open_sides()) {
        for (const match::Slot slot : side.posted->slots()) {
            if (worker_.receives()[slot].context != nullptr) {
                visit(worker_.receives()[slot]);
            }
        }
    }
}

template <typename Visit>
void Endpoint::for_each_watched(Visit visit) {
    if (!watches_sources_) {
        return;
    }
    for (Side& side : open_sides()) {
        for (const match::Slot slot : side.posted->slots()) {
            visit(worker_.receives()[slot].source);
        }
    }
}

}  // namespace tagwire

struct tw_ep final : tagwire::Endpoint {
    using Endpoint::Endpoint;
};
