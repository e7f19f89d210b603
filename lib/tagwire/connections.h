// SPDX-License-Identifier: BSD-3-Clause
// Connection management of one worker: its messages go from here to the endpoint or the
// passive endpoint that they are for, and idle connections are asked whether the peer lives, as
// are the peers that posted receives wait for (TW_OPT_WATCH_SOURCES).
//
//   connecting side                       listening side
//   connection.h   tw_connect  -REQUEST-> passive_endpoint.h   (event TW_CONNREQ)
//                              <-REJECT-                       tw_reject
//                              <-ACCEPT-  connection.h         tw_accept, on an endpoint of its own
//                              -SHUTDOWN-><-SHUTDOWN-          tw_shutdown
//
// A REQUEST travels on the session of the two endpoints' numbers, as does a REJECT; from ACCEPT
// on everything is on the session with the accepting endpoint.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "lib/tagwire/kind_handler.h"
#include "lib/transport/random.h"
#include "lib/wire/connection.h"
#include "tagwire/connect.h"

namespace tagwire {

class Connection;
class PassiveEndpoint;
class Worker;

// Bytes of the application.
struct CmParam {
    size_t length = 0;
    uint8_t bytes[TW_CM_PARAM_MAX] = {};
};

// A message that this side sends, of a connection, a request, or neither. It stays until the
// transport is done with it.
struct CmSend {
    Connection* connection = nullptr;
    tw_request* request = nullptr;
    bool busy = false;
    CmParam param;
    transport::SendOperation operation;
};

struct CmCounters {
    uint64_t requests = 0;   // that arrived and wait, or waited, for an answer
    uint64_t refused = 0;    // that found nobody listening or the backlog full
    uint64_t malformed = 0;  // messages that make no sense
    uint64_t stale = 0;      // messages for a connection that is not, or no longer, there
    uint64_t pings = 0;      // sent
};

class Connections final : public KindHandler {
  public:
    Connections(Worker& worker, uint64_t seed, uint64_t peer_timeout_ns)
        : worker_(worker), random_(seed), ping_interval_ns_(peer_timeout_ns / 4) {}

    // 0, or what the transport says.
    int send(CmSend& send, transport::PeerId peer, wire::ConnectionMessage type, uint64_t id,
             bool answered) noexcept;
    // The payload of a message, which is gone afterwards. False: its sender is.
    bool take(transport::IncomingMessage& message, CmParam& param) noexcept;
    uint64_t new_id() noexcept { return random_.next(); }

    void arrived(transport::IncomingMessage& message) noexcept;
    void peer_down(transport::PeerId peer, int status) noexcept;
    void peer_up(transport::PeerId peer);
    void turn() noexcept;  // while there are connections, or endpoints that watch
    uint64_t deadline() const noexcept { return live_ != 0 ? next_ping_ns_ : UINT64_MAX; }
    bool has_live() const noexcept { return live_ != 0; }
    void live_began() noexcept;
    void live_ended() noexcept { --live_; }
    void watch_began() noexcept {
        live_began();
        ++watching_;
    }
    void watch_ended() noexcept {
        live_ended();
        --watching_;
    }
    void shutdown_all() noexcept;

    PassiveEndpoint* passive(uint16_t number) const noexcept;
    tw_request* find_waiting(tw_request* request) const noexcept;  // or nullptr
    void add(PassiveEndpoint& pep) { passive_.push_back(&pep); }
    void remove(PassiveEndpoint& pep) noexcept { std::erase(passive_, &pep); }

    void arrived(Endpoint&, transport::IncomingMessage& message) noexcept override {
        arrived(message);
    }
    void lost(transport::IncomingMessage&, int) noexcept override {}
    void receive_done(transport::ReceiveOperation&, const transport::IncomingMessage&,
                      int) noexcept override {}
    void send_done(transport::SendOperation& operation, int status) noexcept override;
    int stats(tw_stat* stats, int count) const override;

    CmCounters counters;

  private:
    void ping_source(transport::PeerId peer);

    Worker& worker_;
    transport::Random random_;
    uint64_t ping_interval_ns_;
    uint64_t next_ping_ns_ = UINT64_MAX;
    uint32_t live_ = 0;      // connections, and endpoints that watch
    uint32_t watching_ = 0;  // of these, the endpoints
    // Who was heard in a peer's place, and has not said good-bye since.
    std::vector<std::optional<transport::EndpointAddress>> heard_;
    std::unordered_map<transport::PeerId, CmSend> pings_;  // to sources of posted receives
    std::vector<PassiveEndpoint*> passive_;
};

}  // namespace tagwire
