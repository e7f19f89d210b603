// SPDX-License-Identifier: BSD-3-Clause
// The transport's implementation. One class, a source file per event:
//   engine.cc     construction, endpoints, peers, poll()
//   receive.cc    a frame arrived            handshake.cc  hello, cookie, accept, refuse
//   sequenced.cc  a PSN arrived              close.cc      close, reset, end of a session
//   assembly.cc   payload arrived            arp.cc        ARP and ICMP
//   accept.cc     the core took a message    timers.cc     a deadline passed
//   acknowledged.cc  an acknowledgement arrived
//   loss.cc       something was lost         input.cc      frames that a pipeline received
//   send.cc       the core sent a message; what goes out next
//   frames.cc     a frame is built (frame_parts.h: the inlined steps of it)
//   loans.cc      payload that leaves from where it is
//   retire.cc     places of peers that nobody needs any more
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "lib/transport/budget.h"
#include "lib/transport/event_queue.h"
#include "lib/transport/peer_list.h"
#include "lib/transport/random.h"
#include "lib/transport/session.h"
#include "lib/transport/siphash.h"
#include "lib/wire/decode.h"

struct rte_mbuf;

namespace tagwire::transport {

// Of the way of most packets. The library is compiled as one, and this makes it one function.
#define TAGWIRE_HOT [[gnu::always_inline]] inline

class Engine final : public Transport {
  public:
    Engine(const TransportConfig& config, PacketIo& io, Clock& clock);
    ~Engine() override;

    int open_endpoint(uint16_t endpoint, KeyDigest key) override;
    void add_key(uint16_t endpoint, KeyDigest key) override;
    int close_endpoint(uint16_t endpoint) override;
    int open_peer(uint16_t local_endpoint, const EndpointAddress& remote, KeyDigest key,
                  PeerId* peer) override;
    void hold_peer(PeerId peer) noexcept override;
    void release_peer(PeerId peer) noexcept override;
    const EndpointAddress& address_of(PeerId peer) const override { return sessions_[peer].remote; }
    uint16_t local_endpoint_of(PeerId peer) const override {
        return sessions_[peer].local_endpoint;
    }
    KeyDigest key_of(PeerId peer) const override { return sessions_[peer].key; }
    bool is_busy(PeerId peer) const override { return sessions_[peer].busy(); }
    bool is_up(PeerId peer) const override {
        return sessions_[peer].state == SessionState::kEstablished;
    }
    int send(PeerId peer, SendOperation& operation) noexcept override;
    int send_short(PeerId peer, SendOperation& operation) noexcept override;
    int answered(SendOperation& operation) noexcept override;
    int mark(PeerId peer, SendOperation& operation) noexcept override;
    int accept(IncomingMessage& message, ReceiveOperation& operation) noexcept override;
    IncomingMessage& hold_record(const Event& event, uint32_t index, const MessageHeader& header,
                                 const uint8_t* payload) noexcept override;
    void records_done(const Event& event, uint32_t held) noexcept override;
    void records_taken(Event& event, uint32_t taken, uint32_t held,
                       const uint8_t* next) noexcept override;
    void keep(IncomingMessage& message) noexcept override;
    void discard(IncomingMessage& message) noexcept override;
    void refuse(IncomingMessage& message, uint16_t error) noexcept override;
    bool is_current(const IncomingMessage& message) const noexcept override {
        const Session& s = sessions_[message.peer];
        return s.state == SessionState::kEstablished &&
               message.session == static_cast<uint32_t>(s.generation);
    }
    bool revoke(IncomingMessage& message, uint16_t error) noexcept override;
    uint32_t poll(std::span<Event> events) noexcept override;
    void push() noexcept override;
    uint32_t input(std::span<rte_mbuf*> packets, uint16_t* given_back,
                   std::span<Event> events) noexcept override;
    uint64_t next_deadline_ns() const noexcept override;
    void reset_peer(PeerId peer) noexcept override;
    void probe_address() noexcept override;
    void claim_address() noexcept override;
    bool address_is_taken(MacAddress* by) const noexcept override;
    bool quiesce() noexcept override;
    const Counters& counters() const noexcept override { return counters_; }
    BudgetShare share_of(PeerId peer) const noexcept override;

