// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/model/transitions.h"

#include "drivers/softcx/engine.h"
#include "drivers/softcx/log.h"

namespace softcx {

const char* name_of(WqState state) noexcept {
    switch (state) {
        case WqState::kReset:
            return "RESET";
        case WqState::kReady:
            return "RDY";
        case WqState::kError:
            return "ERR";
    }
    return "?";
}

const char* name_of(QpState state) noexcept {
    switch (state) {
        case QpState::kReset:
            return "RESET";
        case QpState::kInit:
            return "INIT";
        case QpState::kRtr:
            return "RTR";
        case QpState::kRts:
            return "RTS";
        case QpState::kSqd:
            return "SQD";
        case QpState::kSqe:
            return "SQE";
        case QpState::kError:
            return "ERR";
    }
    return "?";
}

std::optional<WqState> wq_state(uint32_t value) noexcept {
    if (value > static_cast<uint32_t>(WqState::kError))
        return std::nullopt;
    return static_cast<WqState>(value);
}

std::optional<QpState> qp_state(uint32_t value) noexcept {
    if (value > static_cast<uint32_t>(QpState::kError))
        return std::nullopt;
    return static_cast<QpState>(value);
}

// ib_modify_wq: "From RESET it can be modified to itself or to RDY. From RDY to
// itself, to RESET or to ERR. From ERR to RESET."
bool wq_may_move(WqState from, WqState to) noexcept {
    switch (from) {
        case WqState::kReset:
            return to == WqState::kReset || to == WqState::kReady;
        case WqState::kReady:
            return true;
        case WqState::kError:
            return to == WqState::kReset;
    }
    return false;
}

// InfiniBand specification 10.3.1 for the states; what each move of a raw packet
// QP needs is the kernel's qp_state_table: only RESET to INIT names the port.
bool raw_qp_may_move(QpState from, QpState to, uint32_t attributes) noexcept {
    uint32_t required = 0;
    uint32_t optional = 0;
    if (to == QpState::kReset || to == QpState::kError) {
        return attributes == 0;
    }
    switch (from) {
        case QpState::kReset:
            if (to != QpState::kInit)
                return false;
            required = kQpAttributePort;
            break;
        case QpState::kInit:
            if (to == QpState::kInit)
                optional = kQpAttributePort;
            else if (to != QpState::kRtr)
                return false;
            break;
        case QpState::kRtr:
            if (to != QpState::kRts)
                return false;
            break;
        case QpState::kRts:
        case QpState::kSqd:
            if (to != QpState::kRts && to != QpState::kSqd)
                return false;
            break;
        case QpState::kSqe:
            if (to != QpState::kRts)
                return false;
            break;
        case QpState::kError:
            return false;
    }
    return (attributes & required) == required && (attributes & ~(required | optional)) == 0;
}

void move_wq(Device& device, WorkQueue& wq, WqState to) noexcept {
    log(LogLevel::kDebug, "%s: WQ 0x%x %s -> %s", device.name.c_str(), wq.wqn, name_of(wq.state),
        name_of(to));
    const WqState from = wq.state;
    wq.state = to;
    if (to == WqState::kError && from != WqState::kError)
        engine_flush(device, wq);
    if (to == WqState::kReset)
        engine_reset(wq);
}

void move_raw_qp(Device& device, QueuePair& qp, QpState to) noexcept {
    log(LogLevel::kDebug, "%s: QP 0x%x %s -> %s", device.name.c_str(), qp.qpn, name_of(qp.state),
        name_of(to));
    const QpState from = qp.state;
    qp.state = to;
    switch (to) {
        case QpState::kReset:
            if (qp.rq)
                qp.rq->state = WqState::kReset;
            engine_reset(qp);
            break;
        case QpState::kInit:
            // mlx5 makes the ring ready here; the client library holds its doorbell
            // record back until RTR.
            if (qp.rq)
                qp.rq->state = WqState::kReady;
            break;
        case QpState::kError:
            if (qp.rq)
                qp.rq->state = WqState::kError;
            if (from != QpState::kError && from != QpState::kReset)
                engine_flush(device, qp);
            break;
        default:
            break;
    }
}

}  // namespace softcx
