// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/engine/completion.h"

#include <bit>

#include "drivers/softcx/engine.h"
#include "drivers/softcx/engine/compression.h"

namespace softcx {

namespace {

// The consumer index is compared modulo twice the CQ size: some clients keep it in
// 16 bits, the record has 24.
uint32_t used_entries(const CompletionPort& port) noexcept {
    const uint32_t mask = 2 * port.cq->entries - 1;
    return (port.cq->producer_index - port.consumer_index) & mask;
}

void refresh_consumer(EngineState& state, CompletionPort& port) noexcept {
    const CompletionQueue& cq = *port.cq;
    const uint32_t mask = 2 * cq.entries - 1;
    const uint32_t index = read_doorbell(cq.doorbell) & kIndexMask;
    const uint32_t advance = (index - port.consumer_index) & mask;
    if (advance > used_entries(port) && !cq.ignore_overrun)
        report_client_error(state.device, ClientCheck::kConsumerBackwards, {"CQ", cq.cqn});
    port.consumer_index = index;
}

// PRM, "Completion Event Moderation": either value 0 turns it off.
bool is_moderated(const CompletionQueue& cq) noexcept {
    return cq.moderation_count != 0 && cq.moderation_period != 0;
}

void raise(CompletionQueue& cq) noexcept {
    cq.armed = false;
    cq.held_cqes = 0;
    cq.held_since = 0;
    raise_completion_event(cq);
}

}  // namespace

bool has_room(EngineState& state, CompletionPort& port, uint32_t count) noexcept {
    CompletionQueue& cq = *port.cq;
    if (cq.overrun)
        return false;
    if (!cq.injected_overrun) [[likely]] {
        if (used_entries(port) + count <= cq.entries || cq.ignore_overrun)
            return true;
        refresh_consumer(state, port);
        if (used_entries(port) + count <= cq.entries)
            return true;
    }
    cq.injected_overrun = false;
    cq.overrun = true;
    ++state.device.port.counters.cq_overrun;
    report_async_event(state.device, kEventCqError, cq.user_handle);
    return false;
}

void raise_if_armed(CompletionQueue& cq, bool solicited, uint32_t cqes) noexcept {
    if (!cq.armed || (!solicited && (cq.arm_sequence & kArmSolicitedOnly) != 0))
        return;
    if (is_moderated(cq)) {
        cq.held_cqes += cqes;
        if (cq.held_cqes < cq.moderation_count)
            return;
    }
    raise(cq);
}

void tend_events(CompletionQueue& cq, uint64_t now) noexcept {
    check_arm(cq);
    if (!cq.armed || cq.held_cqes == 0)
        return;
    if (cq.held_since == 0)
        cq.held_since = now;
    else if (now - cq.held_since >= cq.moderation_period)
        raise(cq);
}

void store_cqe(const CompletionQueue& cq, uint32_t index, const Cqe& cqe, uint8_t format) noexcept {
    uint8_t* slot = cq.buffer + size_t{index & (cq.entries - 1)} * cq.cqe_size;
    if (cq.padded)
        std::memset(slot, 0, cq.cqe_size - sizeof(Cqe));
    slot += cq.cqe_size - sizeof(Cqe);  // the second half of a 128-byte CQE
    std::memcpy(slot, &cqe, offsetof(Cqe, op_own));
    const uint8_t owner = (index & cq.entries) != 0 ? 1 : 0;
    __atomic_store_n(slot + offsetof(Cqe, op_own), static_cast<uint8_t>(format | owner),
                     __ATOMIC_RELEASE);
}

bool write_cqe(EngineState& state, CompletionPort& port, Cqe& cqe, CqeOpcode opcode,
               bool solicited) noexcept {
    if (port.session != nullptr)
        close_session(port);  // CQEs stay in order
    if (!has_room(state, port, 1))
        return false;
    CompletionQueue& cq = *port.cq;
    store_cqe(cq, cq.producer_index++, cqe,
              static_cast<uint8_t>(static_cast<uint8_t>(opcode) << 4 | (solicited ? 2 : 0)));
    if (solicited)
        cq.solicited_index = cq.producer_index;
    raise_if_armed(cq, solicited, 1);
    return true;
}

bool write_error_cqe(EngineState& state, CompletionPort& port, CqeOpcode opcode, Syndrome syndrome,
                     uint32_t opcode_qpn, uint32_t user_index, uint16_t wqe_counter) noexcept {
    count_error(state.device.port.counters, opcode, syndrome);
    ErrorCqe error{};
    error.srqn_uidx.set(user_index & kIndexMask);
    error.syndrome = static_cast<uint8_t>(syndrome);
    error.opcode_qpn.set(opcode_qpn);
    error.wqe_counter.set(wqe_counter);
    return write_cqe(state, port, reinterpret_cast<Cqe&>(error), opcode, true);
}

void check_arm(CompletionQueue& cq) noexcept {
    const uint32_t arm = read_doorbell(cq.doorbell + 1);
    if (arm == cq.arm_sequence)
        return;
    cq.arm_sequence = arm;
    cq.armed = true;
    cq.held_cqes = 0;
    cq.held_since = 0;
    // The command carries the consumer index: CQEs behind it are news.
    const bool solicited_only = (arm & kArmSolicitedOnly) != 0;
    const uint32_t newest = solicited_only ? cq.solicited_index : cq.producer_index;
    const uint32_t behind = (newest - arm) & kIndexMask;
    if (behind != 0 && behind <= kIndexMask / 2)
        raise_if_armed(cq, solicited_only, behind);
}

bool engine_resize(Device& device, CompletionQueue& cq, uint8_t* buffer,
                   uint32_t entries) noexcept {
    close_sessions(engine_state(device));
    const uint32_t mask = 2 * cq.entries - 1;
    const uint32_t used = (cq.producer_index - read_doorbell(cq.doorbell)) & mask;
    // The CQE that tells of the end needs a place in either buffer.
    if (cq.overrun || used + 1 > cq.entries || used + 1 > entries)
        return false;
    store_cqe(cq, cq.producer_index++, Cqe{}, static_cast<uint8_t>(CqeOpcode::kResize) << 4);
    cq.buffer = buffer;
    cq.entries = entries;
    return true;
}

void count_error(PortCounters& counters, CqeOpcode opcode, Syndrome syndrome) noexcept {
    const bool responder = opcode == CqeOpcode::kResponderError;
    const bool flushed = syndrome == Syndrome::kFlushed;
    ++(responder ? counters.resp_cqe_error : counters.req_cqe_error);
    if (flushed)
        ++(responder ? counters.resp_cqe_flush_error : counters.req_cqe_flush_error);
    if (responder && syndrome == Syndrome::kLocalLength)
        ++counters.resp_local_length_error;
    switch (syndrome) {
        case Syndrome::kLocalProtection:
            ++counters.local_protection_errors;
            break;
        case Syndrome::kLocalLength:
            ++counters.local_length_errors;
            break;
        case Syndrome::kLocalQpOperation:
            ++counters.local_qp_errors;
            break;
        case Syndrome::kNone:
        case Syndrome::kFlushed:
            break;
    }
}

}  // namespace softcx
