// SPDX-License-Identifier: BSD-3-Clause
// The transport as the core sees it: reliable, ordered announcement of messages
// between endpoints. One Transport per worker, used by one thread.
//
// Sending:   open_peer() -> send(SendOperation) -> event kSendDone.
// Receiving: event kMessage announces each message once, in the sender's order
//            per peer, as soon as its first fragment is here. The core then calls
//            accept() (now or at any later time) or discard(). Payload that came
//            before accept() is held in the received packets; a message larger
//            than the eager window sends the rest only after accept().
// Restart:   a peer that restarted or died gives kPeerDown, after each of its
//            outstanding operations ended with exactly one event.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lib/transport/address.h"
#include "lib/transport/counters.h"
#include "lib/transport/seams.h"
#include "lib/wire/packet.h"

struct rte_mbuf;
struct rte_mbuf_ext_shared_info;
struct rte_mempool;

namespace tagwire::transport {

class Lender;

// Index of a remote endpoint as seen from one local endpoint. Stable over the peer's restarts.
// While somebody holds it, or something of the peer is under way or held, it stays; afterwards it
// may become another peer's, which a kPeerUp tells before anything comes from that.
using PeerId = uint32_t;
inline constexpr PeerId kNoPeer = UINT32_MAX;

// Of what a user may send, and of that with the head of an operation before it.
inline constexpr uint32_t kMaxIov = 9;
inline constexpr uint64_t kMaxMessageSize = (uint64_t{1} << 32) - (uint64_t{1} << 16) + 64;
static_assert(kMaxMessageSize < UINT32_MAX);  // which stands for an unknown length

// A message of at most this length shares a frame with others in every session.
inline constexpr uint32_t kShortMessage = 256;

// A digest of an authorization key. Peers with different keys are different peers.
using KeyDigest = uint64_t;
inline constexpr KeyDigest kNoKey = 0;

using wire::MessageKind;

// What travels with a message besides its payload.
struct MessageHeader {
    uint64_t tag = 0;
    uint64_t data = 0;    // remote CQ data, when kHasData
    uint64_t length = 0;  // whole payload, bytes
    MessageKind kind = MessageKind::kTagged;
    uint8_t flags = 0;
};
enum MessageFlags : uint8_t {
    kHasData = 1u << 0,            // `data` is valid
    kWantsMatchNote = 1u << 1,     // kSendDone only after a receive took it, or it was discarded
    kWantsDeliveryNote = 1u << 2,  // kSendDone only after the other core processed it
    kFence = 1u << 3,        // sends only: waits until every earlier message to the peer is done
    kWantsAnswer = 1u << 4,  // sends only: not done before answered()
};

// A send in progress. Owned by the caller and left untouched from send() to its
// kSendDone; the payload must stay valid as long (it is read again when resent).
struct SendOperation {
    MessageHeader header;
    iovec iov[kMaxIov];
    uint32_t iov_count = 0;
    void* user = nullptr;  // the caller's

