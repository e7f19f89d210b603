// SPDX-License-Identifier: BSD-3-Clause
// Peers that nobody needs any more give their places to new ones.
//
// A place is free when its session is closed, nothing of it is held, and nobody holds its PeerId.
// Late packets of the old peer carry its connection tag: they are refused and counted as those of
// an earlier session are. Its late hellos carry cookies of a generation that is over.
//
// Places are taken back only when few are left: until then a peer that returns finds its own.
#include <algorithm>

#include "lib/transport/engine.h"
#include "lib/transport/log.h"

namespace tagwire::transport {
namespace {

constexpr uint64_t kFirstLookNs = 1'000'000;  // between two looks; doubles while nothing is found
constexpr uint64_t kLastLookNs = 200'000'000;
constexpr uint64_t kIdleLookNs = 1'000'000'000;  // at all sessions

}  // namespace

void Engine::hold_peer(PeerId peer) noexcept {
    ++sessions_[peer].users;
}

void Engine::release_peer(PeerId peer) noexcept {
    --sessions_[peer].users;
    may_retire(sessions_[peer]);
}

// Its session ended, or its last user left.
void Engine::may_retire(Session& s) noexcept {
    if (s.users != 0 || s.state != SessionState::kClosed) {
        return;
    }
    if (!s.retiring) {
        s.retiring = true;
        s.quiet_ns = 0;
        retiring_.push(s.id);
        retire_after_ns_ = retire_interval_ns_ = 0;
    }
    look_for_places();
}

// A look costs little for those that are known to have ended, and more for all sessions.
void Engine::look_for_places() noexcept {
    if (few_places()) {
        timers_.schedule(retire_timer(), std::max(now_, retire_after_ns_));
    }
}

bool Engine::few_places() const noexcept {
    return places_left() < std::max(config_.max_peers / 8, 1u);
}

bool Engine::is_unused(const Session& s) const noexcept {
    const SendOperation* overdue = overdue_;
    while (overdue != nullptr && overdue->state.peer != s.id) {
        overdue = overdue->state.next;
    }
    return s.state == SessionState::kClosed && s.users == 0 && s.committed == 0 && !s.busy() &&
           s.partial == nullptr && overdue == nullptr;
}

// Events on their way to the core name peers. Here, outside of poll(), it has seen them all but
// those that wait.
bool Engine::core_is_quiet() const noexcept {
    return events_.empty() && finished_ == nullptr && pending_records_ == 0;
}

// In a poll() the events of this one are not seen yet: a place has to be found unused in two, and
// what stays unused has no events in between.
void Engine::retire_peers() noexcept {
    const bool quiet = core_is_quiet();
    const uint32_t before = places_left();
    retiring_.keep_if([&](PeerId id) {
        Session& s = sessions_[id];
        s.retiring = s.users == 0 && s.state == SessionState::kClosed;
        if (!s.retiring || !quiet || !is_unused(s)) {
            s.quiet_ns = 0;
            return s.retiring;
        }
        if (s.quiet_ns == 0 || s.quiet_ns == now_) {
            s.quiet_ns = now_;
            return true;
        }
        forget_peer(s);
        return false;
    });
    if (places_left() != before) {
        retire_interval_ns_ = 0;
    }
    retire_interval_ns_ = std::clamp(2 * retire_interval_ns_, kFirstLookNs, kLastLookNs);
    retire_after_ns_ = now_ + retire_interval_ns_;
    if (few_places() && retiring_.empty() && now_ >= idle_look_ns_) {
        idle_look_ns_ = now_ + kIdleLookNs;
        close_idle();
    }
    if (!retiring_.empty()) {
        look_for_places();
    } else if (few_places() && now_ < wanted_until_ns_) {
        timers_.schedule(retire_timer(), idle_look_ns_);
    }
}

bool Engine::place_is_coming() noexcept {
    bool coming = false;
    retiring_.keep_if([&](PeerId id) {
        coming = coming || is_unused(sessions_[id]);
        return true;
    });
    return coming;
}

// The core wants a place, outside of poll().
void Engine::retire_now() noexcept {
    if (!core_is_quiet()) {
        return;
    }
    retiring_.keep_if([this](PeerId id) {
        Session& s = sessions_[id];
        if (is_unused(s)) {
            forget_peer(s);
            return false;
        }
        return true;
    });
}

// Sessions that peers opened and do not use: some may be dead, and the others open a new one with
// their next message. Once somebody found no place they are looked at again and again, until each
// has been silent for long enough.
void Engine::close_idle() noexcept {
    for (PeerId id = 0; id < peers_; ++id) {
        Session& s = sessions_[id];
        if (s.state == SessionState::kEstablished && s.users == 0 && !s.busy() && s.held() == 0 &&
            now_ - s.heard_ns >= config_.peer_timeout_ns) {
            count(Counter::idle_sessions_closed);
            close_session(s);
        }
    }
}

void Engine::forget_peer(Session& s) noexcept {
    s.retiring = false;
    peer_index_.erase(
        {host_key(s.remote), uint32_t{s.local_endpoint} << 16 | s.remote.endpoint, s.key});
    const auto host = host_index_.find(host_key(s.remote));
    PeerId* at = &host->second;
    while (*at != s.id) {
        at = &sessions_[*at].next_same_host;
    }
    *at = s.next_same_host;
    if (host->second == kNoPeer) {
        host_index_.erase(host);
    }
    // Cookies that the peer was given are worth nothing any more.
    forgotten_ = std::max(forgotten_, s.generation) + 1;
    s.next_same_host = kNoPeer;
    (free_last_ != kNoPeer ? sessions_[free_last_].next_same_host : free_first_) = s.id;
    free_last_ = s.id;
    ++free_places_;
    count(Counter::peers_forgotten);
    TAGWIRE_LOG(DEBUG, "peer %u: forgotten", s.id);
}

// kNoPeer: there is none. The one that is free for longest goes first.
PeerId Engine::take_place() noexcept {
    PeerId id = kNoPeer;
    if (peers_ < config_.max_peers) {
        id = peers_++;
    } else if (free_first_ != kNoPeer) {
        id = free_first_;
        free_first_ = sessions_[id].next_same_host;
        free_last_ = free_first_ != kNoPeer ? free_last_ : kNoPeer;
        --free_places_;
    } else {
        wanted_until_ns_ = now_ + 2 * config_.peer_timeout_ns;
    }
    look_for_places();
    return id;
}

}  // namespace tagwire::transport
