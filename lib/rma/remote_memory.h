// SPDX-License-Identifier: BSD-3-Clause
// Remote memory of one worker. One class, a source file per part:
//   origin.cc   puts and gets are posted       target.cc  messages arrive, in order
//   atomic.cc   atomics are posted             put.cc     a put is placed
//   flush.cc    flushes                        serve.cc   gets and atomics are answered
//   ended.cc    an operation ends              close.cc   a region or an endpoint closes
//
// Order: what arrives from one peer takes effect in the order in which it was posted,
// with one exception: puts of more than kOrdered bytes do not wait for each other.
#pragma once

#include <random>
#include <span>
#include <vector>

#include "lib/rma/region_table.h"
#include "lib/rma/requests.h"
#include "lib/tagwire/kind_handler.h"
#include "lib/tagwire/worker.h"
#include "tagwire/rma.h"

namespace tagwire {

// A call, in the form that all puts and gets share.
struct RmaCall {
    const iovec* iov;
    size_t count;
    tw_addr peer;
    const tw_rma_iov* remote;
    size_t remote_count;
    uint64_t data;
    void* context;
    uint64_t flags;
};

struct AtomicCall {
    const tw_ioc* operands;
    size_t operand_count;
    const tw_ioc* compares;
    size_t compare_count;
    const tw_ioc* results;
    size_t result_count;
    tw_addr peer;
    const tw_rma_ioc* remote;
    size_t remote_count;
    tw_datatype datatype;
    tw_op op;
    void* context;
    uint64_t flags;
    wire::AtomicForm form;
};

struct RmaCounters {
    uint64_t puts = 0;  // of peers, that ended well
    uint64_t gets = 0;
    uint64_t atomics = 0;
    uint64_t refused_key = 0;
    uint64_t refused_access = 0;
    uint64_t refused_range = 0;
    uint64_t refused_alignment = 0;
    uint64_t refused_operation = 0;
    uint64_t refused_closed = 0;  // puts that a region's end cut short
    uint64_t malformed = 0;
    uint64_t waited = 0;   // messages that waited for an earlier one of their peer
    uint64_t stalled = 0;  // times that there was no room for a completion or a reply
    uint64_t stale_replies = 0;
    uint64_t errors = 0;  // of own operations
};

class RemoteMemory final : public KindHandler {
  public:
    explicit RemoteMemory(Worker& worker);
    static RemoteMemory& of(Worker& worker) {
        return static_cast<RemoteMemory&>(worker.remote_memory());
    }

    // Regions.
    RegionTable& regions() { return regions_; }
    uint64_t new_key();
    int close(Region& region) noexcept;

    // Operations. The flags of a call are complete: default flags are in them.
    int put(Endpoint& endpoint, const RmaCall& call) noexcept;
    int get(Endpoint& endpoint, const RmaCall& call) noexcept;
    int atomic(Endpoint& endpoint, const AtomicCall& call) noexcept;
    int flush(Endpoint& endpoint, tw_addr peer, void* context) noexcept;

    void arrived(Endpoint& endpoint, transport::IncomingMessage& message) noexcept override;
    void lost(transport::IncomingMessage& message, int status) noexcept override;
    void receive_done(transport::ReceiveOperation& operation,
                      const transport::IncomingMessage& message, int status) noexcept override;
    void send_done(transport::SendOperation& operation, int status) noexcept override;
    void closing(Endpoint& endpoint) noexcept override;
    void resume() noexcept override;
    bool can_resume() const noexcept override;
    int stats(tw_stat* stats, int count) const override;

  private:
    using IncomingMessage = transport::IncomingMessage;
    using PeerId = transport::PeerId;
    struct PeerQueue {
        IncomingMessage* first = nullptr;  // waiting, linked by their user's slot
        IncomingMessage* last = nullptr;
        uint32_t under_way = 0;  // accepted and incomplete
        bool stalled = false;
    };
    struct Local {  // the caller's buffers, taken up part by part
        iovec iov[TW_IOV_LIMIT];
        uint32_t count;
        uint32_t at = 0;
        uint64_t length;

        uint32_t take(uint64_t length, iovec* to);
    };

