// SPDX-License-Identifier: BSD-3-Clause
// The end of a session: closed here or there, reset, or given up. Whatever was
// outstanding ends with exactly one event, then kPeerDown.
#include <rte_mbuf.h>

#include <cerrno>
#include <cinttypes>

#include "lib/transport/engine.h"
#include "lib/transport/log.h"

namespace tagwire::transport {
namespace {

constexpr uint32_t kCloseTries = 4;

}  // namespace

bool Engine::quiesce() noexcept {
    bool done = batch_count_ == 0 && overdue_ == nullptr;
    for (PeerId id = 0; id < peers_; ++id) {
        Session& s = sessions_[id];
        if (s.state != SessionState::kClosed && s.state != SessionState::kClosing && !s.busy()) {
            close_session(s);
        }
        done = done && s.state == SessionState::kClosed;
    }
    return done;
}

// The peer is told once. If that is lost, its next packet finds no session and is answered so.
void Engine::reset_peer(PeerId peer) noexcept {
    Session& s = sessions_[peer];
    if (s.state == SessionState::kEstablished) {
        send_control(s, wire::PacketType::kClose, 0);
    }
    if (s.state != SessionState::kClosed) {
        end_session(s, -ECANCELED);
    }
}

void Engine::close_session(Session& s) noexcept {
    if (s.state != SessionState::kEstablished) {
        end_session(s, -ECANCELED);
        return;
    }
    set_state(s, SessionState::kClosing);
    s.reorder_deadline = s.persist_deadline = s.keepalive_deadline = kNever;
    s.close_tries = 0;
    s.loss_deadline = now_;
    wake(s, now_);
}

void Engine::close_timer(Session& s) noexcept {
    if (s.close_tries == kCloseTries) {
        end_session(s, -ECANCELED);
        return;
    }
    send_control(s, wire::PacketType::kClose, 0);
    s.loss_deadline = now_ + (timeout_of(s) << s.close_tries);
    ++s.close_tries;
    wake(s, s.loss_deadline);
}

Counter Engine::receive_close(Session& s, const wire::FrameView& view) noexcept {
    const bool closing = s.state == SessionState::kClosing;
    if ((view.base->flags & wire::kFlagReply) == 0) {
        send_control(s, wire::PacketType::kClose, wire::kFlagReply);
        end_session(s, closing ? -ECANCELED : 0);
    } else if (closing) {
        end_session(s, -ECANCELED);
    }
    return Counter::rx_closes;
}

// A packet came for a session that is not here. The answer repeats what only its
// sender can know: the connection id and tag that it used.
void Engine::send_reset(const wire::FrameView& view) noexcept {
    rte_mbuf* packet;
    wire::FrameHeader* frame = begin_reply(&packet, view, wire::PacketType::kReset);
    if (frame != nullptr) {
        frame->base.connection = view.base->connection;
        frame->base.connection_tag = view.base->connection_tag;
        finish_reply(packet, 0);
    }
}

Counter Engine::receive_reset(const wire::FrameView& view) noexcept {
    const uint64_t host = uint64_t{view.ip->source.raw()} << 16 | view.udp->source_port;
    const auto found = host_index_.find(host);
    PeerId id = found != host_index_.end() ? found->second : kNoPeer;
    for (; id != kNoPeer; id = sessions_[id].next_same_host) {
        Session& s = sessions_[id];
        if (s.state >= SessionState::kEstablished && s.remote_tag == view.base->connection_tag &&
            s.remote_connection == view.base->connection) {
            end_session(s, s.state == SessionState::kClosing ? -ECANCELED : -ECONNRESET);
            return Counter::rx_resets;
        }
    }
    return Counter::drop_foreign_reset;
}

void Engine::end_session(Session& s, int status) noexcept {
    set_state(s, SessionState::kClosed);
    s.loss_deadline = s.reorder_deadline = s.persist_deadline = s.keepalive_deadline = kNever;
    const int failure = status != 0 ? status : -ECONNRESET;
    fail_sends(s, failure);
    fail_receives(s, failure);
    budget_.release(s.committed, s.eager_allowed - s.eager_received);
    s.eager_allowed = s.eager_received = 0;
    s.una = s.next_psn;
    s.in_flight = s.lost = 0;
    s.ack_need = AckNeed::kNone;
    s.local_tag = 0;
    if (s.up) {
        count(Counter::peers_down);
        s.up = false;
    }
    report(EventType::kPeerDown, s, status);
    may_retire(s);
}

void Engine::end_silent(Session& s) noexcept {
    TAGWIRE_LOG(NOTICE,
                "%s: not a word for %" PRIu64
                " ms, taken for dead: what is under way with it ends (ETIMEDOUT)",
                format(s.remote).c_str(), config_.peer_timeout_ns / 1'000'000);
    end_session(s, -ETIMEDOUT);
}

void Engine::fail_sends(Session& s, int status) noexcept {
    while (s.oldest != nullptr) {
        finish_send(s, *s.oldest, status);
    }
    s.unsent = s.transfers = s.transfers_last = nullptr;
}

void Engine::fail_receives(Session& s, int status) noexcept {
    while (s.grants != nullptr) {
        IncomingMessage* message = s.grants;
        s.grants = message->next_grant;
        message->clear(kGrantQueued);
        if (message->is(kFreeAfterGrant)) {
            free_message(message);
        }
    }
    while (s.partial != nullptr) {
        lose_message(s, *s.partial, status);
    }
    // Whole messages behind a gap: their sender may count them as delivered.
    while (s.unannounced != nullptr) {
        IncomingMessage* message = s.unannounced;
        s.unannounced = message->next;
        if (message->complete()) {
            announce(s, message);
        } else {
            stop_expecting(s, *message);
            drop_held(*message);
            free_message(message);
        }
    }
    s.unannounced_last = nullptr;
}

// Announced, and its rest will never come.
void Engine::lose_message(Session& s, IncomingMessage& message, int status) noexcept {
    stop_expecting(s, message);
    drop_held(message);
    message.set(kLost);
    if (message.is(kAccepted)) {
        --s.receives;
        finish_receive(message, status);
        return;
    }
    Event event;
    event.type = EventType::kMessageLost;
    event.status = status;
    event.peer = s.id;
    event.message = &message;
    events_.push(event);
    message.next = finished_;
    finished_ = &message;
}

}  // namespace tagwire::transport