  private:
    using PeerKey = std::tuple<uint64_t, uint32_t, KeyDigest>;  // IP and port; both endpoints
    struct Neighbour {
        wire::Mac mac{};
        uint64_t learned_ns = 0;
        uint64_t requested_ns = 0;  // 0: never
        bool known = false;
    };

    // engine.cc
    PeerId find_peer(uint16_t local_endpoint, const EndpointAddress& remote, KeyDigest key) const;
    int add_peer(uint16_t local_endpoint, const EndpointAddress& remote, KeyDigest key,
                 PeerId* peer);
    void free_finished() noexcept;
    void advance_clock() noexcept {
        const uint64_t now = clock_.now_ns();
        const uint64_t passed = now - now_;
        now_ = now;
        if (passed >= clock_jump_ns_) [[unlikely]] {
            note_clock(now, passed);
        }
    }
    void note_clock(uint64_t now, uint64_t passed) noexcept;
    void report(EventType type, Session& s, int status) noexcept;
    void set_state(Session& s, SessionState state) noexcept;
    void make_ready(Session& s) noexcept {
        if (!s.ready && s.state == SessionState::kEstablished) {
            s.ready = true;
            ready_.push(s.id);
        }
    }
    void need_ack(Session& s, AckNeed need) noexcept {
        if (s.ack_need == AckNeed::kNone) {
            s.ack_need = need;
            if (!s.ack_listed) {
                s.ack_listed = true;
                acks_.push(s.id);
            }
            s.ack_turn = turn_;
        } else if (need == AckNeed::kNow) {
            s.ack_need = need;
        }
        acks_due_ = acks_due_ || need == AckNeed::kNow;
    }
    void count(Counter counter) noexcept { ++counters_[counter]; }

    // receive.cc
    TAGWIRE_HOT void receive() noexcept;
    TAGWIRE_HOT void receive_burst(rte_mbuf** packets, uint16_t received) noexcept;
    void receive_looped() noexcept;
    void note_receive_pool(const rte_mbuf* packet) noexcept;
    TAGWIRE_HOT Counter receive_frame(rte_mbuf* packet) noexcept;
    TAGWIRE_HOT Counter receive_tagwire(rte_mbuf* packet, const wire::FrameView& view) noexcept;
    Counter receive_cold(const wire::FrameView& view) noexcept;
    TAGWIRE_HOT bool take_acknowledgement(Session& s, const wire::BaseHeader& base) noexcept;

    // input.cc
    bool take_if_ours(rte_mbuf* packet) noexcept;
    void overhear(const uint8_t* frame, uint32_t length) noexcept;

    // sequenced.cc
    TAGWIRE_HOT Counter receive_sequenced(Session& s, rte_mbuf* packet,
                                          const wire::FrameView& view) noexcept;
    Counter receive_out_of_order(Session& s, uint64_t psn, rte_mbuf* packet,
                                 const wire::FrameView& view) noexcept;
    Counter contradicted(Session& s, const wire::FrameView& view) noexcept;
    uint32_t sack_words(const Session& s, wire::be64* words) const noexcept;

