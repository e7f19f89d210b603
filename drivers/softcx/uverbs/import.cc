// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/uverbs/import.h"

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_cmds.h>

#include <mutex>

#include "drivers/softcx/model/capabilities.h"
#include "drivers/softcx/model/events.h"

namespace softcx {

namespace {

// Fills in an attribute that the client may leave out.
template <class Value>
int answer(const Attributes& attributes, uint16_t id, const Value& value) {
    std::span<uint8_t> bytes;
    if (const int error = attributes.output(id, bytes))
        return error;
    if (bytes.empty())
        return 0;
    if (bytes.size() < sizeof(Value))
        return ENOSPC;
    write_response(bytes, value);
    attributes.mark_written(id);
    return 0;
}

}  // namespace

int query_context(Context& context, const Attributes& attributes) {
    if (const int error = attributes.allow_only({UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS,
                                                 UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT,
                                                 MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX}))
        return error;
    const std::lock_guard lock(context.device.mutex);
    if (!context.opened)
        return EINVAL;
    if (const int error =
            answer(attributes, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, kCompletionVectors))
        return error;
    if (const int error = answer(attributes, UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, uint64_t{0}))
        return error;
    // A library may know a shorter or a longer form.
    std::span<uint8_t> properties;
    if (const int error = attributes.output(MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, properties))
        return error;
    if (!properties.empty()) {
        write_response(properties, context_properties(context.cqe_version));
        attributes.mark_written(MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX);
    }
    return 0;
}

int query_pd(Context& context, const Attributes& attributes) {
    if (const int error =
            attributes.allow_only({MLX5_IB_ATTR_QUERY_PD_HANDLE, MLX5_IB_ATTR_QUERY_PD_RESP_PDN}))
        return error;
    uint32_t handle;
    if (const int error = attributes.handle(MLX5_IB_ATTR_QUERY_PD_HANDLE, handle))
        return error;
    const std::lock_guard lock(context.device.mutex);
    const ProtectionDomain* pd = find_pd(context, handle);
    if (pd == nullptr)
        return ENOENT;
    return answer(attributes, MLX5_IB_ATTR_QUERY_PD_RESP_PDN, pd->pdn);
}

int query_mr(Context& context, const Attributes& attributes) {
    if (const int error =
            attributes.allow_only({UVERBS_ATTR_QUERY_MR_HANDLE, UVERBS_ATTR_QUERY_MR_RESP_LKEY,
                                   UVERBS_ATTR_QUERY_MR_RESP_RKEY, UVERBS_ATTR_QUERY_MR_RESP_LENGTH,
                                   UVERBS_ATTR_QUERY_MR_RESP_IOVA}))
        return error;
    uint32_t handle;
    if (const int error = attributes.handle(UVERBS_ATTR_QUERY_MR_HANDLE, handle))
        return error;
    const std::lock_guard lock(context.device.mutex);
    const MemoryRegion* mr = find_mr(context, handle);
    if (mr == nullptr)
        return ENOENT;
    if (const int error = answer(attributes, UVERBS_ATTR_QUERY_MR_RESP_LKEY, mr->lkey))
        return error;
    if (const int error = answer(attributes, UVERBS_ATTR_QUERY_MR_RESP_RKEY, mr->rkey))
        return error;
    if (const int error = answer(attributes, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, mr->length))
        return error;
    return answer(attributes, UVERBS_ATTR_QUERY_MR_RESP_IOVA, mr->iova);
}

// One more reader of what concerns the port and the whole device. Events of objects go to
// the descriptor that GET_CONTEXT made.
int alloc_async_events(Context& context, const Attributes& attributes) {
    if (const int error = attributes.allow_only({UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE}))
        return error;
    if (!attributes.has(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE))
        return EINVAL;
    const std::lock_guard lock(context.device.mutex);
    if (!context.opened)
        return EINVAL;
    auto events = std::make_shared<EventQueue>();
    const int fd = events->open(false);
    if (fd < 0)
        return -fd;
    context.more_async_events.push_back(std::move(events));
    attributes.set_handle(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, static_cast<uint32_t>(fd));
    return 0;
}

}  // namespace softcx
