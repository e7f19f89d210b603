// SPDX-License-Identifier: BSD-3-Clause
// Something was lost. In the manner of RACK-TLP (RFC 8985): a packet is lost when
// one that was sent later has arrived and the reordering threshold has passed; a
// probe repeats the last packet when nothing later can arrive; then the timeout.
#include <algorithm>

#include "lib/transport/engine.h"

namespace tagwire::transport {
namespace {

constexpr uint64_t kReorderStepNs = 5'000;

// Grows with the evidence of needless resends that the receiver reports.
uint64_t reorder_threshold(const Session& s) noexcept {
    const uint64_t base = std::max(s.rtt.known() ? s.rtt.minimum() / 4 : 0, kReorderStepNs);
    return base * (1 + s.reorder_steps);
}

}  // namespace

void Engine::detect_losses(Session& s) noexcept {
    s.reorder_deadline = kNever;
    const uint64_t patience = s.rtt.smoothed() + reorder_threshold(s);
    for (uint64_t psn = s.una; psn < s.next_psn; ++psn) {
        TxSlot& slot = s.slot(psn);
        if (slot.state != SlotState::kInFlight) {
            continue;
        }
        const bool later_arrived = slot.sent_ns < s.newest_acked_ns ||
                                   (slot.sent_ns == s.newest_acked_ns && psn < s.newest_acked_psn);
        if (!later_arrived) {
            continue;
        }
        if (slot.sent_ns + patience > now_) {
            s.reorder_deadline = std::min(s.reorder_deadline, slot.sent_ns + patience);
            continue;
        }
        mark_lost(s, slot);
        if (psn >= s.recovery_end) {
            s.recovery_end = s.next_psn;
            s.congestion.on_loss();
        }
    }
    if (s.reorder_deadline != kNever) {
        wake(s, s.reorder_deadline);
    }
}

void Engine::mark_lost(Session& s, TxSlot& slot) noexcept {
    slot.state = SlotState::kLost;
    --s.in_flight;
    ++s.lost;
    make_ready(s);
}

// Nothing was heard of the newest packets.
void Engine::loss_timer(Session& s) noexcept {
    if (!s.tail_probed && s.backoff == 0 && s.lost == 0 && s.rtt.known()) {
        s.tail_probed = true;
        for (uint64_t psn = s.next_psn; psn-- > s.una;) {
            TxSlot& slot = s.slot(psn);
            if (slot.state == SlotState::kInFlight) {
                count(Counter::tail_probes);
                slot.resent = true;
                emit(s, slot, psn, wire::kFlagAckNow);
                break;
            }
        }
        arm_loss_timer(s);
        return;
    }
    count(Counter::timeouts);
    for (uint64_t psn = s.una; psn < s.next_psn; ++psn) {
        TxSlot& slot = s.slot(psn);
        if (slot.state == SlotState::kInFlight) {
            mark_lost(s, slot);
        }
    }
    s.recovery_end = s.next_psn;
    s.congestion.on_timeout();
    s.backoff = std::min(s.backoff + 1, 16u);
    if (s.backoff == 3) {
        request_mac(s.frame.ip.destination);  // perhaps the peer has another card now
    }
    arm_loss_timer(s);
    make_ready(s);
}

uint64_t Engine::timeout_of(const Session& s) const noexcept {
    const uint64_t base =
        s.rtt.known() ? std::max(s.rtt.timeout(), config_.rto_min_ns) : config_.rto_initial_ns;
    return std::min(std::min(base, config_.rto_max_ns) << s.backoff, config_.rto_max_ns);
}

void Engine::arm_loss_timer(Session& s) noexcept {
    if (s.next_psn == s.una) {
        s.loss_deadline = kNever;
        return;
    }
    uint64_t wait = timeout_of(s);
    if (!s.tail_probed && s.backoff == 0 && s.rtt.known()) {
        wait = std::min(wait, std::max(2 * s.rtt.smoothed(), config_.rto_min_ns / 4));
    }
    s.loss_deadline = now_ + wait;
    wake(s, s.loss_deadline);
}

}  // namespace tagwire::transport