    // origin.cc
    static int check(const RmaCall& call, Local& local) noexcept;
    static size_t requests_for(size_t parts) { return parts == 1 ? 1 : parts + 1; }
    int begin(Endpoint& endpoint, tw_addr address, size_t requests, PeerId* peer,
              RmaRequest** request) noexcept;
    int begin(Endpoint& endpoint, size_t requests, RmaRequest** request) noexcept;
    void release(RmaRequest& request) noexcept;
    RmaRequest& part_of(RmaRequest& request) noexcept;
    int start(RmaRequest& request, PeerId peer) noexcept;
    int abandon(RmaRequest& part, int error) noexcept;
    static void describe(RmaRequest& request, void* context, uint64_t flags,
                         uint64_t completion) noexcept;
    uint64_t await_reply(RmaRequest& request) noexcept;
    void complete_at_once(RmaRequest& request, uint64_t flags) noexcept;

    // atomic.cc
    struct AtomicBuffers {
        Local operands;
        Local compares;
        Local results;
        uint64_t length;
        uint64_t operand_length;
        uint64_t compare_length;
    };
    static int take_ioc(const tw_ioc* ioc, size_t count, size_t size, uint64_t wanted,
                        Local& local) noexcept;
    static int check(const AtomicCall& call, AtomicBuffers& buffers) noexcept;
    uint8_t* keep_operands(RmaRequest& request, const AtomicBuffers& buffers) noexcept;

    // ended.cc
    void complete(RmaRequest& request, int status) noexcept;
    void write(RmaRequest& request, int status) noexcept;
    static void count(const RmaRequest& request, int status) noexcept;
    void answer(RmaRequest& request, int status) noexcept;
    void reply_arrived(IncomingMessage& message) noexcept;

    // target.cc
    PeerQueue& queue_of(PeerId peer);
    static bool may_start(const PeerQueue& queue, const transport::MessageHeader& header) noexcept;
    bool serve(Endpoint& endpoint, PeerQueue& queue, IncomingMessage& message) noexcept;
    void advance(PeerId peer) noexcept;
    void stall(PeerId peer) noexcept;
    void one_ended(PeerId peer) noexcept;
    void refuse_message(IncomingMessage& message, int error) noexcept;
    void count_refusal(int error) noexcept;
    int find_region(uint64_t key, uint64_t address, uint64_t length, uint64_t access,
                    Region** region) noexcept;

    // put.cc
    bool serve_put(Endpoint& endpoint, PeerQueue& queue, IncomingMessage& message) noexcept;
    void placed(Endpoint& endpoint, Region* region, const transport::MessageHeader& header,
                PeerId peer, uint64_t data) noexcept;
    static void link(Placement& placement) noexcept;
    static void unlink(Placement& placement) noexcept;
    void put_done(Placement& placement, const IncomingMessage& message, int status) noexcept;

    // serve.cc
    bool serve_get(Endpoint& endpoint, IncomingMessage& message) noexcept;
    bool serve_atomic(Endpoint& endpoint, PeerQueue& queue, IncomingMessage& message) noexcept;
    void execute(Reply& reply, const transport::MessageHeader& header, PeerId peer) noexcept;
    int execute(Reply& reply, const transport::MessageHeader& header,
                const wire::AtomicRequest& request, Region** region) noexcept;
    void atomic_done(Reply& reply, const IncomingMessage& message, int status) noexcept;
    static void count_read(Endpoint& endpoint, Region* region) noexcept;
    void refuse_request(Reply& reply, int error) noexcept;
    void send_reply(Reply& reply, PeerId peer) noexcept;
    void reply_sent(Reply& reply, int status) noexcept;
    static void link(Reply& reply) noexcept;
    static void unlink(Reply& reply) noexcept;

    // close.cc
    static bool rescue(Reply& reply) noexcept;

    Worker& worker_;
    Pool<RmaRequest> requests_;
    Pool<Operands> operands_;
    Pool<Placement> placements_;
    Pool<Reply> replies_;
    RegionTable regions_;
    std::vector<PeerQueue> queues_;  // by PeerId
    std::vector<PeerId> stalled_;
    std::vector<PeerId> resuming_;
    RmaCounters counters_;
    std::random_device random_;
    uint32_t salt_;  // of the ids of requests: those of another life are others
};

}  // namespace tagwire