    struct TransportState {   // the transport's
        SendOperation* next;  // in sending order, from the oldest that is not done
        SendOperation* previous;
        uint32_t message_id;
        uint32_t record_size;  // as a record, with its header; UINT32_MAX when it cannot be one
        bool plain;            // short, tagged, without data and in one piece
        bool indexed;          // a grant may come for it
        bool transfers;        // in the list of those with granted bytes to send
        bool marker;           // no message: done when everything before it is
        // From here on: of those that are not plain.
        bool ended;        // its kSendDone is on the way, or was
        bool announces;    // all but its first packet waits for a grant
        bool asked_loan;   // of its memory, once
        uint8_t awaited;   // wire::GrantFlags that must come before it is done, or kAnswer
        uint16_t refusal;  // errno with which the receiver refused it
        PeerId peer;
        uint32_t sent;     // bytes handed to the wire at least once
        uint32_t granted;  // bytes that the receiver allows
        uint32_t end;      // bytes to send in all; less than the length if the receiver wants less
        uint32_t unacked_packets;
        union {
            SendOperation* next_transfer;
            uint64_t overdue_ns;  // ended: it waits for the NIC until then
        };
        SendOperation* next_indexed;
        rte_mbuf_ext_shared_info* loan;  // the payload leaves from where it is
    } state;
    static constexpr uint8_t kAnswer = 1u << 7;
};

// A receive in progress. Owned by the caller from accept() to its kReceiveDone.
struct ReceiveOperation {
    iovec iov[kMaxIov];
    uint32_t iov_count = 0;
    uint64_t capacity =
        0;  // sum of iov; payload past it is dropped (truncation is for the core to report)
    void* user = nullptr;
};

// A message that was announced and not yet finished. Owned by the transport;
// valid from kMessage until kReceiveDone, discard() or kMessageLost.
struct IncomingMessage;
const MessageHeader& header_of(const IncomingMessage& message) noexcept;
PeerId peer_of(const IncomingMessage& message) noexcept;
void*& user_of(IncomingMessage& message) noexcept;          // a slot for the core
bool is_complete(const IncomingMessage& message) noexcept;  // every byte is here

enum class EventType : uint8_t {
    kMessage,      // message
    kRecords,      // records, count: whole small messages, only with groups_records
    kMessageLost,  // message: its peer died before it was complete and accepted; forget it
    kSendDone,     // send, status; count: with that, so many less one behind it by state.next
    kReceiveDone,  // receive, status; header_of(*message) still valid during this event batch
    kPeerUp,       // peer: session established (also for a peer that called us)
    kPeerDown,     // peer, status: the reason
};

// The small messages of one frame, where they lie in it (records.h reads them). The core ends
// each kRecords with records_done(), and before that makes a message of its own of each record
// that it does not process at once, with hold_record().
struct RecordFrame {
    const uint8_t* first = nullptr;
    rte_mbuf* packet = nullptr;
    uint32_t first_id = 0;
};

// status: 0, or a negative errno: -ECONNRESET the peer restarted, -ETIMEDOUT the
// peer is silent, -ECONNREFUSED the peer refused (version, endpoint), -EKEYREJECTED
// it does not have our key, -EHOSTUNREACH no ARP answer, -ECANCELED closed here.
// kSendDone also: what the other core gave to refuse(). kPeerDown only: 0, the peer closed in order
// (operations that this cut short end with -ECONNRESET).
struct Event {
    EventType type{};
    int32_t status = 0;
    PeerId peer = kNoPeer;
    uint32_t count = 1;
    IncomingMessage* message = nullptr;
    SendOperation* send = nullptr;
    ReceiveOperation* receive = nullptr;
    RecordFrame records;
};

struct TransportConfig {
    EndpointAddress local;  // family, ip, udp_port; `endpoint` unused
    MacAddress mac;
    uint16_t mtu = 1500;                 // bytes of the IP packet; agreed with each peer
    rte_mempool* packet_pool = nullptr;  // frames to send; data room >= mtu + 14 + headroom
    // Messages of one buffer and so many bytes leave from their memory when the lender has it: in
    // frames of two segments. nullptr: all are copied.
    Lender* lender = nullptr;
    uint64_t zero_copy_bytes = 64 * 1024;
    uint32_t max_peers = 1024;
    uint32_t max_incoming_messages =
        65536;                          // announced or on the way, all peers; at least 2 per peer
    uint64_t eager_window = 64 * 1024;  // bytes of one message sent before it is accepted
    uint64_t held_bytes_limit = 64ull << 20;  // received packets held for unaccepted messages, all
                                              // peers; never more than a third of the receive pool
    uint32_t send_window_packets = 256;       // unacknowledged packets per peer
    uint64_t rto_min_ns = 1'000'000;
    uint64_t rto_initial_ns = 20'000'000;
    uint64_t rto_max_ns = 1'000'000'000;
    uint64_t peer_timeout_ns =
        10'000'000'000;  // silence after which a peer with work outstanding is dead
    uint64_t arp_timeout_ns = 3'000'000'000;
    uint64_t incarnation = 0;  // 64 random bits; 0: taken from the system
    uint64_t random_seed = 0;  // connection tags and cookie key; 0: taken from the system
    uint32_t first_psn = 0;    // 0: random. Tests start near the wrap.
    // Before our IP address is claimed it is asked whether another station has it: claim_address()
    // ends that.
    bool probes_address = false;
    bool answer_ping = true;        // ICMP echo, for a port without a kernel netdev
    bool nic_udp_checksum = false;  // the port computes IPv4 and UDP checksums of what it sends
    bool groups_records = false;    // small messages are announced by frames, kRecords
};

// What a peer has of the receive budget, in units: one for each small message that waits for a
// receive, and one for each packet of a longer one.
struct BudgetShare {
    uint32_t held = 0;  // by messages that wait
    uint32_t held_peak = 0;
    uint32_t promised = 0;  // that it may still send
    uint32_t reserved = 0;  // its own, whatever the others hold
};

class Transport {
  public:
    // nullptr on bad configuration; `error` then holds the text with its remedy.
    static std::unique_ptr<Transport> create(const TransportConfig& config, PacketIo& io,
                                             Clock& clock, std::string* error);
    virtual ~Transport() = default;  // operations still outstanding are forgotten without an event

    // Local endpoints take part in the address. Peers are taken that call with `key` or with
    // one that was added. -EEXIST, -EBUSY (still has peers with work).
    virtual int open_endpoint(uint16_t endpoint, KeyDigest key) = 0;
    virtual void add_key(uint16_t endpoint, KeyDigest key) = 0;
    virtual int close_endpoint(uint16_t endpoint) = 0;