    // assembly.cc
    void release_credit(Session& s) noexcept;
    Counter receive_content(Session& s, rte_mbuf* packet, const wire::FrameView& view) noexcept;
    TAGWIRE_HOT Counter receive_messages(Session& s, rte_mbuf* packet,
                                         const wire::FrameView& view) noexcept;
    Counter receive_operations(Session& s, rte_mbuf* packet, const wire::FrameView& view) noexcept;
    template <bool kOperations>
    Counter line_up_records(Session& s, rte_mbuf* packet, const wire::FrameView& view) noexcept;
    IncomingMessage* new_record(Session& s, uint32_t id, const MessageHeader& header,
                                const uint8_t* payload, rte_mbuf* packet) noexcept;
    Counter receive_first(Session& s, rte_mbuf* packet, const wire::FrameView& view) noexcept;
    Counter receive_fragment(Session& s, rte_mbuf* packet, const wire::FrameView& view) noexcept;
    TAGWIRE_HOT void take_units(Session& s, uint32_t units) noexcept;
    IncomingMessage* new_message(Session& s, uint32_t id) noexcept;
    IncomingMessage* expect_message(Session& s, uint32_t id) noexcept;
    IncomingMessage* find_assembling(Session& s, uint32_t id) noexcept;
    void hold(IncomingMessage& message, rte_mbuf* packet, const uint8_t* data, uint32_t offset,
              uint32_t length) noexcept;
    void deliver(IncomingMessage& message, const uint8_t* data, uint32_t offset,
                 uint32_t length) noexcept;
    bool line_up(Session& s, IncomingMessage* message) noexcept;
    void announce(Session& s, IncomingMessage* message) noexcept;
    void announce_waiting(Session& s) noexcept;
    void assembled(Session& s, IncomingMessage& message) noexcept;

    // accept.cc
    void deliver_held(IncomingMessage& message) noexcept;
    void drop_held(IncomingMessage& message) noexcept;
    TAGWIRE_HOT void release_units(Session& s, uint32_t units) noexcept;
    void free_message(IncomingMessage* message) noexcept;
    void stop_expecting(Session& s, IncomingMessage& message) noexcept;
    void drop(IncomingMessage& message, uint16_t notes, uint16_t refusal) noexcept;
    static bool awaits_grant(const Session& s, const IncomingMessage& message) noexcept {
        return message.header.length > s.eager_window || message.is(kAnnouncesOnly);
    }
    void answer(Session& s, IncomingMessage& message, uint32_t granted, uint16_t flags) noexcept;
    void queue_grant(Session& s, IncomingMessage& message, uint32_t granted,
                     uint16_t flags) noexcept;
    void finish_receive(IncomingMessage& message, int status) noexcept;
    void list_partial(Session& s, IncomingMessage& message) noexcept;
    void unlist_partial(Session& s, IncomingMessage& message) noexcept;

    // acknowledged.cc
    TAGWIRE_HOT void acknowledged(Session& s, uint64_t ack) noexcept;
    void selectively_acknowledged(Session& s, const wire::BaseHeader& base, const uint8_t* words,
                                  uint32_t count) noexcept;
    TAGWIRE_HOT void slot_acknowledged(Session& s, uint64_t psn, TxSlot& slot) noexcept;
    TAGWIRE_HOT void after_acknowledgement(Session& s, uint32_t packets,
                                           const wire::BaseHeader& base) noexcept;
    TAGWIRE_HOT void messages_done(Session& s, SendOperation& first, uint32_t count) noexcept;
    void packet_of_message_done(Session& s, SendOperation& operation) noexcept;
    void operations_done(Session& s, SendOperation& first, uint32_t count) noexcept;
    void receive_note(Session& s, SendOperation& operation,
                      const wire::GrantHeader& grant) noexcept;
    void finish_send(Session& s, SendOperation& operation, int status) noexcept;
    void unlink_send(Session& s, SendOperation& operation) noexcept;
    void finish_markers(Session& s) noexcept;
    static bool is_done(const SendOperation& operation) noexcept {
        const auto& state = operation.state;
        return state.unacked_packets == 0 && state.sent == state.end && state.awaited == 0;
    }
    void receive_grant(Session& s, const wire::GrantHeader& grant) noexcept;
    void finish_if_done(Session& s, SendOperation& operation) noexcept;
    void leave_transfers(Session& s, SendOperation& operation) noexcept;

    // loans.cc
    void borrow(const Session& s, SendOperation& operation) noexcept;
    bool emit_lent(Session& s, TxSlot& slot, uint64_t psn) noexcept;
    bool settle_loan(const Session& s, SendOperation& operation, int status) noexcept;
    void settle_overdue() noexcept;
    void end_overdue(SendOperation& operation) noexcept;

