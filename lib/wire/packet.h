// SPDX-License-Identifier: BSD-3-Clause
// The Tagwire packet: base header and the extensions of each type.
// doc/protocol.md is normative; scripts/wireshark/tagwire.lua follows it too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/wire/byte_order.h"
#include "lib/wire/headers.h"

namespace tagwire::wire {

inline constexpr uint8_t kVersion = 1;

// Sequenced types consume a PSN, are acknowledged and resent. The others are not.
enum class PacketType : uint8_t {
    kInvalid = 0,
    kMessages = 1,     // sequenced: one or more whole small messages
    kFirst = 2,        // sequenced: first fragment of a longer message
    kFragment = 3,     // sequenced: a later fragment
    kGrant = 4,        // sequenced: how far a message may be sent
    kAck = 5,          // acknowledgement, with a bitmap when there are gaps
    kProbe = 6,        // asks for an acknowledgement
    kHello = 7,        // handshake
    kCookie = 8,       // handshake
    kAccept = 9,       // handshake
    kRefuse = 10,      // handshake
    kClose = 11,       // orderly end of a session
    kReset = 12,       // the packet you sent has no session here
    kOperations = 13,  // sequenced: one or more whole small messages for remote memory
};
inline constexpr uint8_t kPacketTypes = 14;

constexpr bool is_sequenced(PacketType type) noexcept {
    return (type >= PacketType::kMessages && type <= PacketType::kGrant) ||
           type == PacketType::kOperations;
}

enum PacketFlags : uint8_t {
    kFlagEcho = 1u << 0,       // `timestamp` is the receiver's echo of one it got
    kFlagAckNow = 1u << 1,     // please acknowledge at once
    kFlagDuplicate = 1u << 2,  // a duplicate arrived: the resend was spurious
    kFlagReply = 1u << 3,      // kClose: the answer to one
};
inline constexpr uint8_t kKnownFlags = 0x0f;

struct BaseHeader {
    uint8_t version_type;  // version in the high four bits
    uint8_t flags;
    be16 connection;      // index at the receiver
    be32 connection_tag;  // random, chosen by the receiver for this session
    be32 psn;
    be32 ack;        // every PSN before this one has arrived
    be32 timestamp;  // sender's clock, units of 16 ns
    be16 credit;     // eager units allowed in total, modulo 2^16

