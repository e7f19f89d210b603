// SPDX-License-Identifier: BSD-3-Clause
// An acknowledgement arrived: packets leave the window, messages are done.
#include <algorithm>

#include "lib/transport/engine.h"
#include "lib/transport/psn.h"

namespace tagwire::transport {

void Engine::acknowledged(Session& s, uint64_t ack) noexcept {
    for (uint64_t psn = s.una; psn != ack; ++psn) {
        TxSlot& slot = s.slot(psn);
        if (slot.state != SlotState::kAcked) [[likely]] {
            slot_acknowledged(s, psn, slot);
        }
        slot.state = SlotState::kFree;
    }
    s.una = ack;
}

// Bit i of the bitmap is PSN ack + 1 + i, of the packet's own ack field.
void Engine::selectively_acknowledged(Session& s, const wire::BaseHeader& base,
                                      const uint8_t* words, uint32_t count) noexcept {
    const uint64_t first = expand_psn(base.ack, s.una) + 1;
    uint32_t news = 0;
    for (uint32_t w = 0; w < count; ++w) {
        uint64_t bits = reinterpret_cast<const wire::be64*>(words)[w];
        for (; bits != 0; bits &= bits - 1) {
            const uint64_t psn =
                first + uint64_t{w} * 64 + static_cast<uint64_t>(__builtin_ctzll(bits));
            if (psn >= s.next_psn) {
                return;  // never sent: nothing more in here can be true
            }
            if (psn >= s.una && s.slot(psn).state != SlotState::kAcked) {
                slot_acknowledged(s, psn, s.slot(psn));
                ++news;
            }
        }
    }
    if (news > 0) {
        after_acknowledgement(s, news, base);
    }
    detect_losses(s);
}

void Engine::slot_acknowledged(Session& s, uint64_t psn, TxSlot& slot) noexcept {
    if (slot.state == SlotState::kInFlight) [[likely]] {
        --s.in_flight;
    } else {
        --s.lost;
    }
    slot.state = SlotState::kAcked;
    if (slot.sent_ns > s.newest_acked_ns ||
        (slot.sent_ns == s.newest_acked_ns && psn > s.newest_acked_psn)) [[likely]] {
        s.newest_acked_ns = slot.sent_ns;
        s.newest_acked_psn = psn;
        s.newest_acked_resent = slot.resent;
    }
    if (slot.type == wire::PacketType::kMessages) [[likely]] {
        messages_done(s, *slot.operation, slot.count);
    } else if (slot.type == wire::PacketType::kOperations) {
        operations_done(s, *slot.operation, slot.count);
    } else if (slot.operation != nullptr) {
        packet_of_message_done(s, *slot.operation);
    }
}

// Once per acknowledgement that brought news.
void Engine::after_acknowledgement(Session& s, uint32_t packets,
                                   const wire::BaseHeader& base) noexcept {
    if ((base.flags & wire::kFlagEcho) != 0) {
        // The echo tells original and resent packets apart; so any may be used.
        s.rtt.sample(uint64_t{timestamp() - base.timestamp} << wire::kTimestampShift);
    } else if (!s.newest_acked_resent) {
        s.rtt.sample(now_ - s.newest_acked_ns);  // Karn's rule (RFC 6298, 3)
    }
    s.backoff = 0;
    s.tail_probed = false;
    s.congestion.on_ack(packets);
    if (s.reorder_deadline != kNever) [[unlikely]] {
        detect_losses(s);
    }
    arm_loss_timer(s);
    if (s.has_to_send()) {
        make_ready(s);
    }
}

// The messages of one frame follow each other in the list: it is cut once.
void Engine::messages_done(Session& s, SendOperation& first, uint32_t count) noexcept {
    SendOperation* const previous = first.state.previous;
    SendOperation* next = first.state.next;
    for (uint32_t left = count - 1; left > 0; --left) {
        next = next->state.next;
    }
    Event& event = events_.add();
    event.type = EventType::kSendDone;
    event.status = 0;
    event.peer = s.id;
    event.count = count;
    event.send = &first;
    (previous != nullptr ? previous->state.next : s.oldest) = next;
    (next != nullptr ? next->state.previous : s.newest) = previous;
    finish_markers(s);
}

// Those that wait for nothing more leave the list, one by one.
void Engine::operations_done(Session& s, SendOperation& first, uint32_t count) noexcept {
    SendOperation* operation = &first;
    for (; count > 0; --count) {
        SendOperation* const next = operation->state.next;
        packet_of_message_done(s, *operation);
        operation = next;
    }
}

void Engine::packet_of_message_done(Session& s, SendOperation& operation) noexcept {
    --operation.state.unacked_packets;
    finish_if_done(s, operation);
}

void Engine::finish_if_done(Session& s, SendOperation& operation) noexcept {
    if (is_done(operation)) {
        finish_send(s, operation, -int{operation.state.refusal});
        finish_markers(s);
    }
}

int Engine::answered(SendOperation& operation) noexcept {
    operation.state.awaited =
        static_cast<uint8_t>(operation.state.awaited & ~SendOperation::kAnswer);
    if (operation.state.ended || !is_done(operation)) {
        return 0;
    }
    Session& s = sessions_[operation.state.peer];
    unlink_send(s, operation);
    finish_markers(s);
    if (s.unsent != nullptr) {
        make_ready(s);  // one with a fence may have waited for it
    }
    return 1;
}

void Engine::unlink_send(Session& s, SendOperation& operation) noexcept {
    leave_transfers(s, operation);
    if (operation.state.indexed) {
        outgoing_.erase(&operation);
    }
    SendOperation* const next = operation.state.next;
    SendOperation* const previous = operation.state.previous;
    (previous != nullptr ? previous->state.next : s.oldest) = next;
    (next != nullptr ? next->state.previous : s.newest) = previous;
}

void Engine::finish_markers(Session& s) noexcept {
    while (s.oldest != nullptr && s.oldest->state.marker)
        [[unlikely]] {
            if (s.unsent == s.oldest) {
                s.unsent = s.oldest->state.next;
            }
            finish_send(s, *s.oldest, 0);
        }
}

void Engine::finish_send(Session& s, SendOperation& operation, int status) noexcept {
    unlink_send(s, operation);
    operation.state.ended = true;
    if (!operation.state.plain && operation.state.loan != nullptr &&
        !settle_loan(s, operation, status)) [[unlikely]] {
        return;
    }
    Event event;
    event.type = EventType::kSendDone;
    event.status = status;
    event.peer = s.id;
    event.send = &operation;
    events_.push(event);
}

void Engine::receive_grant(Session& s, const wire::GrantHeader& grant) noexcept {
    const uint32_t first = grant.message_id;
    if ((grant.flags & wire::kGrantRange) != 0) {
        for (uint32_t i = 0; i < grant.granted; ++i) {
            if (SendOperation* operation = outgoing_.find(s.id, first + i)) {
                operation->state.awaited = static_cast<uint8_t>(operation->state.awaited &
                                                                ~uint8_t{wire::kGrantDelivered});
                finish_if_done(s, *operation);
            }
        }
        make_ready(s);
    } else if (SendOperation* operation = outgoing_.find(s.id, first)) {
        receive_note(s, *operation, grant);
    }  // else for a message that needs none any more
}

void Engine::receive_note(Session& s, SendOperation& operation,
                          const wire::GrantHeader& grant) noexcept {
    auto& state = operation.state;
    const uint16_t flags = grant.flags;
    const auto length = static_cast<uint32_t>(operation.header.length);
    state.granted = std::max(state.granted, std::min<uint32_t>(grant.granted, length));
    state.awaited = static_cast<uint8_t>(state.awaited & ~flags);
    if ((flags & wire::kGrantRefused) != 0) {
        state.awaited = 0;
        state.refusal = grant.status;
        state.end = state.sent;  // whatever was granted before
    } else if ((flags & wire::kGrantFinal) != 0) {
        state.end = std::max(state.sent, state.granted);
    }
    make_ready(s);
    if (s.unsent == &operation) {  // its eager part is not out yet
        if (state.sent < state.end) {
            return;
        }
        s.unsent = state.next;
    }
    if (state.sent == state.end) {
        leave_transfers(s, operation);
        finish_if_done(s, operation);
    } else if (state.sent < state.granted && !state.transfers) {
        begin_transfer(s, operation);
    }
}

void Engine::leave_transfers(Session& s, SendOperation& operation) noexcept {
    if (!operation.state.transfers) {
        return;
    }
    SendOperation** at = &s.transfers;
    SendOperation* prior = nullptr;
    while (*at != &operation) {
        prior = *at;
        at = &prior->state.next_transfer;
    }
    *at = operation.state.next_transfer;
    if (&operation == s.transfers_last) {
        s.transfers_last = prior;
    }
    operation.state.transfers = false;
}

}  // namespace tagwire::transport
