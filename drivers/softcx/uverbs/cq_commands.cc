// SPDX-License-Identifier: BSD-3-Clause
// Completion channels and completion queues.
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <algorithm>
#include <bit>

#include "drivers/softcx/engine.h"
#include "drivers/softcx/model/capabilities.h"
#include "drivers/softcx/model/events.h"
#include "drivers/softcx/model/life.h"
#include "drivers/softcx/uverbs/command.h"
#include "drivers/softcx/uverbs/files.h"

namespace softcx {

namespace {

constexpr uint32_t kKnownCqFlags =
    IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION | IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN;
constexpr uint16_t kKnownVendorFlags =
    MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX | MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD;

struct CqRequest {
    uint64_t user_handle;
    uint32_t cqe;
    uint32_t comp_vector;
    int32_t channel_fd;
    uint32_t flags;
};

CompletionChannel* find_channel(const Context& context, int fd) {
    const std::optional<uint32_t> number = channel_of(fd, context);
    if (!number)
        return nullptr;
    const auto found = context.device.channels.find(*number);
    return found != context.device.channels.end() ? found->second.get() : nullptr;
}

int check_vendor_request(const mlx5_ib_create_cq& request) {
    if (request.cqe_size != 64 && request.cqe_size != 128)
        return EINVAL;
    if ((request.flags & ~kKnownVendorFlags) != 0)
        return EINVAL;
    if (request.cqe_comp_en != 0 && (!std::has_single_bit(request.cqe_comp_res_format) ||
                                     (request.cqe_comp_res_format & ~kCompressionFormats) != 0))
        return EOPNOTSUPP;
    if ((request.flags & MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD) != 0 && request.cqe_size != 128)
        return EOPNOTSUPP;
    if (request.reserved0 != 0 || request.reserved1 != 0)
        return EINVAL;
    return 0;
}

int make_cq(const Command& command, const CqRequest& request, CompletionQueue** made) {
    if (request.comp_vector >= kCompletionVectors || (request.flags & ~kKnownCqFlags) != 0)
        return EINVAL;
    CompletionChannel* channel = nullptr;
    if (request.channel_fd >= 0) {
        channel = find_channel(command.context, request.channel_fd);
        if (channel == nullptr)
            return EBADF;
    }
    // The card has one entry more than the client counts, in a power of two.
    if (request.cqe == 0 || request.cqe > kMaxCompletionEntries)
        return EINVAL;
    const uint32_t entries = std::bit_ceil(request.cqe + 1);
    if (command.vendor_request.size() < offsetof(mlx5_ib_create_cq, flags))
        return EINVAL;
    mlx5_ib_create_cq vendor;
    if (const int error = read_request(command.vendor_request, vendor))
        return error;
    if (const int error = check_vendor_request(vendor))
        return error;
    if ((vendor.db_addr & 7) != 0)
        return EINVAL;
    if (!memory_is_mapped(vendor.buf_addr, uint64_t{entries} * vendor.cqe_size, true) ||
        !memory_is_mapped(vendor.db_addr, 8, true))
        return EFAULT;

    Device& device = command.device();
    auto cq = std::make_unique<CompletionQueue>();
    cq->cqn = allocate_cq_number(device);
    cq->user_handle = request.user_handle;
    cq->buffer = reinterpret_cast<uint8_t*>(vendor.buf_addr);
    cq->cqe_size = vendor.cqe_size;
    cq->padded = (vendor.flags & MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD) != 0;
    cq->entries = entries;
    cq->doorbell = reinterpret_cast<volatile uint32_t*>(vendor.db_addr);
    cq->ignore_overrun = (request.flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN) != 0;
    if (vendor.cqe_comp_en != 0)
        cq->compression = vendor.cqe_comp_res_format;
    cq->channel = channel;
    if (channel != nullptr)
        ++channel->use_count;
    engine_prepare(*cq);
    *made = cq.get();
    device.cqs.emplace(cq->cqn, std::move(cq));
    device.generation.fetch_add(1, std::memory_order_release);
    return 0;
}

ib_uverbs_create_cq_resp describe_cq(Context& context, const CompletionQueue& cq) {
    ib_uverbs_create_cq_resp response{};
    response.cq_handle = context.add(ObjectKind::kCompletionQueue, cq.cqn);
    response.cqe = cq.entries - 1;
    return response;
}

}  // namespace

int create_comp_channel(const Command& command) {
    Device& device = command.device();
    auto channel = std::make_unique<CompletionChannel>();
    channel->events = std::make_shared<EventQueue>();
    const int fd = channel->events->open(false);
    if (fd < 0)
        return -fd;
    const uint32_t number = allocate_channel_number(device);
    device.channels.emplace(number, std::move(channel));
    command.context.channels.push_back(number);
    remember_event_file(fd, command.context, number);
    write_response(command.response,
                   ib_uverbs_create_comp_channel_resp{.fd = static_cast<uint32_t>(fd)});
    return 0;
}

int create_cq(const Command& command) {
    ib_uverbs_create_cq request;
    if (const int error = read_request(command.request, request))
        return error;
    CompletionQueue* cq = nullptr;
    if (const int error = make_cq(
            command,
            {request.user_handle, request.cqe, request.comp_vector, request.comp_channel, 0}, &cq))
        return error;
    write_response(command.response, describe_cq(command.context, *cq));
    write_response(command.vendor_response, mlx5_ib_create_cq_resp{.cqn = cq->cqn, .reserved = 0});
    return 0;
}

int create_cq_ex(const Command& command) {
    ib_uverbs_ex_create_cq request;
    if (const int error = read_request(command.request, request))
        return error;
    if (request.comp_mask != 0)
        return EINVAL;
    if (request.reserved != 0)
        return EINVAL;
    CompletionQueue* cq = nullptr;
    if (const int error = make_cq(command,
                                  {request.user_handle, request.cqe, request.comp_vector,
                                   request.comp_channel, request.flags},
                                  &cq))
        return error;
    ib_uverbs_ex_create_cq_resp response{};
    response.base = describe_cq(command.context, *cq);
    response.response_length =
        static_cast<uint32_t>(std::min(command.response.size(), sizeof(response)));
    write_response(command.response, response);
    write_response(command.vendor_response, mlx5_ib_create_cq_resp{.cqn = cq->cqn, .reserved = 0});
    return 0;
}

int destroy_cq(const Command& command) {
    ib_uverbs_destroy_cq request;
    if (const int error = read_request(command.request, request))
        return error;
    CompletionQueue* cq = find_cq(command.context, request.cq_handle);
    if (cq == nullptr)
        return ENOENT;
    ib_uverbs_destroy_cq_resp response{};
    response.comp_events_reported = cq->events_reported;
    response.async_events_reported = cq->async_reported;
    const std::shared_ptr<EventQueue> events =
        cq->channel != nullptr ? cq->channel->events : nullptr;
    const uint64_t user_handle = cq->user_handle;
    if (const int error = destroy_cq(command.device(), cq->cqn))
        return error;
    command.context.handles.erase(request.cq_handle);
    if (events)
        response.comp_events_reported -= events->withdraw(user_handle);
    response.async_events_reported -= command.context.async_events->withdraw(user_handle);
    write_response(command.response, response);
    return 0;
}

}  // namespace softcx
