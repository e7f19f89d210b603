// SPDX-License-Identifier: BSD-3-Clause
// Work queues and their indirection tables.
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <algorithm>
#include <bit>

#include "drivers/softcx/model/capabilities.h"
#include "drivers/softcx/model/events.h"
#include "drivers/softcx/model/life.h"
#include "drivers/softcx/model/transitions.h"
#include "drivers/softcx/uverbs/command.h"

namespace softcx {

namespace {

constexpr uint32_t kSegmentShift = 4;  // a data segment has 16 bytes

// enum ib_wq_attr_mask of the kernel.
constexpr uint32_t kWqAttributeState = 1, kWqAttributeCurrentState = 2, kWqAttributeFlags = 4;

constexpr uint32_t kKnownWqFlags =
    IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING | IB_UVERBS_WQ_FLAGS_SCATTER_FCS;

struct Ring {
    uint32_t stride;
    uint32_t count;
    uint32_t segments;  // what the client may use of each entry
};

bool is_striding(const mlx5_ib_create_wq& request) {
    return (request.comp_mask & MLX5_IB_CREATE_WQ_STRIDING_RQ) != 0;
}

int check_ring(const mlx5_ib_create_wq& request, Ring& ring) {
    if ((request.comp_mask & ~static_cast<uint32_t>(MLX5_IB_CREATE_WQ_STRIDING_RQ)) != 0)
        return EOPNOTSUPP;
    const bool striding = is_striding(request);
    if (striding && (request.single_stride_log_num_of_bytes < kMinLogStrideBytes ||
                     request.single_stride_log_num_of_bytes > kMaxLogStrideBytes ||
                     request.single_wqe_log_num_of_strides < kMinLogStrides ||
                     request.single_wqe_log_num_of_strides > kMaxLogStrides))
        return EINVAL;
    if ((request.flags & ~static_cast<uint32_t>(MLX5_WQ_FLAG_SIGNATURE)) != 0)
        return EINVAL;
    if (!std::has_single_bit(request.rq_wqe_count) || request.rq_wqe_count > kMaxWorkRequests)
        return EINVAL;
    if (request.rq_wqe_shift < kSegmentShift ||
        request.rq_wqe_shift > static_cast<uint32_t>(std::countr_zero(kMaxReceiveDescriptor)))
        return EINVAL;
    const uint32_t signature = (request.flags & MLX5_WQ_FLAG_SIGNATURE) != 0 ? 1 : 0;
    ring.stride = 1u << request.rq_wqe_shift;
    ring.count = request.rq_wqe_count;
    const uint32_t not_data = signature + (striding ? 1 : 0);
    if (ring.stride / 16 <= not_data)
        return EINVAL;
    ring.segments = ring.stride / 16 - not_data;
    return 0;
}

}  // namespace

int create_wq(const Command& command) {
    ib_uverbs_ex_create_wq request;
    if (const int error = read_request(command.request, request))
        return error;
    if (request.comp_mask != 0 || (request.create_flags & ~kKnownWqFlags) != 0 ||
        request.reserved != 0)
        return EOPNOTSUPP;
    if (request.wq_type != IB_UVERBS_WQT_RQ)
        return EINVAL;
    ProtectionDomain* pd = find_pd(command.context, request.pd_handle);
    CompletionQueue* cq = find_cq(command.context, request.cq_handle);
    if (pd == nullptr || cq == nullptr)
        return EINVAL;
    if (request.max_wr > kMaxWorkRequests)
        return EINVAL;

    if (command.vendor_request.size() < offsetof(mlx5_ib_create_wq, single_stride_log_num_of_bytes))
        return EINVAL;
    mlx5_ib_create_wq vendor;
    if (const int error = read_request(command.vendor_request, vendor))
        return error;
    Ring ring;
    if (const int error = check_ring(vendor, ring))
        return error;
    if (request.max_wr > ring.count || request.max_sge > ring.segments)
        return EINVAL;
    if ((vendor.db_addr & 7) != 0)
        return EINVAL;
    if (!memory_is_mapped(vendor.buf_addr, uint64_t{ring.stride} * ring.count, false) ||
        !memory_is_mapped(vendor.db_addr, 8, true))
        return EFAULT;

    Device& device = command.device();
    auto wq = std::make_unique<WorkQueue>();
    wq->wqn = allocate_wq_number(device);
    wq->user_handle = request.user_handle;
    wq->pd = pd;
    wq->cq = cq;
    wq->buffer = reinterpret_cast<uint8_t*>(vendor.buf_addr);
    wq->stride = ring.stride;
    wq->wqe_count = ring.count;
    wq->wqe_has_signature = (vendor.flags & MLX5_WQ_FLAG_SIGNATURE) != 0;
    if (is_striding(vendor)) {
        wq->striding = true;
        wq->log_stride_bytes = static_cast<uint8_t>(vendor.single_stride_log_num_of_bytes);
        wq->log_strides = static_cast<uint8_t>(vendor.single_wqe_log_num_of_strides);
        wq->two_byte_shift = vendor.two_byte_shift_en != 0;
    }
    wq->doorbell = reinterpret_cast<volatile uint32_t*>(vendor.db_addr);
    clear_doorbell_record(wq->doorbell);
    wq->user_index = vendor.user_index;
    wq->vlan_strip = (request.create_flags & IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING) != 0;
    wq->scatter_fcs = (request.create_flags & IB_UVERBS_WQ_FLAGS_SCATTER_FCS) != 0;
    ++pd->use_count;
    ++cq->use_count;
    const uint32_t number = wq->wqn;
    device.wqs.emplace(number, std::move(wq));
    device.generation.fetch_add(1, std::memory_order_release);

    ib_uverbs_ex_create_wq_resp response{};
    response.response_length =
        static_cast<uint32_t>(std::min(command.response.size(), sizeof(response)));
    response.wq_handle = command.context.add(ObjectKind::kWorkQueue, number);
    response.max_wr = ring.count;
    response.max_sge = ring.segments;
    response.wqn = number;
    write_response(command.response, response);
    mlx5_ib_create_wq_resp vendor_response{};
    vendor_response.response_length =
        static_cast<uint32_t>(std::min(command.vendor_response.size(), sizeof(vendor_response)));
    write_response(command.vendor_response, vendor_response);
    return 0;
}

int modify_wq(const Command& command) {
    ib_uverbs_ex_modify_wq request;
    if (const int error = read_request(command.request, request))
        return error;
    if (request.attr_mask == 0 ||
        (request.attr_mask & ~(kWqAttributeState | kWqAttributeCurrentState | kWqAttributeFlags)) !=
            0)
        return EINVAL;
    WorkQueue* wq = find_wq(command.context, request.wq_handle);
    if (wq == nullptr)
        return EINVAL;
    // VLAN stripping is the one flag that can change later.
    const bool changes_flags = (request.attr_mask & kWqAttributeFlags) != 0;
    if (changes_flags &&
        (request.flags_mask & ~static_cast<uint32_t>(IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING)) != 0)
        return EOPNOTSUPP;
    mlx5_ib_modify_wq vendor;
    if (const int error = read_request(command.vendor_request, vendor))
        return error;
    if (vendor.comp_mask != 0 || vendor.reserved != 0)
        return EOPNOTSUPP;

    if ((request.attr_mask & kWqAttributeCurrentState) != 0 &&
        wq_state(request.curr_wq_state) != wq->state)
        return EINVAL;
    const bool moves = (request.attr_mask & kWqAttributeState) != 0;
    const std::optional<WqState> to = moves ? wq_state(request.wq_state) : wq->state;
    if (!to || (moves && !wq_may_move(wq->state, *to)))
        return EINVAL;
    if (changes_flags && (request.flags_mask & IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING) != 0)
        wq->vlan_strip = (request.flags & IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING) != 0;
    if (moves)
        move_wq(command.device(), *wq, *to);
    return 0;
}

int destroy_wq(const Command& command) {
    ib_uverbs_ex_destroy_wq request;
    if (const int error = read_request(command.request, request))
        return error;
    if (request.comp_mask != 0)
        return EOPNOTSUPP;
    const WorkQueue* wq = find_wq(command.context, request.wq_handle);
    if (wq == nullptr)
        return ENOENT;
    ib_uverbs_ex_destroy_wq_resp response{};
    response.response_length =
        static_cast<uint32_t>(std::min(command.response.size(), sizeof(response)));
    response.events_reported = wq->async_reported;
    const uint64_t user_handle = wq->user_handle;
    if (const int error = destroy_wq(command.device(), wq->wqn))
        return error;
    command.context.handles.erase(request.wq_handle);
    response.events_reported -= command.context.async_events->withdraw(user_handle);
    write_response(command.response, response);
    return 0;
}

int create_rwq_ind_table(const Command& command) {
    constexpr size_t kHeader = sizeof(ib_uverbs_ex_create_rwq_ind_table);
    ib_uverbs_ex_create_rwq_ind_table request;
    if (const int error = read_request(command.request.first(kHeader), request))
        return error;
    if (request.comp_mask != 0)
        return EOPNOTSUPP;
    if (!all_zero(command.vendor_request))
        return EOPNOTSUPP;
    if (request.log_ind_tbl_size > IB_USER_VERBS_MAX_LOG_IND_TBL_SIZE)
        return EINVAL;
    const uint32_t size = 1u << request.log_ind_tbl_size;
    const std::span<const uint8_t> handles = command.request.subspan(kHeader);
    if (handles.size() < size * sizeof(uint32_t) || size > kMaxTableSize)
        return EINVAL;
    if (!all_zero(handles.subspan(size * sizeof(uint32_t))))
        return EOPNOTSUPP;

    auto table = std::make_unique<IndirectionTable>();
    table->entries.reserve(size);
    for (uint32_t i = 0; i < size; ++i) {
        uint32_t handle;
        std::memcpy(&handle, handles.data() + i * sizeof(handle), sizeof(handle));
        WorkQueue* wq = find_wq(command.context, handle);
        if (wq == nullptr)
            return EINVAL;
        table->entries.push_back(wq);
    }
    for (WorkQueue* wq : table->entries)
        ++wq->use_count;
    Device& device = command.device();
    table->number = allocate_table_number(device);
    const uint32_t number = table->number;
    device.tables.emplace(number, std::move(table));
    device.generation.fetch_add(1, std::memory_order_release);

    ib_uverbs_ex_create_rwq_ind_table_resp response{};
    response.response_length =
        static_cast<uint32_t>(std::min(command.response.size(), sizeof(response)));
    response.ind_tbl_handle = command.context.add(ObjectKind::kIndirectionTable, number);
    response.ind_tbl_num = number;
    write_response(command.response, response);
    mlx5_ib_create_rwq_ind_tbl_resp vendor_response{};
    vendor_response.response_length =
        static_cast<uint32_t>(std::min(command.vendor_response.size(), sizeof(vendor_response)));
    write_response(command.vendor_response, vendor_response);
    return 0;
}

int destroy_rwq_ind_table(const Command& command) {
    ib_uverbs_ex_destroy_rwq_ind_table request;
    if (const int error = read_request(command.request, request))
        return error;
    if (request.comp_mask != 0)
        return EOPNOTSUPP;
    const IndirectionTable* table = find_table(command.context, request.ind_tbl_handle);
    if (table == nullptr)
        return ENOENT;
    if (const int error = destroy_table(command.device(), table->number))
        return error;
    command.context.handles.erase(request.ind_tbl_handle);
    return 0;
}

}  // namespace softcx
