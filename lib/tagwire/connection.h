// SPDX-License-Identifier: BSD-3-Clause
// What makes an endpoint a connected one (TW_EP_MSG): the state of its connection.
//
//   idle --connect--> connecting --ACCEPT arrived--> connected --shutdown--> ending --> ended
//   idle --accept---> accepting --ACCEPT taken-----> connected --SHUTDOWN arrived, or
//                                                                the peer is gone--> ended
//   connecting, accepting --refused, peer gone--> ended
//   connecting --shutdown--> ended          accepting --shutdown--> ending
#pragma once

#include "lib/tagwire/connections.h"
#include "lib/tagwire/event_queue.h"
#include "lib/transport/transport.h"
#include "tagwire/connect.h"

namespace tagwire {

class Endpoint;

class Connection {
  public:
    Connection(Endpoint& endpoint, tw_request* request);
    ~Connection();

    int bind(EventQueue& eq);
    int connect(const tw_address& address, const void* param, size_t length);
    int accept(const void* param, size_t length);
    int shutdown() noexcept;
    int peer_name(tw_address* address) const;
    // 0, and then the request is given back; or -EBUSY.
    int close() noexcept;

    // What an operation in this state is told.
    int refuse_send() const noexcept;
    int refuse_receive() const noexcept;
    // Messages that came before the peer's end may still be received.
    bool ended_by_peer() const { return state_ == State::kEnded && peer_ended_; }
    // The other side, once there is one.
    bool takes(transport::PeerId peer) const {
        return peer == peer_ && (state_ == State::kAccepting || state_ == State::kConnected);
    }

    transport::PeerId peer() const { return peer_; }
    bool is_busy() const;  // the peer and this side have something under way

    // False: it belongs to no connection here, and the caller refuses it.
    bool arrived(wire::ConnectionMessage type, transport::IncomingMessage& message,
                 transport::PeerId peer, uint64_t id) noexcept;
    void sent(CmSend& send, int status) noexcept;
    void peer_down(transport::PeerId peer, int status) noexcept;
    void ping() noexcept;

    tw_ep* ep() const;
    const transport::EndpointAddress& remote() const;
    const CmParam& answer() const { return answer_; }

  private:
    enum class State : uint8_t { kIdle, kConnecting, kAccepting, kConnected, kEnding, kEnded };
    static bool is_live(State state) {
        return state == State::kConnecting || state == State::kAccepting ||
               state == State::kConnected;
    }

    Connections& connections() const;
    int may_open(const char* call) const;
    void set_state(State state) noexcept;
    void attach(transport::PeerId peer) noexcept;
    void connected() noexcept;
    void failed(int error) noexcept;
    void ended(int error) noexcept;
    void push(QueuedEvent& event, tw_event type, int error, bool failed) noexcept;
    void release_request(bool accepted) noexcept;

    Endpoint& endpoint_;
    EventQueue* eq_ = nullptr;
    tw_request* request_;  // of the accepting side, until ACCEPT was taken
    State state_ = State::kIdle;
    bool peer_ended_ = false;
    uint64_t id_ = 0;
    // Held.
    transport::PeerId path_ = transport::kNoPeer;  // of a REQUEST
    transport::PeerId peer_ = transport::kNoPeer;
    CmParam answer_;  // the peer's, with ACCEPT or REJECT
    CmSend open_;     // REQUEST or ACCEPT
    CmSend end_;      // SHUTDOWN
    CmSend ping_;
    QueuedEvent open_event_;  // TW_CONNECTED or the error
    QueuedEvent end_event_;   // TW_SHUTDOWN
};

// Of the private data of a call: 0, or -EINVAL with a text.
int check_param(const void* param, size_t length) noexcept;

}  // namespace tagwire
