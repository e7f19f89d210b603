// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/engine/send.h"

#include <algorithm>

#include "drivers/softcx/engine.h"
#include "drivers/softcx/engine/completion.h"
#include "drivers/softcx/engine/receive.h"
#include "drivers/softcx/engine/send_wqe.h"
#include "drivers/softcx/engine/transmit.h"

namespace softcx {

namespace {

uint32_t opcode_qpn(const SendPort& port, WqeOpcode opcode) noexcept {
    return uint32_t{static_cast<uint8_t>(opcode)} << 24 | (port.qp->qpn & 0xffffff);
}

bool complete(EngineState& state, SendPort& port, const SendWqe& wqe) noexcept {
    const bool always = wqe.completion == CompletionMode::kAlways ||
                        wqe.completion == CompletionMode::kAlwaysWithEvent;
    if (!always && !port.qp->sq.signal_all)
        return true;
    Cqe cqe{};
    cqe.srqn_uidx.set(port.qp->user_index & kIndexMask);
    cqe.byte_cnt.set(wqe.total);
    cqe.timestamp.set(state.now);
    cqe.sop_drop_qpn.set(opcode_qpn(port, wqe.opcode));
    cqe.wqe_counter.set(wqe.index);
    const bool solicited = wqe.solicited || wqe.completion == CompletionMode::kAlwaysWithEvent;
    return write_cqe(state, *port.completions, cqe, CqeOpcode::kRequester, solicited);
}

void fail(EngineState& state, SendPort& port, const SendWqe& wqe, Syndrome syndrome) noexcept {
    QueuePair& qp = *port.qp;
    write_error_cqe(state, *port.completions, CqeOpcode::kRequesterError, syndrome,
                    opcode_qpn(port, wqe.opcode), qp.user_index, wqe.index);
    qp.sq.consumer_index = static_cast<uint16_t>(wqe.index + wqe.basic_blocks);
    enter_send_error(state, port);
}

uint16_t announced_blocks(EngineState& state, SendPort& port) noexcept {
    SendQueue& sq = port.qp->sq;
    const auto announced =
        static_cast<uint16_t>(read_doorbell(sq.doorbell + 1) - sq.consumer_index);
    if (announced <= sq.wqe_count) [[likely]]
        return announced;
    // What lies between is not known: the queue stops where it is.
    report_client_error(state.device, ClientCheck::kDoorbellPastRing, {"QP", port.qp->qpn});
    sq.consumer_index = static_cast<uint16_t>(sq.consumer_index + announced);
    enter_send_error(state, port);
    report_async_event(state.device, kEventQpFatal, port.qp->user_handle);
    return 0;
}

bool can_send(QpState qp_state) noexcept {
    switch (qp_state) {
        case QpState::kRts:
            return true;
        case QpState::kReset:
        case QpState::kInit:
        case QpState::kRtr:
        case QpState::kSqd:
        case QpState::kSqe:
        case QpState::kError:
            return false;
    }
    return false;
}

// Going to RESET leaves the record as it was, and the client zeroes it before INIT.
void check_early_post(EngineState& state, SendPort& port) noexcept {
    const QueuePair& qp = *port.qp;
    const bool early =
        (qp.state == QpState::kInit || qp.state == QpState::kRtr) &&
        static_cast<uint16_t>(read_doorbell(qp.sq.doorbell + 1)) != qp.sq.consumer_index;
    if (!early || port.early_post_reported)
        return;
    port.early_post_reported = true;
    report_client_error(state.device, ClientCheck::kSendNotReady, {"QP", qp.qpn});
}

bool is_failed(QpState qp_state) noexcept {
    return qp_state == QpState::kError || qp_state == QpState::kSqe;
}

}  // namespace

// As the kernel derives the state of a raw packet QP from those of its queues: with a
// receive ring that still works it is SQE, without one ERR.
void enter_send_error(EngineState& state, SendPort& port) noexcept {
    QueuePair& qp = *port.qp;
    const bool still_receives = qp.rq != nullptr && qp.rq->state == WqState::kReady;
    qp.state = still_receives ? QpState::kSqe : QpState::kError;
    flush_send_port(state, port);
}

uint32_t run_send_port(EngineState& state, SendPort& port, uint32_t budget) noexcept {
    QueuePair& qp = *port.qp;
    if (!can_send(qp.state)) {
        check_early_post(state, port);
        return is_failed(qp.state) ? flush_send_port(state, port) : 0;
    }

    uint16_t announced = announced_blocks(state, port);
    uint32_t executed = 0;
    SendWqe wqe;
    while (announced != 0 && executed < budget) {
        Syndrome syndrome = decode_send_wqe(state, port, announced, wqe);
        executed += wqe.opcode == WqeOpcode::kMultiPacket ? std::max(wqe.piece_count, 1u) : 1;
        if (qp.sq.injected_syndrome != 0) [[unlikely]] {
            syndrome = static_cast<Syndrome>(qp.sq.injected_syndrome);
            qp.sq.injected_syndrome = 0;
        }
        if (syndrome != Syndrome::kNone) [[unlikely]] {
            fail(state, port, wqe, syndrome);
            break;
        }
        if (wqe.opcode != WqeOpcode::kNop)
            transmit(state, wqe);
        qp.sq.consumer_index = static_cast<uint16_t>(wqe.index + wqe.basic_blocks);
        announced = static_cast<uint16_t>(announced - wqe.basic_blocks);
        if (!complete(state, port, wqe)) [[unlikely]] {
            enter_send_error(state, port);
            report_async_event(state.device, kEventQpFatal, qp.user_handle);
            break;
        }
    }
    return executed;
}

uint32_t flush_send_port(EngineState& state, SendPort& port) noexcept {
    QueuePair& qp = *port.qp;
    SendQueue& sq = qp.sq;
    const auto announced =
        static_cast<uint16_t>(read_doorbell(sq.doorbell + 1) - sq.consumer_index);
    if (announced > sq.wqe_count) {
        sq.consumer_index = static_cast<uint16_t>(sq.consumer_index + announced);
        return 0;
    }
    uint32_t flushed = 0;
    const auto end = static_cast<uint16_t>(sq.consumer_index + announced);
    while (sq.consumer_index != end) {
        const uint16_t index = sq.consumer_index;
        ControlSegment control;
        std::memcpy(&control, sq.buffer + size_t{index & (sq.wqe_count - 1)} * kBasicBlock,
                    sizeof(control));
        const uint32_t blocks = std::max<uint32_t>(
            1, (control.octowords() * kOctoword + kBasicBlock - 1) / kBasicBlock);
        const auto left = static_cast<uint16_t>(end - index);
        sq.consumer_index = static_cast<uint16_t>(index + std::min<uint32_t>(blocks, left));
        ++flushed;
        if (control.completion() == CompletionMode::kOnFirstError)
            continue;
        write_error_cqe(state, *port.completions, CqeOpcode::kRequesterError, Syndrome::kFlushed,
                        opcode_qpn(port, control.opcode()), qp.user_index, index);
    }
    return flushed;
}

}  // namespace softcx
