// SPDX-License-Identifier: BSD-3-Clause
// Listeners and connections by IP address and port. A program names its server by a socket
// address of the kernel's; Tagwire's own addresses are another world. So a kernel TCP
// connection carries the meeting (who are you, may I come in, what is your address), and stays
// open as a sign of life: when it ends, the endpoint of the other side fails. Data never
// takes this way (doc/ucp.md).
//   listener.cc     listeners, requests, accept, reject
//   connection.cc   connecting, and what comes on a connection
#pragma once

#include <sys/socket.h>
#include <ucp/api/ucp.h>

#include <cstdint>
#include <map>
#include <memory>

#include "lib/ucp/address.h"

namespace tagwire::ucp {

class Worker;
class Endpoint;
class Sockets;

// What the sides tell each other.
struct Note {
    static constexpr size_t kSize = 64;
    enum class Kind : uint8_t { kConnect, kAccept, kReject };

    Kind kind = Kind::kConnect;
    uint32_t endpoint = 0;   // the sender's
    uint64_t client_id = 0;  // of a client that gives it
    WorkerAddress address;   // of the sender's worker

    void encode(uint8_t* bytes) const;
    bool decode(const uint8_t* bytes);
};

class Connection {
  public:
    enum class State : uint8_t {
        kConnecting,  // the kernel is at it
        kCalling,     // our note is out, the answer is awaited
        kCalled,      // a client's note is awaited
        kAsking,      // the program has the client's request
        kOpen
    };

    State state = State::kConnecting;
    int fd = -1;
    uint64_t id = 0;
    Endpoint* endpoint = nullptr;
    struct ucp_listener* listener = nullptr;
    Note remote;
    bool sends_client_id = false;
    uint8_t input[Note::kSize];
    size_t input_length = 0;
};

ucs_status_t connection_addresses(const Connection& connection, sockaddr_storage* local,
                                  sockaddr_storage* remote);

class Sockets {
  public:
    explicit Sockets(Worker& worker);
    ~Sockets();

    // Looks at the sockets now and then; the number of events handled.
    unsigned poll();
    bool ready() const;  // something waits to be looked at
    int fd() const { return epoll_; }

    ucs_status_t listen(const ucp_listener_params_t& params, ucp_listener_h* listener);
    void stop(ucp_listener_h listener);
    ucs_status_t connect(const ucp_ep_params_t& params, ucp_ep_h* ep);
    ucs_status_t accept(ucp_conn_request_h request, const ucp_ep_params_t& params, ucp_ep_h* ep);
    ucs_status_t reject(ucp_conn_request_h request);
    void close(Connection& connection);

  private:
    friend struct ::ucp_listener;
    Connection* add(int fd, Connection::State state, uint32_t events);
    void watch(Connection& connection, uint32_t events);
    void handle(Connection& connection, uint32_t events);
    void connected(Connection& connection);
    void input(Connection& connection);
    void answered(Connection& connection);
    void asked(Connection& connection);
    void accept_all(struct ucp_listener& listener);
    void lost(Connection& connection, ucs_status_t status);
    Note own_note(Note::Kind kind, const Endpoint* endpoint) const;
    static bool send(const Connection& connection, const Note& note);

    Worker& worker_;
    int epoll_;
    unsigned turn_ = 0;
    uint64_t last_id_ = 0;
    std::map<uint64_t, std::unique_ptr<Connection>> connections_;
    std::map<uint64_t, std::unique_ptr<struct ::ucp_listener>> listeners_;
};

}  // namespace tagwire::ucp

struct ucp_listener {
    tagwire::ucp::Worker* worker;
    int fd;
    uint64_t id;
    ucp_listener_conn_handler_t conn_handler;
    ucp_listener_accept_handler_t accept_handler;
};

// The same object as its connection until it is decided.
struct ucp_conn_request {
    tagwire::ucp::Worker* worker;
    tagwire::ucp::Connection* connection;
};
