// SPDX-License-Identifier: BSD-3-Clause
// A UCP endpoint: a way to one remote worker, with its own error handler, its own flush and
// its own stream. Sessions belong to the workers below, so making one sends nothing.
//   endpoint.cc  create, modify, close, query     stream.cc  the stream
//   flush.cc     flush
#pragma once

#include <sys/socket.h>
#include <ucp/api/ucp.h>

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "lib/ucp/request.h"

namespace tagwire::ucp {

struct Peer;
struct Block;
class Connection;

// Bytes that no receive took yet.
struct StreamChunk {
    Block* block;  // NULL: `bytes` holds them
    std::unique_ptr<char[]> bytes;
    size_t offset;
    size_t length;

    char* data() const;
};

// Operations of an endpoint between two flushes.
struct Epoch : Operation {
    Endpoint* endpoint;
    uint64_t number;
    uint32_t outstanding;
};

class Endpoint {
  public:
    explicit Endpoint(Worker& worker);
    ~Endpoint();

    // The remote worker, once it is known. `sequence`: see Peer::endpoints.
    void connect_by_address(Peer& peer, uint32_t sequence);
    void connect_by_number(Peer& peer, uint32_t number);
    void take_params(const ucp_ep_params_t& params);

    // Counts the request for flushes and hands it to the core, now or when that can take it.
    // UCS_INPROGRESS, UCS_OK when it is complete, or an error: then nothing has happened.
    ucs_status_t submit(Request& request);
    // The same for the rest of an operation that is counted already.
    ucs_status_t hand_over(Request& request);
    // Nothing waits before a message that leaves without a request.
    bool direct() const;
    bool is_reached() const;  // the peer is known, and has answered
    bool retry();             // false: something still waits

    void operation_began(Request& request);
    void operation_ended(Request& request);
    // Of short sends, which have no request: the context that they are sent with.
    Epoch& short_send();
    void short_send_failed() { --epochs_.back().outstanding; }  // it was not sent after all
    void short_send_ended(Epoch& epoch);
    // The first error of operations without a request since the last flush.
    void note_error(ucs_status_t status) { error_ = error_ == UCS_OK ? status : error_; }
    ucs_status_t take_error() { return std::exchange(error_, UCS_OK); }
    // What was begun until now; flushed() is true when all of it has ended.
    uint64_t begin_flush();
    bool flushed(uint64_t epoch) const { return epochs_.front().number > epoch; }
    bool idle() const { return epochs_.size() == 1 && epochs_.front().outstanding == 0; }

    // Everything outstanding ends, and the program is told if it asked for it.
    void fail(ucs_status_t status);
    void report_failure();
    void cancel_pending(ucs_status_t status);
    ucs_status_t failure() const { return failure_; }

    // ucp_ep_close_nb and its like.
    ucs_status_ptr_t close(const Call& call, bool force);

    // Stream (stream.cc).
    bool stream_arrived(Block& block, size_t length);
    ucs_status_ptr_t stream_receive(void* buffer, size_t count, size_t* length, const Call& call);
    ucs_status_ptr_t stream_take(size_t* length);
    void stream_release(void* data);
    bool has_bytes() const { return !chunks_.empty(); }
    bool listed() const { return listed_; }
    void unlist() { listed_ = false; }

    Worker& worker() const { return worker_; }
    Peer* peer() const { return peer_; }
    uint32_t number() const { return number_; }
    uint32_t destination() const { return destination_; }
    void* user_data() const { return user_data_; }
    bool is_internal() const { return internal_; }
    void set_internal(bool internal) { internal_ = internal; }
    bool has_peer_errors() const { return error_mode_ == UCP_ERR_HANDLING_MODE_PEER; }
    const std::string& name() const { return name_; }
    Connection* connection() const { return connection_; }
    void set_connection(Connection* connection) { connection_ = connection; }
    bool closing() const { return closing_; }
    bool is_closed_by_force() const { return closed_by_force_; }
    bool is_forced() const { return closing_ && failure_ == UCS_ERR_CANCELED; }
    bool out_of_patience();
    void detach();  // from its peer and its connection, before it goes

  private:
    void drop_epochs();
    bool stream_feed(Request& request);
    size_t stream_available(size_t element) const;
    void stream_consume(size_t length);
    void fail_receives(ucs_status_t status);

    Worker& worker_;
    Peer* peer_ = nullptr;
    uint32_t number_;
    uint32_t destination_ = 0;
    uint32_t sequence_ = 0;
    bool by_address_ = false;
    bool internal_ = false;  // made for a remote endpoint; the program has none yet
    bool closing_ = false;
    bool closed_by_force_ = false;
    bool reported_ = false;
    bool queued_ = false;  // in the worker's list of endpoints with pending requests
    std::chrono::steady_clock::time_point patience_{};
    ucs_status_t failure_ = UCS_OK;
    ucs_status_t error_ = UCS_OK;
    Request* pending_ = nullptr;
    Request* pending_last_ = nullptr;
    std::deque<Epoch> epochs_;  // the last one is open
    uint32_t requests_ = 0;     // operations under way that have one
    // The stream.
    std::deque<StreamChunk> chunks_;
    std::deque<Request*> stream_receives_;
    std::unordered_map<void*, StreamChunk> lent_;
    bool listed_ = false;
    // Cold from here on.
    ucp_err_handling_mode_t error_mode_ = UCP_ERR_HANDLING_MODE_NONE;
    ucp_err_handler_t error_handler_{};
    void* user_data_ = nullptr;
    std::string name_;
    Connection* connection_ = nullptr;
};

// What newer headers let ucp_ep_query ask (newer.cc).
void query_newer(const Endpoint& endpoint, ucp_ep_attr_t* attr);

}  // namespace tagwire::ucp

struct ucp_ep final : tagwire::ucp::Endpoint {
    using Endpoint::Endpoint;
};
