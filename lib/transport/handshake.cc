// SPDX-License-Identifier: BSD-3-Clause
// Hello, cookie, accept, refuse. The side that is called keeps nothing before the
// caller proved its address; both may call at the same time and get one session.
#include <rte_mbuf.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "lib/transport/frame_parts.h"
#include "lib/transport/log.h"
#include "lib/transport/psn.h"

namespace tagwire::transport {
namespace {

constexpr unsigned kEpochShift = 33;  // 8.6 s; a cookie holds for one to two of them

const wire::HandshakeHeader& handshake_of(const wire::FrameView& view) noexcept {
    return *reinterpret_cast<const wire::HandshakeHeader*>(view.payload);
}

EndpointAddress source_of(const wire::FrameView& view) noexcept {
    EndpointAddress address;
    const wire::be32 ip = view.ip->source;
    std::memcpy(address.ip.data(), &ip, sizeof(ip));
    address.udp_port = view.udp->source_port;
    address.endpoint = handshake_of(view).source_endpoint;
    return address;
}

}  // namespace

// The next poll() resolves the address and says hello.
void Engine::start_session(Session& s) noexcept {
    reset_streams(s);
    s.cookie = 0;
    s.hello_started_ns = 0;
    s.hello_interval = std::min(config_.rto_initial_ns, config_.peer_timeout_ns / 4);
    set_state(s, SessionState::kResolving);
    s.loss_deadline = 0;
    wake(s, 0);
}

void Engine::reset_streams(Session& s) noexcept {
    do {
        s.local_tag = static_cast<uint32_t>(random_.next());
    } while (s.local_tag == 0);
    s.local_first_psn =
        config_.first_psn != 0 ? config_.first_psn : static_cast<uint32_t>(random_.next());
    s.next_psn = s.una = kPsnBase + s.local_first_psn;
    s.next_message_id = s.local_first_psn;  // so that tests of one wrap see both
    s.in_flight = s.lost = 0;
    s.eager_sent = s.eager_credit = s.most_credit = 0;
    s.eager_received = s.eager_allowed = 0;
    s.receives = 0;
    s.assembling = nullptr;
    s.echo_valid = s.saw_duplicate = s.credit_low = false;
    s.remote_connection = 0;
    s.remote_tag = 0;
    std::memset(s.received, 0, sizeof(s.received));
    s.rtt.reset();
    s.newest_acked_ns = s.newest_acked_psn = 0;
    s.recovery_end = 0;
    s.reorder_steps = s.backoff = 0;
    s.tail_probed = false;
    s.up = false;
    s.quiet_ns = 0;
}

void Engine::hello_timer(Session& s) noexcept {
    if (now_ - s.hello_started_ns >= config_.peer_timeout_ns) {
        end_silent(s);
        return;
    }
    send_hello(s);
    s.loss_deadline = now_ + s.hello_interval;
    s.hello_interval =
        std::min({2 * s.hello_interval, config_.rto_max_ns, config_.peer_timeout_ns / 4});
    wake(s, s.loss_deadline);
}

void Engine::fill_handshake(const Session& s, wire::HandshakeHeader& handshake) const noexcept {
    handshake = {};
    handshake.incarnation = incarnation_;
    handshake.own_tag = s.local_tag;
    handshake.own_connection = static_cast<uint16_t>(s.id);
    handshake.source_endpoint = s.local_endpoint;
    handshake.destination_endpoint = s.remote.endpoint;
    handshake.mtu = config_.mtu;
    handshake.first_psn = s.local_first_psn;
    handshake.eager_window = static_cast<uint32_t>(config_.eager_window);
    handshake.window = static_cast<uint16_t>(wire::kPsnWindow);
    handshake.version = wire::kVersion;
    handshake.key = s.key;
}

void Engine::send_handshake(Session& s, wire::PacketType type, uint64_t cookie) noexcept {
    rte_mbuf* packet = has_tx_room() ? new_frame() : nullptr;
    if (packet == nullptr) {
        return;  // a timer tries again
    }
    uint8_t* at = begin_frame(s, packet, type, s.next_psn, 0);
    auto& handshake = *reinterpret_cast<wire::HandshakeHeader*>(at);
    fill_handshake(s, handshake);
    handshake.cookie = cookie;
    finish_frame(s, packet, at + sizeof(handshake));
    count(Counter::tx_handshakes);
    push_frame(s, packet);
}

void Engine::send_hello(Session& s) noexcept {
    send_handshake(s, wire::PacketType::kHello, s.cookie);
}

void Engine::send_accept(Session& s) noexcept {
    send_handshake(s, wire::PacketType::kAccept, 0);
}

Counter Engine::receive_hello(const wire::FrameView& view) noexcept {
    const wire::HandshakeHeader& hello = handshake_of(view);
    const wire::RefuseReason reason = reason_to_refuse(hello);
    if (reason != wire::RefuseReason::kNone) {
        reply_handshake(view, wire::PacketType::kRefuse, 0, reason);
        return reason == wire::RefuseReason::kKey ? Counter::drop_refused_key
                                                  : Counter::drop_refused;
    }
    const EndpointAddress source = source_of(view);
    PeerId id = find_peer(hello.destination_endpoint, source, hello.key);
    if (id != kNoPeer) {
        Session& s = sessions_[id];
        if (s.state >= SessionState::kEstablished && s.remote_incarnation == hello.incarnation &&
            s.remote_tag == hello.own_tag) {
            send_accept(s);  // our first one was lost, or both called
            return Counter::rx_handshakes;
        }
    }
    // The generation makes cookies of earlier sessions worthless: a hello that was
    // delayed since then opens nothing.
    const uint64_t generation = id != kNoPeer ? sessions_[id].generation : forgotten_;
    const uint64_t epoch = now_ >> kEpochShift;
    const uint64_t cookie = cookie_of(view, generation, epoch);
    if (hello.cookie != cookie &&
        (epoch == 0 || hello.cookie != cookie_of(view, generation, epoch - 1))) {
        reply_handshake(view, wire::PacketType::kCookie, cookie, wire::RefuseReason::kNone);
        return hello.cookie == 0 ? Counter::rx_handshakes : Counter::drop_cookie;
    }
    if (add_peer(hello.destination_endpoint, source, hello.key, &id) != 0) {
        if (place_is_coming()) {
            return Counter::drop_hello_early;  // it comes again, and finds a place
        }
        reply_handshake(view, wire::PacketType::kRefuse, 0, wire::RefuseReason::kSpace);
        return Counter::drop_refused;
    }
    Session& s = sessions_[id];
    if (s.state >= SessionState::kEstablished) {
        count(Counter::peer_restarts);
        end_session(s, -ECONNRESET);
    }
    if (s.state == SessionState::kClosed) {
        reset_streams(s);
    }
    establish(s, view);
    send_accept(s);
    return Counter::rx_handshakes;
}

wire::RefuseReason Engine::reason_to_refuse(const wire::HandshakeHeader& hello) const noexcept {
    if ((hello.features & ~wire::kKnownFeatures) != 0) {
        return wire::RefuseReason::kFeature;
    }
    const auto endpoint = endpoints_.find(hello.destination_endpoint);
    if (endpoint == endpoints_.end()) {
        return wire::RefuseReason::kEndpoint;
    }
    if (!endpoint->second.contains(hello.key)) {
        return wire::RefuseReason::kKey;
    }
    if (hello.mtu < wire::kMinMtu || hello.window == 0 || hello.eager_window == 0 ||
        hello.own_tag == 0) {
        return wire::RefuseReason::kParameters;
    }
    return wire::RefuseReason::kNone;
}

uint64_t Engine::cookie_of(const wire::FrameView& view, uint64_t generation,
                           uint64_t epoch) const noexcept {
    const wire::HandshakeHeader& hello = handshake_of(view);
    const uint64_t input[] = {
        uint64_t{view.ip->source} << 32 | uint64_t{view.udp->source_port} << 16 |
            hello.own_connection,
        hello.incarnation,
        uint64_t{hello.own_tag} << 32 | uint64_t{hello.source_endpoint} << 16 |
            hello.destination_endpoint,
        generation,
        epoch,
        hello.key,
    };
    const uint64_t cookie = siphash24(cookie_key_, input, sizeof(input));
    return cookie != 0 ? cookie : 1;  // 0 says "none yet"
}

// Cookie or refusal: built from the hello alone, and as long as it.
void Engine::reply_handshake(const wire::FrameView& to, wire::PacketType type, uint64_t cookie,
                             wire::RefuseReason reason) noexcept {
    rte_mbuf* packet;
    wire::FrameHeader* frame = begin_reply(&packet, to, type);
    if (frame == nullptr) {
        return;
    }
    const wire::HandshakeHeader& hello = handshake_of(to);
    frame->base.connection = hello.own_connection;
    frame->base.connection_tag = hello.own_tag;
    auto& handshake = *reinterpret_cast<wire::HandshakeHeader*>(frame + 1);
    handshake = {};
    handshake.cookie = cookie;
    handshake.source_endpoint = hello.destination_endpoint;
    handshake.destination_endpoint = hello.source_endpoint;
    handshake.reason = static_cast<uint8_t>(reason);
    handshake.version = wire::kVersion;
    count(Counter::tx_handshakes);
    finish_reply(packet, sizeof(handshake));
}

// The session whose hello this answers.
Session* Engine::addressed_hello(const wire::FrameView& view) noexcept {
    const uint32_t connection = view.base->connection;
    if (connection >= peers_) {
        return nullptr;
    }
    Session& s = sessions_[connection];
    const bool ours = s.state == SessionState::kHello && view.base->connection_tag == s.local_tag &&
                      view.ip->source.raw() == s.frame.ip.destination.raw() &&
                      view.udp->source_port.raw() == s.frame.udp.destination_port.raw();
    return ours ? &s : nullptr;
}

Counter Engine::receive_cookie(const wire::FrameView& view) noexcept {
    Session* s = addressed_hello(view);
    if (s == nullptr) {
        return Counter::drop_stale_handshake;
    }
    s->cookie = handshake_of(view).cookie;
    send_hello(*s);
    return Counter::rx_handshakes;
}

Counter Engine::receive_accept(const wire::FrameView& view) noexcept {
    Session* s = addressed_hello(view);
    const wire::HandshakeHeader& accept = handshake_of(view);
    if (s == nullptr || accept.mtu < wire::kMinMtu || accept.window == 0 ||
        accept.eager_window == 0 || accept.own_tag == 0 || accept.key != s->key) {
        return Counter::drop_stale_handshake;
    }
    establish(*s, view);
    return Counter::rx_handshakes;
}

Counter Engine::receive_refuse(const wire::FrameView& view) noexcept {
    Session* s = addressed_hello(view);
    if (s == nullptr) {
        return Counter::drop_stale_handshake;
    }
    const wire::HandshakeHeader& refusal = handshake_of(view);
    TAGWIRE_LOG(NOTICE, "%s refused us: %s (it speaks version %u, we %u)",
                format(s->remote).c_str(), name(static_cast<wire::RefuseReason>(refusal.reason)),
                refusal.version, wire::kVersion);
    const bool key = refusal.reason == static_cast<uint8_t>(wire::RefuseReason::kKey);
    end_session(*s, key ? -EKEYREJECTED : -ECONNREFUSED);
    return Counter::rx_handshakes;
}

// Hello or accept: both say the same about their sender.
void Engine::establish(Session& s, const wire::FrameView& view) noexcept {
    const wire::HandshakeHeader& peer = handshake_of(view);
    s.remote_connection = peer.own_connection;
    s.remote_tag = peer.own_tag;
    s.remote_incarnation = peer.incarnation;
    s.receive_next = s.receive_end = kPsnBase + peer.first_psn;
    s.announce_next = peer.first_psn;
    s.eager_window =
        std::min(static_cast<uint32_t>(config_.eager_window), uint32_t{peer.eager_window});
    s.eager_credit = view.base->credit;
    s.window = std::min<uint32_t>(max_window_, peer.window);
    s.payload_room = std::min(config_.mtu, uint16_t{peer.mtu}) - wire::kHeadersInMtu;
    s.record_room = s.payload_room - static_cast<uint32_t>(sizeof(wire::MessagesHeader));
    s.congestion.reset(s.window);
    if (s.slots == nullptr) {
        const uint32_t slots = std::bit_ceil(max_window_);
        s.slots = std::make_unique<TxSlot[]>(slots);
        s.slot_mask = slots - 1;
    }
    ++s.generation;
    fill_template(s, view.ethernet->source);
    set_state(s, SessionState::kEstablished);
    s.up = true;
    s.heard_ns = now_;
    s.loss_deadline = kNever;
    wake(s, s.keepalive_deadline);
    count(Counter::peers_up);
    report(EventType::kPeerUp, s, 0);
    make_ready(s);
}

}  // namespace tagwire::transport