    // loss.cc
    void detect_losses(Session& s) noexcept;
    void mark_lost(Session& s, TxSlot& slot) noexcept;
    void loss_timer(Session& s) noexcept;
    TAGWIRE_HOT void arm_loss_timer(Session& s) noexcept;
    TAGWIRE_HOT uint64_t timeout_of(const Session& s) const noexcept;

    // send.cc
    enum class Step : uint8_t { kSent, kNothing, kNoBuffer };
    [[gnu::noinline]] void watch_and_append(Session& s, SendOperation& operation) noexcept;
    void append(Session& s, SendOperation& operation) noexcept {
        if (s.newest != nullptr) {
            append_behind(s, operation);
            return;
        }
        operation.state.next = operation.state.previous = nullptr;
        s.oldest = s.newest = s.unsent = &operation;
        make_ready(s);
    }
    // The same when others are before it.
    void append_behind(Session& s, SendOperation& operation) noexcept {
        operation.state.next = nullptr;
        operation.state.previous = s.newest;
        s.newest->state.next = &operation;
        s.newest = &operation;
        if (s.unsent == nullptr) {
            s.unsent = &operation;
        }
        make_ready(s);
    }
    static void prepare(SendOperation& operation) noexcept;
    TAGWIRE_HOT void transmit() noexcept;
    TAGWIRE_HOT bool transmit_session(Session& s) noexcept;
    TAGWIRE_HOT Step transmit_next(Session& s) noexcept;
    Step transmit_lost(Session& s) noexcept;
    Step transmit_grant(Session& s) noexcept;
    TAGWIRE_HOT Step transmit_new(Session& s) noexcept;
    bool answer_before_fence(Session& s) noexcept;
    TAGWIRE_HOT Step transmit_records(Session& s) noexcept;
    Step transmit_operations(Session& s) noexcept;
    static uint32_t delivered_in_a_row(const IncomingMessage& first) noexcept;
    Step transmit_eager_part(Session& s, SendOperation& operation) noexcept;
    static bool needs_announcement(Session& s, uint32_t end) noexcept;
    Step transmit_transfer(Session& s) noexcept;
    bool transmit_fragment(Session& s, SendOperation& operation, uint32_t end) noexcept;
    bool emit_new(Session& s, const TxSlot& packet, bool lent = false) noexcept;
    void held_back(Session& s) noexcept;
    void begin_transfer(Session& s, SendOperation& operation) noexcept;
    TAGWIRE_HOT void transmit_acks() noexcept;

    // frames.cc
    TAGWIRE_HOT rte_mbuf* new_frame() noexcept;
    TAGWIRE_HOT void free_frame(rte_mbuf* packet) noexcept;
    bool take_stock() noexcept;
    bool has_tx_room() const noexcept { return batch_count_ < kTxBatch; }
    TAGWIRE_HOT void push_frame(rte_mbuf* packet) noexcept;
    TAGWIRE_HOT void push_frame(const Session& s, rte_mbuf* packet) noexcept;
    void loop_back(rte_mbuf* packet) noexcept;
    void flush_frames() noexcept;
    void fill_template(Session& s, const wire::Mac& mac) noexcept;
    TAGWIRE_HOT uint8_t* begin_frame(Session& s, rte_mbuf* packet, wire::PacketType type,
                                     uint64_t psn, uint8_t flags) noexcept;
    TAGWIRE_HOT void finish_frame(const Session& s, rte_mbuf* packet, const uint8_t* end,
                                  const rte_mbuf* lent = nullptr) noexcept;
    static uint8_t* write_fragment_header(uint8_t* at, const TxSlot& slot) noexcept;
    static uint8_t* write_extension(uint8_t* at, const TxSlot& slot) noexcept;
    bool emit(Session& s, TxSlot& slot, uint64_t psn, uint8_t flags) noexcept;
    bool send_ack(Session& s) noexcept;
    void send_control(Session& s, wire::PacketType type, uint8_t flags) noexcept;
    TAGWIRE_HOT void finish_udp(rte_mbuf* packet, uint16_t pseudo_sum,
                                const rte_mbuf* lent = nullptr) noexcept;
    wire::FrameHeader* begin_reply(rte_mbuf** packet, const wire::FrameView& to,
                                   wire::PacketType type) noexcept;
    void finish_reply(rte_mbuf* packet, uint32_t extension) noexcept;
    TAGWIRE_HOT uint16_t credit_for(Session& s) noexcept;
    void promise_credit(Session& s, uint32_t promised) noexcept;
    uint32_t timestamp() const noexcept {
        return static_cast<uint32_t>(now_ >> wire::kTimestampShift);
    }

