// SPDX-License-Identifier: BSD-3-Clause
// A UCP worker: a Tagwire worker with two endpoints (tags and channel), one completion
// queue for both, and everything of UCP behind it. One class, a source file per part:
//   worker.cc    create, destroy, address, query     progress.cc  completions go where they belong
//   wakeup.cc    sleeping                            flush.cc     ucp_worker_flush
#pragma once

#include <ucp/api/ucp.h>

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lib/ucp/address.h"
#include "lib/ucp/channel.h"
#include "lib/ucp/context.h"
#include "lib/ucp/endpoint.h"
#include "lib/ucp/lock.h"
#include "lib/ucp/request.h"
#include "tagwire/tagwire.h"

namespace tagwire::ucp {

// The end of an operation in the core.
struct Done {
    void* context;
    uint64_t flags;
    size_t length;
    uint64_t data;
    uint64_t tag;
    size_t message_length;  // of the sender
    int error;
};

struct AmHandler {
    ucp_am_recv_callback_t callback = nullptr;
    ucp_am_callback_t old_callback = nullptr;
    void* argument = nullptr;
    uint32_t flags = 0;
};

class Sockets;

// Holds the worker for a call.
class WorkerGuard {
  public:
    explicit WorkerGuard(Worker& worker);
    ~WorkerGuard() { lock_.unlock(); }
    WorkerGuard(const WorkerGuard&) = delete;
    WorkerGuard& operator=(const WorkerGuard&) = delete;

  private:
    WorkerLock& lock_;
};

class Worker {
  public:
    using Guard = WorkerGuard;

    Worker(Context& context, const ucp_worker_params_t& params);
    ~Worker();
    ucs_status_t open();

    unsigned progress();
    // By the keeper: the core's part of a turn, when the program takes too few.
    struct Kept {
        bool found;   // there was something to do
        bool sleeps;  // the program waits until there is
    };
    Kept keep_alive(unsigned enough, std::chrono::steady_clock::time_point now);
    // Makes progress until the request is complete, and releases it.
    ucs_status_t wait(ucs_status_ptr_t request);
    // The end of an operation that was posted just now, if it has ended. Others keep their turn.
    bool collect(const void* context, Done* done);
    bool in_progress() const { return in_progress_; }
    // Before each send that has no request. A program may send any number of them without a
    // turn: the network gets a batch at a time, and does not wait until nothing more fits.
    void begin_short_send() {
        if (++short_sends_ > kShortSends) [[unlikely]] {
            push();
        }
    }

    Context& context() { return context_; }
    RequestPool& requests() { return requests_; }
    Channel& channel() { return channel_; }
    tw_worker* core() const { return core_; }
    tw_ep* tag_endpoint() const { return tag_endpoint_; }
    tw_ep* channel_endpoint() const { return channel_endpoint_; }
    const WorkerAddress& address() const { return address_; }
    const std::string& name() const { return name_; }
    ucs_thread_mode_t thread_mode() const { return thread_mode_; }
    size_t alignment() const { return alignment_; }
    uint64_t client_id() const { return client_id_; }

    // The peer with this address; nullptr when the core cannot take it (status).
    Peer* peer(const WorkerAddress& address, ucs_status_t* status);
    void peer_failed(Peer& peer, ucs_status_t status);
    // Sends peers a word, if an endpoint wants to hear of their failure. Without an answer it is
    // one.
    void ask_peers();
    // The program has endpoints to the peer that it does not close.
    bool has_others(const Peer& peer) const;
    // What is under way with the peer ends now, cancelled.
    void abandon(Peer& peer);

    // Endpoints by number. Numbers are not given out twice.
    uint32_t add(Endpoint& endpoint);
    void remove(Endpoint& endpoint);
    Endpoint* endpoint(uint32_t number) const;
    const std::unordered_map<uint32_t, Endpoint*>& endpoints() const { return endpoints_; }
    void has_pending(Endpoint& endpoint) { pending_.push_back(&endpoint); }
    void has_failed(Endpoint& endpoint) { failed_.push_back(&endpoint); }

    // Tag receives that the core could not take yet.
    void keep_receive(Request& request) { receives_.push_back(&request); }
    bool receives_wait() const { return !receives_.empty(); }
    bool forget_receive(Request& request);

