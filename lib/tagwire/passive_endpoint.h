// SPDX-License-Identifier: BSD-3-Clause
// A passive endpoint: it listens, and keeps the requests that are neither accepted nor
// rejected.
#pragma once

#include <memory>

#include "lib/tagwire/connections.h"
#include "lib/tagwire/event_queue.h"
#include "lib/transport/transport.h"
#include "tagwire/connect.h"

namespace tagwire {

class PassiveEndpoint {
  public:
    PassiveEndpoint(Worker& worker, uint16_t number, const tw_pep_attr& attr);
    ~PassiveEndpoint();

    int listen();
    int close() noexcept;  // the object can be deleted after 0
    int reject(tw_request* request, const void* param, size_t length) noexcept;
    tw_request* find_waiting(tw_request* request) noexcept;  // or nullptr

    // False: the caller refuses it.
    bool requested(transport::IncomingMessage& message, transport::PeerId peer,
                   uint64_t id) noexcept;
    void peer_down(transport::PeerId peer) noexcept;

    Worker& worker() const { return worker_; }
    uint16_t number() const { return number_; }
    void* context() const { return context_; }
    transport::KeyDigest key() const { return key_; }
    transport::EndpointAddress address() const;

  private:
    Worker& worker_;
    uint16_t number_;
    bool listening_ = false;
    bool open_ = false;  // to the transport
    uint32_t backlog_;
    EventQueue& eq_;
    void* context_;
    transport::KeyDigest key_;
    std::unique_ptr<tw_request[]> requests_;
};

}  // namespace tagwire

// One of a passive endpoint's `backlog` places for requests.
struct tw_request {
    enum class State : uint8_t {
        kFree,
        kWaiting,    // for an endpoint, or a reject
        kTaken,      // an endpoint was opened for it
        kRejecting,  // the reject is on its way
    };

    const tagwire::transport::EndpointAddress& client() const noexcept;
    void reject() noexcept;  // with reply.param; frees it when that has gone
    void reject_sent() noexcept { release(); }
    void release() noexcept;

    tw_pep* pep = nullptr;
    State state = State::kFree;
    bool dead = false;                                              // the peer is gone
    tagwire::transport::PeerId peer = tagwire::transport::kNoPeer;  // held unless it is free
    uint64_t id = 0;
    tagwire::CmParam param;
    tagwire::CmSend reply;
    tagwire::QueuedEvent event;
};

struct tw_pep final : tagwire::PassiveEndpoint {
    using PassiveEndpoint::PassiveEndpoint;
};
