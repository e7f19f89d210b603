// SPDX-License-Identifier: BSD-3-Clause
// MODIFY, QUERY and DESTROY of queue pairs; qp_create.cc makes them.
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <algorithm>

#include "drivers/softcx/model/events.h"
#include "drivers/softcx/model/life.h"
#include "drivers/softcx/model/port.h"
#include "drivers/softcx/model/transitions.h"
#include "drivers/softcx/uverbs/command.h"

namespace softcx {

namespace {

constexpr uint32_t kQpAttributeRateLimit = 1u << 25;  // IB_QP_RATE_LIMIT

int apply(const Command& command, const ib_uverbs_modify_qp& request) {
    QueuePair* qp = find_qp(command.context, request.qp_handle);
    if (qp == nullptr)
        return EINVAL;
    if (qp->rss)
        return EOPNOTSUPP;  // the hash entry in front of WQs has no states
    const uint32_t mask = request.attr_mask;
    if ((mask & kQpAttributePort) != 0 && request.port_num != kPortNumber)
        return EINVAL;
    if ((mask & kQpAttributeCurrentState) != 0 && qp_state(request.cur_qp_state) != qp->state)
        return EINVAL;
    std::optional<QpState> to = qp->state;
    if ((mask & kQpAttributeState) != 0)
        to = qp_state(request.qp_state);
    if (!to ||
        !raw_qp_may_move(qp->state, *to, mask & ~(kQpAttributeState | kQpAttributeCurrentState)))
        return EINVAL;
    move_raw_qp(command.device(), *qp, *to);
    return 0;
}

}  // namespace

int modify_qp(const Command& command) {
    ib_uverbs_modify_qp request;
    if (const int error = read_request(command.request, request))
        return error;
    if ((request.attr_mask & ~(kQpAttributeRateLimit - 1)) != 0)
        return EOPNOTSUPP;
    return apply(command, request);
}

int modify_qp_ex(const Command& command) {
    ib_uverbs_ex_modify_qp request;
    if (const int error = read_request(command.request, request))
        return error;
    // Packet pacing is not announced.
    if ((request.base.attr_mask & ~(kQpAttributeRateLimit - 1)) != 0)
        return EOPNOTSUPP;
    if (!all_zero(command.vendor_request))
        return EOPNOTSUPP;
    if (const int error = apply(command, request.base))
        return error;
    ib_uverbs_ex_modify_qp_resp response{};
    response.response_length =
        static_cast<uint32_t>(std::min(command.response.size(), sizeof(response)));
    write_response(command.response, response);
    mlx5_ib_modify_qp_resp vendor_response{};
    vendor_response.response_length =
        static_cast<uint32_t>(std::min(command.vendor_response.size(), sizeof(vendor_response)));
    write_response(command.vendor_response, vendor_response);
    return 0;
}

int query_qp(const Command& command) {
    ib_uverbs_query_qp request;
    if (const int error = read_request(command.request, request))
        return error;
    const QueuePair* qp = find_qp(command.context, request.qp_handle);
    if (qp == nullptr)
        return EINVAL;
    if (qp->rss)
        return ENOSYS;
    ib_uverbs_query_qp_resp response{};
    response.qp_state = static_cast<uint8_t>(qp->state);
    response.cur_qp_state = response.qp_state;
    response.port_num = kPortNumber;
    response.max_send_wr = qp->sq.wqe_count;
    if (qp->rq) {
        response.max_recv_wr = qp->rq->wqe_count;
        response.max_recv_sge = qp->rq->stride / 16 - (qp->rq->wqe_has_signature ? 1 : 0);
    }
    response.sq_sig_all = qp->sq.signal_all ? 1 : 0;
    write_response(command.response, response);
    return 0;
}

int destroy_qp(const Command& command) {
    ib_uverbs_destroy_qp request;
    if (const int error = read_request(command.request, request))
        return error;
    const QueuePair* qp = find_qp(command.context, request.qp_handle);
    if (qp == nullptr)
        return ENOENT;
    ib_uverbs_destroy_qp_resp response{};
    response.events_reported = qp->async_reported;
    const uint64_t user_handle = qp->user_handle;
    if (const int error = destroy_qp(command.device(), qp->qpn))
        return error;
    command.context.handles.erase(request.qp_handle);
    response.events_reported -= command.context.async_events->withdraw(user_handle);
    write_response(command.response, response);
    return 0;
}

}  // namespace softcx