    // Flushes and closes that wait for operations to end.
    void add_flush(Request& request) { flushes_.push_back(&request); }

    AmHandler& am_handler(uint16_t id);
    const AmHandler* find_am_handler(uint16_t id) const {
        return id < am_handlers_.size() ? &am_handlers_[id] : nullptr;
    }
    std::unordered_map<uint64_t, Request*>& offers() { return offers_; }
    uint64_t fence() const { return fence_; }
    void begin_fence() { ++fence_; }
    uint64_t next_offer() { return ++last_offer_; }
    std::unordered_set<Request*>& fetches() { return fetches_; }

    std::deque<Endpoint*>& readable() { return readable_; }  // with bytes of a stream
    Sockets* sockets();                                      // made with the first use
    tw_context& peek_context() { return peek_context_; }

    ucs_status_t wait_fd(int* fd);
    ucs_status_t arm();
    void notify();

    void print(FILE* stream) const;

  private:
    friend class WorkerGuard;
    static constexpr unsigned kShortSends = 32;
    void push();
    bool read(Done* done);
    bool read_error(Done* done, ssize_t count);
    unsigned dispatch();
    void end_operation(const Done& done);
    void end_short_send(Epoch& epoch, const Done& done);
    void end_request(Request& request, const Done& done);
    void retry();
    void end_flushes();
    void report_failures();
    ucs_status_t open_core();
    tw_ep* open_endpoint(uint16_t* number);
    void close_core();

    Context& context_;
    WorkerLock lock_;
    bool in_progress_ = false;
    unsigned short_sends_ = 0;  // since the last turn
    unsigned turns_ = 0;
    unsigned turns_seen_ = 0;  // by the keeper
    std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
    tw_worker* core_ = nullptr;
    tw_cq* queue_ = nullptr;
    std::array<tw_cq_entry, 16> entries_;  // read from the queue, of which the first `read_` count
    unsigned read_ = 0;
    unsigned next_read_ = 0;
    tw_ep* tag_endpoint_ = nullptr;
    tw_ep* channel_endpoint_ = nullptr;
    std::deque<Done> deferred_;  // read from the queue before their turn
    RequestPool requests_;
    std::deque<Request*> receives_;
    std::vector<Endpoint*> pending_;
    std::vector<Endpoint*> failed_;
    std::vector<Request*> flushes_;
    std::deque<Endpoint*> readable_;
    Channel channel_;
    std::vector<AmHandler> am_handlers_;
    std::unordered_map<uint64_t, Request*> offers_;  // sent, not decided
    uint64_t last_offer_ = 0;
    uint64_t fence_ = 0;
    std::unordered_set<Request*> fetches_;                       // receives of offered data
    std::unordered_map<uint64_t, std::unique_ptr<Peer>> peers_;  // by uid
    std::unordered_map<uint32_t, Endpoint*> endpoints_;
    uint32_t last_endpoint_ = 0;
    // Cold from here on.
    tw_av* addresses_ = nullptr;
    WorkerAddress address_;
    std::string name_;
    ucs_thread_mode_t thread_mode_ = UCS_THREAD_MODE_SINGLE;
    size_t alignment_ = 64;
    uint64_t client_id_ = 0;
    uint64_t flags_ = 0;
    int user_event_fd_ = -1;
    int event_fd_ = -1;
    int signal_fd_ = -1;
    bool core_wakes_ = false;          // the core's own descriptor is in the set
    std::atomic<bool> sleeps_{false};  // armed, and no turn since
    void* user_data_ = nullptr;
    std::unique_ptr<Sockets> sockets_;
    tw_context peek_context_{};
};

inline WorkerGuard::WorkerGuard(Worker& worker) : lock_(worker.lock_) {
    lock_.lock();
}

inline bool Endpoint::is_reached() const {
    return peer_ != nullptr && peer_->reached;
}

inline bool Endpoint::direct() const {
    return pending_ == nullptr && is_reached() && failure_ == UCS_OK;
}

inline Epoch& Endpoint::short_send() {
    worker_.begin_short_send();
    ++epochs_.back().outstanding;
    return epochs_.back();
}

}  // namespace tagwire::ucp

struct ucp_worker final : tagwire::ucp::Worker {
    using Worker::Worker;
};
