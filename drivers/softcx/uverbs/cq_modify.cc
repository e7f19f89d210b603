// SPDX-License-Identifier: BSD-3-Clause
// A completion queue that lives on with another size, or with moderated events.
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <bit>

#include "drivers/softcx/engine.h"
#include "drivers/softcx/model/capabilities.h"
#include "drivers/softcx/uverbs/command.h"

namespace softcx {

namespace {

constexpr uint32_t kCqModerate = 1;  // IB_CQ_MODERATE

uint64_t microseconds(uint32_t count) {
    return core_clock_ticks(uint64_t{count} * 1000);
}

}  // namespace

// The client made the new buffer, and copies what waits in the old one.
int resize_cq(const Command& command) {
    ib_uverbs_resize_cq request;
    if (const int error = read_request(command.request, request))
        return error;
    CompletionQueue* cq = find_cq(command.context, request.cq_handle);
    if (cq == nullptr || request.cqe == 0 || request.cqe > kMaxCompletionEntries)
        return EINVAL;
    if (command.vendor_request.size() < sizeof(mlx5_ib_resize_cq))
        return EINVAL;
    mlx5_ib_resize_cq vendor;
    if (const int error = read_request(command.vendor_request, vendor))
        return error;
    if (vendor.reserved0 != 0 || vendor.reserved1 != 0 || vendor.cqe_size != cq->cqe_size)
        return EINVAL;
    const uint32_t entries = std::bit_ceil(request.cqe + 1);
    ib_uverbs_resize_cq_resp response{};
    response.cqe = entries - 1;
    if (entries != cq->entries) {
        if (!memory_is_mapped(vendor.buf_addr, uint64_t{entries} * cq->cqe_size, true))
            return EFAULT;
        if (!engine_resize(command.device(), *cq, reinterpret_cast<uint8_t*>(vendor.buf_addr),
                           entries))
            return EINVAL;
    }
    write_response(command.response, response);
    return 0;
}

int modify_cq(const Command& command) {
    ib_uverbs_ex_modify_cq request;
    if (const int error = read_request(command.request, request))
        return error;
    if (request.attr_mask == 0 || request.reserved != 0)
        return EINVAL;
    if (request.attr_mask != kCqModerate)
        return EOPNOTSUPP;
    CompletionQueue* cq = find_cq(command.context, request.cq_handle);
    if (cq == nullptr || request.attr.cq_period > kMaxModerationPeriod)
        return EINVAL;
    static_assert(kMaxModerationCount == UINT16_MAX);
    cq->moderation_count = request.attr.cq_count;
    cq->moderation_period = microseconds(request.attr.cq_period);
    return 0;
}

}  // namespace softcx