    // The peer's index, made on first use (no traffic until the first send).
    // -ENOSPC when max_peers are in use, -EINVAL for a bad address; else 0, and the caller holds
    // the index until release_peer(). Not while the events of a poll() are being handled.
    virtual int open_peer(uint16_t local_endpoint, const EndpointAddress& remote, KeyDigest key,
                          PeerId* peer) = 0;
    // Holds are counted.
    virtual void hold_peer(PeerId peer) noexcept = 0;
    virtual void release_peer(PeerId peer) noexcept = 0;
    virtual const EndpointAddress& address_of(PeerId peer) const = 0;
    virtual uint16_t local_endpoint_of(PeerId peer) const = 0;
    virtual KeyDigest key_of(PeerId peer) const = 0;
    // Ends the session at once: what is outstanding ends with -ECANCELED here, and with
    // -ECONNRESET there. The next send begins a new one.
    virtual void reset_peer(PeerId peer) noexcept = 0;
    // Something is outstanding in either direction.
    virtual bool is_busy(PeerId peer) const = 0;
    // It has a session: what is sent leaves with the next poll().
    virtual bool is_up(PeerId peer) const = 0;

    // Queues a message. 0, or -EAGAIN (progress first), -EMSGSIZE, -EINVAL: no effect then.
    virtual int send(PeerId peer, SendOperation& operation) noexcept = 0;

    // The same for a tagged message of 1 to kShortMessage bytes in one piece, without flags. A
    // peer's index is taken as it is.
    virtual int send_short(PeerId peer, SendOperation& operation) noexcept = 0;

    // A send with kWantsAnswer got what it was sent for. 1 = done already: no event follows.
    // 0 = kSendDone will follow.
    virtual int answered(SendOperation& operation) noexcept = 0;

    // No message: kSendDone comes once everything sent to the peer before it is done. 1 = nothing
    // is outstanding: no event follows. Only `user` and `header.kind` of the operation are used.
    virtual int mark(PeerId peer, SendOperation& operation) noexcept = 0;

    // Gives an announced message its buffer. 1 = done already: no event follows, the
    // message is gone. 0 = kReceiveDone will follow. -ECONNRESET: the message was lost
    // meanwhile; the operation is not taken, and its kMessageLost is on the way.
    virtual int accept(IncomingMessage& message, ReceiveOperation& operation) noexcept = 0;

    // Record `index` of an event kRecords becomes a message that was announced.
    virtual IncomingMessage& hold_record(const Event& event, uint32_t index,
                                         const MessageHeader& header,
                                         const uint8_t* payload) noexcept = 0;
    // The end of an event kRecords, all but `held` of whose records are done with.
    virtual void records_done(const Event& event, uint32_t held) noexcept = 0;
    // The core is through with the first `taken`, and made messages of `held` of them. The event is
    // then of those behind, of which `next` is the first.
    virtual void records_taken(Event& event, uint32_t taken, uint32_t held,
                               const uint8_t* next) noexcept = 0;

    // Says that the core has processed the message and has no receive for it yet, which is
    // what a sender that wants a delivery note waits for. accept() or discard() follow.
    virtual void keep(IncomingMessage& message) noexcept = 0;

    // Drops an announced message; its remaining payload is not fetched. Counts as matched.
    virtual void discard(IncomingMessage& message) noexcept = 0;

    // As discard, and a sender that wants a note gets `error` (a positive errno) as status.
    virtual void refuse(IncomingMessage& message, uint16_t error) noexcept = 0;

    // The session that it came by still stands: an answer would reach its sender, and not the
    // next life of it. For the kinds of remote memory.
    virtual bool is_current(const IncomingMessage& message) const noexcept = 0;

    // Takes an accepted message's buffer back: nothing more is placed there. True: as after
    // refuse(), and no kReceiveDone follows. False: it was placed already, and its kReceiveDone is
    // on the way.
    virtual bool revoke(IncomingMessage& message, uint16_t error) noexcept = 0;

    // One turn: timers, a burst of received packets, acknowledgements, a burst of
    // sending. Returns the number of events written.
    virtual uint32_t poll(std::span<Event> events) noexcept = 0;
    // What was handed over since then leaves now, not with the next poll().
    virtual void push() noexcept = 0;

    // Frames that somebody else received: those that are ours are taken, as poll() takes what it
    // receives; the others are moved to the front, in order and untouched. Returns the number of
    // events written; when that is all of `events`, more may wait for another call.
    virtual uint32_t input(std::span<rte_mbuf*> packets, uint16_t* given_back,
                           std::span<Event> events) noexcept = 0;

    // The next time at which poll() has a timer to run; UINT64_MAX for none. The
    // simulator advances its clock to it.
    virtual uint64_t next_deadline_ns() const noexcept = 0;

    // With probes_address (RFC 5227), after the first poll(): asks once more; and the end of it,
    // when our address is told to everybody, and who asks for it is answered.
    virtual void probe_address() noexcept = 0;
    virtual void claim_address() noexcept = 0;
    // Another station has said that our IP address is its own.
    virtual bool address_is_taken(MacAddress* by) const noexcept = 0;

    // Closes every session in order: what was queued is sent and acknowledged:
    // poll() goes on meanwhile. True once nothing is outstanding.
    virtual bool quiesce() noexcept = 0;

    virtual const Counters& counters() const noexcept = 0;
    virtual BudgetShare share_of(PeerId peer) const noexcept = 0;
};

}  // namespace tagwire::transport
