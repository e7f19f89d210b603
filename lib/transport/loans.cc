// SPDX-License-Identifier: BSD-3-Clause
// Payload that leaves from where it is. Each packet does so once; what is sent again is a copy.
//
// A NIC sends what one queue was given in order. So when a packet is acknowledged, the frame that
// pointed to the caller's memory has been read, also when it was the copy behind it that arrived:
// nobody reads the memory of a message that is done. One that failed waits for its frames.
#include <rte_mbuf.h>

#include "lib/transport/engine.h"
#include "lib/transport/frame_parts.h"
#include "lib/transport/lender.h"
#include "lib/transport/log.h"

namespace tagwire::transport {

// What goes to this worker itself may be held as it is, long after it was acknowledged. Of other
// kinds the memory may be exchanged under way, when a region closes.
void Engine::borrow(const Session& s, SendOperation& operation) noexcept {
    auto& state = operation.state;
    if (state.asked_loan || s.loopback || operation.iov_count != 1 ||
        operation.header.kind > MessageKind::kUntagged ||
        operation.header.length < config_.zero_copy_bytes) {
        return;
    }
    state.asked_loan = true;
    state.loan = config_.lender->borrow(operation.iov[0].iov_base, operation.iov[0].iov_len);
}

// As emit(), the payload in a segment of its own.
bool Engine::emit_lent(Session& s, TxSlot& slot, uint64_t psn) noexcept {
    rte_mbuf* packet = has_tx_room() ? new_frame() : nullptr;
    rte_mbuf* payload = packet != nullptr ? new_frame() : nullptr;
    if (payload == nullptr) [[unlikely]] {
        rte_pktmbuf_free(packet);
        return false;
    }
    slot.sent_ns = now_;
    rte_mbuf_ext_shared_info* loan = slot.operation->state.loan;
    auto* from = static_cast<uint8_t*>(slot.operation->iov[0].iov_base) + slot.offset;
    rte_mbuf_ext_refcnt_update(loan, 1);
    rte_pktmbuf_attach_extbuf(payload, from, reinterpret_cast<rte_iova_t>(from), slot.length, loan);
    payload->data_len = slot.length;
    payload->pkt_len = slot.length;
    packet->next = payload;
    packet->nb_segs = 2;
    uint8_t* at = begin_frame(s, packet, slot.type, psn, 0);
    finish_frame(s, packet, write_fragment_header(at, slot), payload);
    push_frame(packet);
    return true;
}

// False: its end waits for the NIC.
bool Engine::settle_loan(const Session& s, SendOperation& operation, int status) noexcept {
    auto& state = operation.state;
    if (state.unacked_packets == 0 || rte_mbuf_ext_refcnt_read(state.loan) == 1) {
        give_back(state.loan);
        state.loan = nullptr;
        return true;
    }
    state.peer = s.id;
    state.refusal = static_cast<uint16_t>(-status);
    state.overdue_ns = now_ + config_.peer_timeout_ns;
    state.next = overdue_;
    overdue_ = &operation;
    timers_.schedule(overdue_timer(), now_ + kReclaimNs);
    return false;
}

void Engine::settle_overdue() noexcept {
    io_.reclaim();
    SendOperation* operation = overdue_;
    overdue_ = nullptr;
    while (operation != nullptr) {
        SendOperation* const next = operation->state.next;
        if (rte_mbuf_ext_refcnt_read(operation->state.loan) != 1 &&
            now_ < operation->state.overdue_ns) {
            operation->state.next = overdue_;
            overdue_ = operation;
        } else {
            end_overdue(*operation);
        }
        operation = next;
    }
    if (overdue_ != nullptr) {
        timers_.schedule(overdue_timer(), now_ + kReclaimNs);
    }
}

void Engine::end_overdue(SendOperation& operation) noexcept {
    auto& state = operation.state;
    if (rte_mbuf_ext_refcnt_read(state.loan) != 1) {
        count(Counter::loans_overdue);
        TAGWIRE_LOG(WARNING,
                    "the port still has frames of a send that failed, and may read its buffer "
                    "until it is stopped");
    }
    give_back(state.loan);
    state.loan = nullptr;
    Event event;
    event.type = EventType::kSendDone;
    event.status = -int{state.refusal};
    event.peer = state.peer;
    event.send = &operation;
    events_.push(event);
}

}  // namespace tagwire::transport
