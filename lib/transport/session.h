// SPDX-License-Identifier: BSD-3-Clause
// One session: everything between one local endpoint and one remote endpoint.
// Its index is the PeerId and the connection id that the other side addresses.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>

#include "lib/transport/congestion.h"
#include "lib/transport/message.h"
#include "lib/transport/rtt.h"
#include "lib/transport/timer_heap.h"
#include "lib/transport/transport.h"
#include "lib/wire/packet.h"

namespace tagwire::transport {

inline uint64_t host_key(const EndpointAddress& address) noexcept {
    uint32_t ip;
    std::memcpy(&ip, address.ip.data(), sizeof(ip));
    return uint64_t{ip} << 16 | address.udp_port;
}

enum class SessionState : uint8_t {
    kClosed,     // no session; the next send opens one
    kResolving,  // waiting for the peer's MAC
    kHello,      // our hello is out
    kEstablished,
    kClosing,  // our close is out
};
const char* name(SessionState state) noexcept;

enum class SlotState : uint8_t { kFree, kInFlight, kLost, kAcked };

// A packet that was sent and is not acknowledged: all that is needed to build it again.
struct TxSlot {
    SendOperation* operation;  // the message, or the first of `count`
    uint64_t sent_ns;
    uint32_t message_id;
    uint32_t offset;  // of the fragment; of a grant: how far
    uint16_t length;  // of the fragment; of a grant: the status
    uint16_t count;   // messages in the frame
    wire::PacketType type;
    SlotState state;
    bool resent;
    uint8_t grant_flags;
};
static_assert(sizeof(TxSlot) == 32);

enum class AckNeed : uint8_t { kNone, kSoon, kNow };

struct alignas(64) Session {
    // --- touched per packet sent ---
    wire::FrameHeader frame;  // template of every frame to this peer
    uint64_t next_psn;
    uint64_t una;  // oldest unacknowledged PSN
    std::unique_ptr<TxSlot[]> slots;
    uint32_t slot_mask;
    uint32_t window;      // PSNs that may be unacknowledged
    uint32_t in_flight;   // sent, neither acknowledged nor lost
    uint32_t lost;        // to be sent again
    uint32_t eager_sent;  // units, in total
    uint32_t eager_credit;
    SendOperation* oldest;  // in sending order
    SendOperation* newest;
    SendOperation* unsent;     // the first with nothing or not all of its eager part sent
    SendOperation* transfers;  // those with granted bytes to send
    SendOperation* transfers_last;
    uint32_t next_message_id;
    uint32_t payload_room;  // bytes after the base header
    uint32_t record_room;   // bytes of records in a frame
    uint32_t eager_window;  // agreed
    uint16_t ip_sum;        // checksum of the IP header without its length
    uint16_t pseudo_sum;    // of the UDP pseudo header without its length
    Congestion congestion;
    bool ready;          // in the list of sessions with something to send
    bool transfer_turn;  // transfers and new messages take turns
    bool grant_turn;     // so do grants and all that
    AckNeed ack_need;
    bool ack_listed;
    uint32_t ack_turn;  // the poll in which ack_need arose
    bool saw_duplicate;
    SessionState state;
    bool echo_valid;
    bool loopback;  // the peer is an endpoint of this worker: its frames stay here

    // --- touched per packet received ---
    uint32_t local_tag;
    uint32_t echo;          // timestamp to send back
    uint64_t receive_next;  // every PSN before it is here
    uint64_t receive_end;   // one past the highest PSN that is here
    uint64_t heard_ns;
    uint32_t announce_next;        // id of the message to announce next
    uint32_t eager_received;       // units, in total
    uint32_t eager_allowed;        // units advertised
    uint32_t committed;            // units held or promised
    uint32_t held_peak;            // units held, at most so far
    IncomingMessage* unannounced;  // by id
    IncomingMessage* unannounced_last;
    IncomingMessage* assembling;  // the one that got a fragment last
    IncomingMessage* grants;      // to be sent
    IncomingMessage* grants_last;
    uint32_t receives;                    // accepted and incomplete
    uint64_t received[wire::kSackWords];  // bit psn % kPsnWindow

    // --- touched per acknowledgement ---
    RttEstimator rtt;
    uint64_t newest_acked_ns;  // when the newest acknowledged packet was sent
    uint64_t newest_acked_psn;
    bool newest_acked_resent;
    uint64_t recovery_end;   // losses before this PSN belong to one loss event
    uint32_t reorder_steps;  // widens the reordering threshold
    uint32_t backoff;
    bool tail_probed;
    bool credit_low;         // the peer got less credit than it could use
    uint64_t loss_deadline;  // tail probe or timeout
    uint64_t reorder_deadline;
    uint64_t persist_deadline;  // held back by credit: ask again
    uint64_t persist_interval;
    uint64_t keepalive_deadline;

    // --- cold ---
    PeerId id;
    IncomingMessage* partial;  // announced, incomplete
    EndpointAddress remote;
    uint16_t local_endpoint;
    uint16_t remote_connection;
    uint32_t remote_tag;
    KeyDigest key;
    uint64_t remote_incarnation;
    uint64_t generation;  // grows with each session that is established with this peer
    uint64_t cookie;
    uint64_t hello_started_ns;
    uint64_t hello_interval;
    uint32_t local_first_psn;
    uint32_t close_tries;
    PeerId next_same_host;  // chain of peers behind one IP address and port
    bool up;                // kPeerUp was reported
    bool retiring;          // in the list of those that may be forgotten
    uint64_t quiet_ns;      // then nothing was left of it; 0: something is
    uint32_t users;         // that hold its PeerId; its own session does not count
    uint32_t most_credit;   // that a long message found left

    TxSlot& slot(uint64_t psn) noexcept { return slots[psn & slot_mask]; }
    // Units held by messages that nobody accepted.
    uint32_t held() const noexcept { return committed - (eager_allowed - eager_received); }
    // Something may leave, unless a window or the credit forbids it.
    bool has_to_send() const noexcept {
        return unsent != nullptr || lost != 0 || grants != nullptr || transfers != nullptr;
    }
    bool sending() const noexcept {
        return oldest != nullptr || next_psn != una || grants != nullptr;
    }
    // Something is owed by the other side.
    bool busy() const noexcept { return sending() || receives != 0 || unannounced != nullptr; }
    bool is_received(uint64_t psn) const noexcept {
        const uint64_t bit = psn % wire::kPsnWindow;
        return (received[bit / 64] >> (bit % 64) & 1) != 0;
    }
};

}  // namespace tagwire::transport