    // handshake.cc
    void start_session(Session& s) noexcept;
    void reset_streams(Session& s) noexcept;
    void send_hello(Session& s) noexcept;
    void fill_handshake(const Session& s, wire::HandshakeHeader& handshake) const noexcept;
    Counter receive_hello(const wire::FrameView& view) noexcept;
    Counter receive_cookie(const wire::FrameView& view) noexcept;
    Counter receive_accept(const wire::FrameView& view) noexcept;
    Counter receive_refuse(const wire::FrameView& view) noexcept;
    void establish(Session& s, const wire::FrameView& view) noexcept;
    wire::RefuseReason reason_to_refuse(const wire::HandshakeHeader& hello) const noexcept;
    void send_handshake(Session& s, wire::PacketType type, uint64_t cookie) noexcept;
    void send_accept(Session& s) noexcept;
    void reply_handshake(const wire::FrameView& to, wire::PacketType type, uint64_t cookie,
                         wire::RefuseReason reason) noexcept;
    uint64_t cookie_of(const wire::FrameView& view, uint64_t generation,
                       uint64_t epoch) const noexcept;
    Session* addressed_hello(const wire::FrameView& view) noexcept;
    void hello_timer(Session& s) noexcept;

    // close.cc
    Counter receive_close(Session& s, const wire::FrameView& view) noexcept;
    Counter receive_reset(const wire::FrameView& view) noexcept;
    void send_reset(const wire::FrameView& view) noexcept;
    void end_session(Session& s, int status) noexcept;
    void end_silent(Session& s) noexcept;
    void fail_sends(Session& s, int status) noexcept;
    void fail_receives(Session& s, int status) noexcept;
    void lose_message(Session& s, IncomingMessage& message, int status) noexcept;
    void close_session(Session& s) noexcept;
    void close_timer(Session& s) noexcept;

    // retire.cc
    void may_retire(Session& s) noexcept;
    void look_for_places() noexcept;
    bool place_is_coming() noexcept;
    uint32_t places_left() const noexcept { return config_.max_peers - peers_ + free_places_; }
    bool few_places() const noexcept;
    bool is_unused(const Session& s) const noexcept;
    bool core_is_quiet() const noexcept;
    void retire_peers() noexcept;
    void retire_now() noexcept;
    void close_idle() noexcept;
    void forget_peer(Session& s) noexcept;
    PeerId take_place() noexcept;

    // arp.cc
    Counter receive_arp(const wire::FrameView& view) noexcept;
    Counter receive_ping(const wire::FrameView& view) noexcept;
    void send_arp(uint16_t operation, const wire::Mac& to, const wire::Mac& target,
                  wire::be32 target_ip, wire::be32 sender_ip) noexcept;
    void announce_address() noexcept;
    Counter receive_probe(const wire::ArpPacket& arp, bool for_us) noexcept;
    Counter note_rival(const wire::Mac& other) noexcept;
    void defend_address(const wire::Mac& other) noexcept;
    void request_mac(wire::be32 ip) noexcept;
    Neighbour& neighbour_of(wire::be32 ip) noexcept;
    const wire::Mac* find_mac(wire::be32 ip) const noexcept;
    void learn_mac(wire::be32 ip, const wire::Mac& mac) noexcept;
    void resolve_timer(Session& s) noexcept;

