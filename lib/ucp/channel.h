// SPDX-License-Identifier: BSD-3-Clause
// The channel: short messages between two workers, in order, for everything in UCP that is
// not a tagged message (doc/ucp.md). It has a Tagwire endpoint of its own, so that the tags
// of programs keep all their bits.
//
// A message's tag says what it is (Meta), its 64 bits of data which channel it belongs to
// and its place there. Bit 63 of the tag tells the channel's messages from the data of
// offers, whose receives are posted by exact tag.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "lib/ucp/address.h"
#include "lib/ucp/request.h"

namespace tagwire::ucp {

struct Done;
struct Peer;

struct Meta {
    enum class Kind : uint8_t {
        kHello,    // the sender's WorkerAddress: first on each channel
        kMessage,  // an active message: data, then header
        kOffer,    // the same, whose data waits: header, then Offer
        kGrant,    // the receiver of an offer has posted a receive for its data: Verdict
        kVerdict,  // ... or will not take it: Verdict
        kRevoke,   // the sender of an offer does not send its data: Verdict
        kStream,   // bytes of a stream
        kAlive,    // nothing: an answer of its transport is what the sender waits for
        kCount
    };
    Kind kind = Kind::kHello;
    uint32_t destination = 0;  // an endpoint there, see Endpoint::destination
    uint16_t header_length = 0;
    uint8_t flags = 0;
    uint16_t id = 0;  // of the active message

    uint64_t encode() const;
    static Meta decode(uint64_t tag);
};
inline constexpr uint64_t kDataBit = uint64_t{1} << 63;  // tags of the data of offers
inline constexpr uint8_t kWantsReply = 1;                // Meta::flags
inline constexpr uint8_t kWholeOnly =
    2;  // the offer is our own affair: deliver data to the handler

struct Offer {
    uint64_t id;
    uint64_t length;
};
struct Verdict {
    uint64_t id;
    int64_t status;
};

inline constexpr size_t kMaxHeader = 4096;
inline constexpr size_t kMaxEager = 8192;

// Memory that a message came into. Programs hold a pointer to what follows it.
struct Block : Operation {
    enum class Use : uint8_t { kPosted, kMessage, kOffer };
    Use use = Use::kPosted;
    bool in_handler = false;
    bool taken = false;  // ucp_am_recv_data_nbx or ucp_am_data_release was called
    Worker* worker = nullptr;
    Peer* peer = nullptr;
    uint64_t offer = 0;
    size_t length = 0;  // of the data
    void* memory = nullptr;
    Request* request = nullptr;  // that fetches an offer into the block
    size_t slot = 0;             // among the channel's posted ones

    void* data() { return this + 1; }
    static Block& of(void* data) { return static_cast<Block*>(data)[-1]; }
};
static_assert(sizeof(Block) % 16 == 0);

Block* new_block(Worker& worker, size_t capacity);
void delete_block(Block* block);

// A remote worker.
struct Peer : Operation {
    Peer() { kind = Kind::kPeer; }

    Worker* worker = nullptr;
    WorkerAddress address;
    tw_addr tag_address = TW_ADDR_UNSPEC;
    tw_addr channel_address = TW_ADDR_UNSPEC;
    uint64_t channel = 0;  // random, 48 bits; another one after a failure
    uint16_t next = 0;     // place of the next message
    bool greeted = false;
    // It has answered once. Before that, a send is not complete when it only was copied: a program
    // that ends right after its first message must not end before that left.
    bool reached = false;
    // Endpoints made by address, in the order of making: the n-th here and the n-th there are one
    // connection.
    std::map<uint32_t, Endpoint*> endpoints;
    uint64_t fence = 0;  // the last one that operations with the peer observed
    uint32_t next_endpoint = 0;

    struct Control {
        Meta meta;
        std::vector<uint8_t> body;
    };
    std::deque<Control> controls;  // that could not leave yet
};

class Channel {
  public:
    explicit Channel(Worker& worker) : worker_(worker) {}
    ~Channel();

    ucs_status_t open();
    // A message of a request: one of its parts more is under way. 0, or a negative errno.
    int send(Request& request, const Meta& meta, const iovec* pieces, size_t count);
    // A short one (TW_INJECT_SIZE), whose memory is free on return.
    int send_short(Endpoint& endpoint, const Meta& meta, const iovec* pieces, size_t count);
    // Our own notes: kept until they can leave.
    void note(Peer& peer, const Meta& meta, const void* body, size_t length);
    void retry();
    bool waits() const { return !waiting_.empty(); }

    void arrived(Block& block, const Done& done);
    // The session with the peer is lost: what comes later begins anew.
    static void reset(Peer& peer);

  private:
    struct Held {
        Block* block;
        uint64_t tag;
        size_t length;
    };
    struct Inbound {
        Peer* peer = nullptr;
        uint16_t next = 0;
        std::map<uint16_t, Held> held;  // that came before their turn
    };

    int send(Peer& peer, const Meta& meta, const iovec* pieces, size_t count, Operation* context,
             uint64_t flags);
    int post(Block& block);
    void add(Block* block);
    void take(Block& block);
    void deliver(Inbound& inbound, const Held& held);
    bool hello(Inbound& inbound, const Held& held);

    Worker& worker_;
    std::unordered_map<uint64_t, Inbound> inbound_;
    std::vector<Block*> blocks_;    // ours, in the core or on the way to it
    std::vector<Block*> unposted_;  // that the core did not take yet
    std::vector<Peer*> waiting_;    // with controls
};

}  // namespace tagwire::ucp