    PacketType type() const noexcept { return static_cast<PacketType>(version_type & 0x0f); }
    uint8_t version() const noexcept { return version_type >> 4; }
    static constexpr uint8_t make_version_type(PacketType type) noexcept {
        return static_cast<uint8_t>(kVersion << 4 | static_cast<uint8_t>(type));
    }
};
static_assert(sizeof(BaseHeader) == 22);
static_assert(offsetof(BaseHeader, psn) == 8 && offsetof(BaseHeader, credit) == 20);
inline constexpr unsigned kTimestampShift = 4;

// Every frame that we send starts with exactly one cache line of headers.
struct FrameHeader {
    EthernetHeader ethernet;
    Ipv4Header ip;
    UdpHeader udp;
    BaseHeader base;
};
static_assert(sizeof(FrameHeader) == 64);

// kMessages: this, then records until the end of the packet. Record i is the
// message first_message_id + i.
struct MessagesHeader {
    be32 first_message_id;
};
static_assert(sizeof(MessagesHeader) == 4);

// A record: these two bytes, the tag (8, if tagged), the data (8, if it has
// data), the payload.
inline constexpr uint16_t kRecordTagged = 0x8000;
inline constexpr uint16_t kRecordHasData = 0x4000;
inline constexpr uint16_t kRecordLengthMask = 0x3fff;
inline constexpr uint32_t kMaxRecordPayload = kRecordLengthMask;

constexpr uint32_t record_header_size(uint16_t bits) noexcept {
    return 2u + ((bits & kRecordTagged) != 0 ? 8u : 0u) + ((bits & kRecordHasData) != 0 ? 8u : 0u);
}

// What a message is for. Tagged and untagged ones are matched with receives; those of
// the other kinds go to the layer that speaks them, and `tag` and `data` are its own.
enum class MessageKind : uint8_t {
    kTagged = 0,
    kUntagged = 1,
    kPut = 2,
    kGetRequest = 3,
    kGetReply = 4,
    kAtomicRequest = 5,
    kAtomicReply = 6,
    kConnection = 7,
};
inline constexpr uint8_t kMessageKinds = 8;
constexpr bool is_remote_memory(MessageKind kind) noexcept {
    return kind >= MessageKind::kPut && kind <= MessageKind::kAtomicReply;
}

// kOperations: MessagesHeader, then records until the end of the packet, as with kMessages.
// The payload follows. A put wants a delivery note.
inline constexpr uint32_t kOperationKindShift = 13;
inline constexpr uint16_t kOperationHasData = 0x1000;
inline constexpr uint16_t kOperationLengthMask = 0x0fff;
struct OperationHeader {
    be16 bits;  // the kind in the high three bits, has data, payload length
    be64 tag;
    be64 data;
};
static_assert(sizeof(OperationHeader) == 18);

// kFirst: the kind in the low four bits, then these.
enum FirstFlags : uint16_t {
    kFirstHasData = 1u << 4,
    kFirstWantsMatchNote = 1u << 5,     // the sender is to be told when it was matched
    kFirstWantsDeliveryNote = 1u << 6,  // ... when the destination endpoint has processed it
    kFirstAnnounces = 1u << 7,          // nothing more of it comes before a grant
};
inline constexpr uint16_t kFirstKindMask = 0x0f;
inline constexpr uint16_t kFirstKnownFlags = kFirstKindMask | kFirstHasData | kFirstWantsMatchNote |
                                             kFirstWantsDeliveryNote | kFirstAnnounces;

struct FirstHeader {  // kFirst; payload from offset 0 follows
    be32 message_id;
    be32 length;
    be16 flags;
    be64 tag;
    be64 data;
};
static_assert(sizeof(FirstHeader) == 26);

struct FragmentHeader {  // kFragment; payload follows
    be32 message_id;
    be32 offset;
};
static_assert(sizeof(FragmentHeader) == 8);

enum GrantFlags : uint16_t {
    kGrantFinal = 1u << 0,      // nothing past `granted` is wanted, ever
    kGrantMatched = 1u << 1,    // a receive took it, or the application discarded it
    kGrantDelivered = 1u << 2,  // the destination endpoint has processed it
    kGrantRefused = 1u << 3,    // it took no effect, for the reason in `status`
    kGrantRange = 1u << 4,      // with kGrantDelivered alone: for `granted` messages from this on
};
inline constexpr uint16_t kGrantKnownFlags = 0x1f;
inline constexpr uint32_t kMaxGrantRange = 4096;

struct GrantHeader {  // kGrant
    be32 message_id;
    be32 granted;  // payload bytes, from offset 0; with kGrantRange: messages
    be16 status;   // with kGrantRefused: a positive errno of Linux; else 0
    be16 flags;
};
static_assert(sizeof(GrantHeader) == 12);

// kAck: zero to kSackWords words follow. Bit i of word w: PSN ack + 1 + 64 w + i is here.
inline constexpr uint32_t kSackWords = 8;
inline constexpr uint32_t kPsnWindow = kSackWords * 64;

enum class RefuseReason : uint8_t {
    kNone = 0,
    kVersion = 1,     // this protocol version is not spoken
    kFeature = 2,     // a required feature is not known
    kEndpoint = 3,    // no such endpoint
    kSpace = 4,       // no room for another peer
    kParameters = 5,  // MTU, windows or tag are unusable
    kKey = 6,         // the endpoint does not have this authorization key
};
inline constexpr uint8_t kRefuseReasons = 7;

// Feature bits that this version requires or knows: none yet.
inline constexpr uint32_t kKnownFeatures = 0;

// kHello, kCookie, kAccept, kRefuse. All have one size: no reply is larger than
// its request. This and the first byte stay the same in every later version.
struct HandshakeHeader {
    be64 cookie;
    be64 incarnation;
    be32 own_tag;         // what the other side puts into connection_tag
    be16 own_connection;  // and into connection
    be16 source_endpoint;
    be16 destination_endpoint;
    be16 mtu;
    be32 first_psn;
    be32 features;      // required ones
    be32 eager_window;  // bytes of one message that may come before a grant
    be16 window;        // PSNs past the cumulative ack that are kept track of
    uint8_t reason;     // kRefuse
    uint8_t version;    // the sender's highest
    be32 reserved;
    be64 key;  // digest of the authorization key; 0: none
};
static_assert(sizeof(HandshakeHeader) == 56);

inline constexpr uint32_t kMinMtu = 576;  // RFC 791: every host takes this
inline constexpr uint32_t kHeadersInMtu = sizeof(FrameHeader) - sizeof(EthernetHeader);

}  // namespace tagwire::wire