    // timers.cc
    void run_timers() noexcept;
    void session_timer(Session& s) noexcept;
    void ask_for_credit(Session& s) noexcept;
    void keep_alive(Session& s) noexcept;
    void watch(Session& s, bool was_busy) noexcept {
        if (!was_busy) {
            s.heard_ns = std::max(s.heard_ns, now_);
        }
        if (s.keepalive_deadline == kNever) [[unlikely]] {
            start_watch(s);
        }
    }
    void start_watch(Session& s) noexcept;
    void wake(Session& s, uint64_t time) noexcept { timers_.schedule(s.id, time); }
    // Timers behind those of the sessions.
    uint32_t overdue_timer() const noexcept { return config_.max_peers; }
    uint32_t retire_timer() const noexcept { return config_.max_peers + 1; }

    static constexpr uint16_t kBurst = 32;
    static constexpr uint32_t kRxBursts = 4;  // per poll
    static constexpr uint32_t kTxBatch = 64;
    static constexpr uint64_t kNever = TimerHeap::kNever;
    static constexpr uint64_t kReclaimNs = 100'000;  // between looks at overdue frames

    // --- hot ---
    PacketIo& io_;
    Clock& clock_;
    uint64_t now_ = 0;
    std::unique_ptr<Session[]> sessions_;
    uint32_t peers_ = 0;
    wire::DecodeContext decode_;
    EventQueue events_;
    Pool<IncomingMessage> messages_;
    Pool<Fragment> fragments_;
    MessageIndex<IncomingLinks> index_;
    MessageIndex<OutgoingLinks> outgoing_;
    ReceiveBudget budget_;
    uint64_t clock_jump_ns_ = 0;    // more than this between two turns is one
    uint32_t pending_records_ = 0;  // of events kRecords that are not done
    bool frame_retained_ = false;   // the frame that was received last is an event's
    bool receive_pool_known_ = false;
    uint32_t held_units_ = 0;
    IncomingMessage* finished_ = nullptr;  // freed once their event was seen
    PeerList ready_;
    PeerList acks_;
    uint32_t turn_ = 0;      // counts polls
    bool acks_due_ = false;  // some want to leave with this poll
    rte_mbuf* batch_[kTxBatch];
    uint32_t batch_count_ = 0;
    rte_mbuf* stock_[kBurst];
    uint32_t stock_count_ = 0;
    std::vector<rte_mbuf*> looped_;  // from one endpoint of this worker to another
    std::vector<rte_mbuf*> looped_scratch_;
    bool loop_pool_known_ = false;
    TimerHeap timers_;
    SendOperation* overdue_ = nullptr;  // ended in an error, and the NIC has frames of theirs
    Counters counters_;

    // --- cold ---
    TransportConfig config_;
    Random random_;
    SipKey cookie_key_;
    uint64_t incarnation_;
    uint32_t max_window_;
    std::map<uint16_t, std::set<KeyDigest>> endpoints_;  // with the keys that they have
    std::map<PeerKey, PeerId> peer_index_;
    std::unordered_map<uint64_t, PeerId> host_index_;  // IP and port: chain of peers
    std::unordered_map<uint32_t, Neighbour> neighbours_;
    uint64_t defended_ns_ = 0;        // when our address was claimed last
    bool probing_ = false;            // our address is not claimed yet
    std::optional<wire::Mac> rival_;  // who has our address, too
    PeerList retiring_;
    PeerId free_first_ = kNoPeer;  // places, chained by next_same_host
    PeerId free_last_ = kNoPeer;
    uint32_t free_places_ = 0;
    uint64_t retire_interval_ns_ = 0;
    uint64_t retire_after_ns_ = 0;
    uint64_t idle_look_ns_ = 0;
    uint64_t wanted_until_ns_ = 0;
    uint64_t forgotten_ = 0;  // above the generation of each peer that was forgotten
};

}  // namespace tagwire::transport
