// SPDX-License-Identifier: BSD-3-Clause
// What a client and a server say to each other: control messages are JSON on
// reserved tags; the tests' own messages use data tags of the same session.
//
//   tag   63..56 kind   55..40 session   39..0 sequence number
//
//   hello    client to server, no session yet: version, address, session, test, parameters
//   welcome  server to client (or "refused" with a reason)
//   ...      the test's own messages
//   bye      client to server, answered with bye
//   abort    either side, at any time, with a reason
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>

#include "fabric.h"

namespace tagwire::perf {

using Json = nlohmann::ordered_json;

inline constexpr int kProtocolVersion = 1;

enum class TagKind : uint8_t {
    kHello = 'H',
    kControl = 'C',
    kPing = 'P',
    kPong = 'Q',
    kData = 'D'
};

constexpr uint64_t make_tag(TagKind kind, uint16_t session, uint64_t sequence = 0) {
    return uint64_t{static_cast<uint8_t>(kind)} << 56 | uint64_t{session} << 40 |
           (sequence & ((uint64_t{1} << 40) - 1));
}

inline constexpr size_t kControlBytes = size_t{64} << 10;

class Session {
  public:
    // Client: says hello to `server` (text for messages) and waits for its welcome.
    static Session connect(Fabric& fabric, const std::string& server_text, const tw_address& server,
                           const std::string& test, Json parameters);

    Session(Fabric& fabric, tw_addr peer, std::string peer_text, uint16_t id);

    Fabric& fabric() noexcept { return *fabric_; }
    tw_addr peer() const noexcept { return peer_; }
    const std::string& peer_text() const noexcept { return peer_text_; }
    uint64_t tag(TagKind kind, uint64_t sequence = 0) const noexcept {
        return make_tag(kind, id_, sequence);
    }

    void send(const Json& message);
    // The next control message, which has to be of this type.
    Json expect(const std::string& type) { return expect_any({type}); }
    Json expect_any(std::initializer_list<std::string> types);
    // Tells the peer why this side ends; does not wait for it and never throws.
    void abort(const std::string& reason) noexcept;

    // Posting to the peer, and waiting until `op` completed. `bytes` that are under
    // way stretch the time that the peer may be silent.
    void send_data(Operation& op, const void* data, size_t length, uint64_t tag) {
        fabric_->send(op, data, length, peer_, tag);
    }
    void receive_data(Operation& op, void* data, size_t length, uint64_t tag) {
        fabric_->receive(op, data, length, peer_, tag);
    }
    void wait(Operation& op, size_t bytes, const char* what);
    // Throws if `op` failed.
    void require_success(const Operation& op, const char* what) const;
    // One turn; looks for an abort of the peer now and then. Throws when nothing
    // completed for too long: `since` is the caller's memory of that.
    struct Silence {
        uint64_t completions = 0;
        uint32_t turns = 0;
        Clock::time_point last = Clock::now();
    };
    void turn(Silence& silence, size_t bytes, const char* what);

  private:
    void post_control();
    Json take_control();
    void throw_if_aborted();

    Fabric* fabric_;
    tw_addr peer_;
    std::string peer_text_;
    uint16_t id_;
    Operation* control_;
    std::byte* control_buffer_;
    Operation* outgoing_;
    std::byte* outgoing_buffer_;
};

}  // namespace tagwire::perf
