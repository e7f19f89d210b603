// SPDX-License-Identifier: BSD-3-Clause
// A deadline passed.
#include <algorithm>
#include <cerrno>

#include "lib/transport/engine.h"

namespace tagwire::transport {

void Engine::run_timers() noexcept {
    while (timers_.next() <= now_)
        [[unlikely]] {
            const uint32_t timer = timers_.pop();
            if (timer < config_.max_peers) [[likely]] {
                session_timer(sessions_[timer]);
            } else {
                timer == overdue_timer() ? settle_overdue() : retire_peers();
            }
        }
}

// The heap may wake a session early: each deadline is looked at again.
void Engine::session_timer(Session& s) noexcept {
    if (s.loss_deadline <= now_) {
        switch (s.state) {
            case SessionState::kClosed:
                break;
            case SessionState::kResolving:
                resolve_timer(s);
                break;
            case SessionState::kHello:
                hello_timer(s);
                break;
            case SessionState::kEstablished:
                loss_timer(s);
                break;
            case SessionState::kClosing:
                close_timer(s);
                break;
        }
    }
    if (s.state == SessionState::kEstablished) {
        if (s.reorder_deadline <= now_) {
            detect_losses(s);
        }
        if (s.persist_deadline <= now_) {
            ask_for_credit(s);
        }
        if (s.keepalive_deadline <= now_) {
            keep_alive(s);
        }
    }
    if (s.state == SessionState::kEstablished) {
        wake(s, std::min({s.loss_deadline, s.reorder_deadline, s.persist_deadline,
                          s.keepalive_deadline}));
    } else if (s.state != SessionState::kClosed) {
        wake(s, s.loss_deadline);
    }
}

// A receiver without room is busy, not dead; but its word that it has room again
// may have been lost.
void Engine::ask_for_credit(Session& s) noexcept {
    if (s.unsent == nullptr || static_cast<int32_t>(s.eager_credit - s.eager_sent) > 0) {
        s.persist_deadline = kNever;
        return;
    }
    count(Counter::tx_probes);
    send_control(s, wire::PacketType::kProbe, wire::kFlagAckNow);
    s.persist_interval =
        std::min({2 * s.persist_interval, config_.rto_max_ns, config_.peer_timeout_ns / 4});
    s.persist_deadline = now_ + s.persist_interval;
}

// The session has work: from now on its peer's silence counts.
void Engine::start_watch(Session& s) noexcept {
    s.keepalive_deadline = now_ + config_.peer_timeout_ns / 4;
    wake(s, s.keepalive_deadline);
}

void Engine::keep_alive(Session& s) noexcept {
    if (!s.busy()) {
        s.keepalive_deadline = kNever;
        return;
    }
    const uint64_t silence = now_ - s.heard_ns;
    if (silence >= config_.peer_timeout_ns) {
        end_silent(s);
        return;
    }
    const uint64_t patience = config_.peer_timeout_ns / 4;
    if (silence < patience) {
        s.keepalive_deadline = s.heard_ns + patience;
        return;
    }
    if (s.next_psn == s.una) {
        count(Counter::tx_probes);
        send_control(s, wire::PacketType::kProbe, wire::kFlagAckNow);
    }
    // Often enough that a bad network alone does not make a peer look dead.
    s.keepalive_deadline =
        std::min(now_ + config_.peer_timeout_ns / 16, s.heard_ns + config_.peer_timeout_ns);
}

}  // namespace tagwire::transport
