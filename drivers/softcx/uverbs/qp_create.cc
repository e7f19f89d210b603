// SPDX-License-Identifier: BSD-3-Clause
// CREATE_QP, plain and extended: a raw packet QP with its own rings, or the hash
// entry (RSS QP) in front of an indirection table.
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <algorithm>
#include <bit>

#include "drivers/softcx/model/capabilities.h"
#include "drivers/softcx/model/life.h"
#include "drivers/softcx/uverbs/command.h"

namespace softcx {

namespace {

constexpr uint32_t kSendBlockBytes = 64;
constexpr uint32_t kReceiveSegmentShift = 4;
constexpr uint32_t kInvalidBfreg = ~0u;  // MLX5_IB_INVALID_BFREG

// The library always asks to scatter into the CQE; a device without it ignores the
// flag. The UAR needs no checking: doorbell records say all.
constexpr uint32_t kKnownQpFlags = MLX5_QP_FLAG_SIGNATURE | MLX5_QP_FLAG_SCATTER_CQE |
                                   MLX5_QP_FLAG_BFREG_INDEX | MLX5_QP_FLAG_UAR_PAGE_INDEX;
// A multicast frame never comes back to its sender here, so these ask for nothing.
constexpr uint32_t kKnownRssFlags =
    MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC | MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_MC;

// IB_QP_CREATE_* that a user may pass at all (cross channel and managed queues
// among them), and those that are announced.
constexpr uint32_t kUserCreateFlags =
    1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 8 | 1u << 9 | 1u << 10 | 1u << 11;
constexpr uint32_t kKnownCreateFlags = IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK |
                                       IB_UVERBS_QP_CREATE_SCATTER_FCS |
                                       IB_UVERBS_QP_CREATE_CVLAN_STRIPPING;

ib_uverbs_ex_create_qp extend(const ib_uverbs_create_qp& plain) {
    ib_uverbs_ex_create_qp request{};
    request.user_handle = plain.user_handle;
    request.pd_handle = plain.pd_handle;
    request.send_cq_handle = plain.send_cq_handle;
    request.recv_cq_handle = plain.recv_cq_handle;
    request.srq_handle = plain.srq_handle;
    request.max_send_wr = plain.max_send_wr;
    request.max_recv_wr = plain.max_recv_wr;
    request.max_send_sge = plain.max_send_sge;
    request.max_recv_sge = plain.max_recv_sge;
    request.max_inline_data = plain.max_inline_data;
    request.sq_sig_all = plain.sq_sig_all;
    request.qp_type = plain.qp_type;
    request.is_srq = plain.is_srq;
    return request;
}

int check_request(const ib_uverbs_ex_create_qp& request) {
    if ((request.comp_mask & ~static_cast<uint32_t>(IB_UVERBS_CREATE_QP_SUP_COMP_MASK)) != 0)
        return EOPNOTSUPP;
    if (request.reserved != 0 || (request.create_flags & ~kUserCreateFlags) != 0)
        return EINVAL;
    if ((request.create_flags & ~kKnownCreateFlags) != 0)
        return EOPNOTSUPP;
    if (request.qp_type != kQptRawPacket)
        return EOPNOTSUPP;
    if (request.is_srq != 0 || request.srq_handle != 0 || request.source_qpn != 0)
        return EINVAL;
    return 0;
}

// Registers the QP and returns its handle.
uint32_t publish(Context& context, std::unique_ptr<QueuePair> qp) {
    Device& device = context.device;
    const uint32_t number = qp->qpn;
    ++qp->pd->use_count;
    device.qps.emplace(number, std::move(qp));
    device.generation.fetch_add(1, std::memory_order_release);
    return context.add(ObjectKind::kQueuePair, number);
}

int check_hash(const mlx5_ib_create_qp_rss& request, const IndirectionTable& table) {
    if (request.comp_mask != 0 || (request.flags & ~kKnownRssFlags) != 0)
        return EOPNOTSUPP;
    if (!all_zero(request.reserved))
        return EINVAL;
    if (request.rx_hash_function != MLX5_RX_HASH_FUNC_TOEPLITZ)
        return EOPNOTSUPP;
    if (request.rx_key_len != kHashKeyLength)
        return EINVAL;
    if ((request.rx_hash_fields_mask & ~kHashFields) != 0)
        return EOPNOTSUPP;
    const auto any = [&](uint64_t bits) { return (request.rx_hash_fields_mask & bits) != 0; };
    const bool ipv4 = any(MLX5_RX_HASH_SRC_IPV4 | MLX5_RX_HASH_DST_IPV4);
    const bool ipv6 = any(MLX5_RX_HASH_SRC_IPV6 | MLX5_RX_HASH_DST_IPV6);
    const bool tcp = any(MLX5_RX_HASH_SRC_PORT_TCP | MLX5_RX_HASH_DST_PORT_TCP);
    const bool udp = any(MLX5_RX_HASH_SRC_PORT_UDP | MLX5_RX_HASH_DST_PORT_UDP);
    if ((ipv4 && ipv6) || (tcp && udp))
        return EINVAL;
    // Without fields there is nothing to choose by: a single entry only.
    if (request.rx_hash_fields_mask == 0 && table.entries.size() != 1)
        return EINVAL;
    return 0;
}

int make_rss_qp(const Command& command, const ib_uverbs_ex_create_qp& request, ProtectionDomain& pd,
                std::unique_ptr<QueuePair>& made) {
    IndirectionTable* table = find_table(command.context, request.rwq_ind_tbl_handle);
    if (table == nullptr)
        return EINVAL;
    // Receives go to the WQs, and there is no send side.
    if (request.max_recv_wr != 0 || request.max_recv_sge != 0 || request.max_send_wr != 0 ||
        request.create_flags != 0)
        return EINVAL;
    if (command.vendor_request.size() < sizeof(mlx5_ib_create_qp_rss))
        return EINVAL;
    mlx5_ib_create_qp_rss vendor;
    if (const int error = read_request(command.vendor_request, vendor))
        return error;
    if (const int error = check_hash(vendor, *table))
        return error;

    auto qp = std::make_unique<QueuePair>();
    qp->qpn = allocate_qp_number(command.device());
    qp->user_handle = request.user_handle;
    qp->type = request.qp_type;
    qp->state = QpState::kRtr;
    qp->pd = &pd;
    qp->rss = std::make_unique<RssContext>();
    qp->rss->table = table;
    qp->rss->fields = vendor.rx_hash_fields_mask;
    qp->rss->function = vendor.rx_hash_function;
    qp->rss->key_length = vendor.rx_key_len;
    std::copy_n(vendor.rx_hash_key, vendor.rx_key_len, qp->rss->key.begin());
    ++table->use_count;
    made = std::move(qp);
    return 0;
}

int check_rings(const ib_uverbs_ex_create_qp& request, const mlx5_ib_create_qp& vendor) {
    if ((vendor.flags & ~kKnownQpFlags) != 0)
        return EINVAL;
    if (vendor.dci_streams.log_num_concurent != 0 || vendor.dci_streams.log_num_errored != 0)
        return EINVAL;
    if (vendor.sq_wqe_count == 0 && vendor.rq_wqe_count == 0)
        return EINVAL;
    if (vendor.sq_wqe_count != 0 &&
        (!std::has_single_bit(vendor.sq_wqe_count) || vendor.sq_wqe_count > kMaxSendBlocks))
        return EINVAL;
    if (request.max_send_wr > kMaxWorkRequests || request.max_recv_wr > kMaxWorkRequests ||
        request.max_recv_wr > vendor.rq_wqe_count)
        return EINVAL;
    if (vendor.rq_wqe_count == 0)
        return 0;
    if (!std::has_single_bit(vendor.rq_wqe_count) || vendor.rq_wqe_count > kMaxWorkRequests)
        return EINVAL;
    if (vendor.rq_wqe_shift < kReceiveSegmentShift ||
        (1u << std::min(vendor.rq_wqe_shift, 31u)) > kMaxReceiveDescriptor)
        return EINVAL;
    const uint32_t signature = (vendor.flags & MLX5_QP_FLAG_SIGNATURE) != 0 ? 1 : 0;
    return (1u << vendor.rq_wqe_shift) / 16 > signature ? 0 : EINVAL;
}

int check_memory(const mlx5_ib_create_qp& vendor) {
    if ((vendor.db_addr & 7) != 0)
        return EINVAL;
    if (!memory_is_mapped(vendor.db_addr, 8, true))
        return EFAULT;
    if (vendor.sq_wqe_count != 0 &&
        !memory_is_mapped(vendor.sq_buf_addr, uint64_t{vendor.sq_wqe_count} * kSendBlockBytes,
                          false))
        return EFAULT;
    if (vendor.rq_wqe_count != 0 &&
        !memory_is_mapped(vendor.buf_addr, uint64_t{vendor.rq_wqe_count} << vendor.rq_wqe_shift,
                          false))
        return EFAULT;
    return 0;
}

int make_raw_qp(const Command& command, const ib_uverbs_ex_create_qp& request, ProtectionDomain& pd,
                std::unique_ptr<QueuePair>& made) {
    CompletionQueue* send_cq = find_cq(command.context, request.send_cq_handle);
    CompletionQueue* receive_cq = find_cq(command.context, request.recv_cq_handle);
    if (send_cq == nullptr || receive_cq == nullptr)
        return EINVAL;
    // The part after sq_buf_addr came later.
    if (command.vendor_request.size() < offsetof(mlx5_ib_create_qp, ece_options))
        return EINVAL;
    mlx5_ib_create_qp vendor;
    if (const int error = read_request(command.vendor_request, vendor))
        return error;
    if (const int error = check_rings(request, vendor))
        return error;
    if (const int error = check_memory(vendor))
        return error;

    Device& device = command.device();
    auto qp = std::make_unique<QueuePair>();
    qp->qpn = allocate_qp_number(device);
    qp->user_handle = request.user_handle;
    qp->type = request.qp_type;
    qp->pd = &pd;
    qp->user_index = vendor.uidx;
    qp->sq.cq = send_cq;
    ++send_cq->use_count;
    qp->receive_cq = receive_cq;
    ++receive_cq->use_count;
    auto* doorbell = reinterpret_cast<volatile uint32_t*>(vendor.db_addr);
    clear_doorbell_record(doorbell);
    if (vendor.sq_wqe_count != 0) {
        qp->sq.buffer = reinterpret_cast<uint8_t*>(vendor.sq_buf_addr);
        qp->sq.wqe_count = vendor.sq_wqe_count;
        qp->sq.doorbell = doorbell;
        qp->sq.signal_all = request.sq_sig_all != 0;
    }
    if (vendor.rq_wqe_count != 0) {
        qp->rq = std::make_unique<WorkQueue>();
        qp->rq->wqn = qp->qpn;
        qp->rq->user_handle = request.user_handle;
        qp->rq->pd = &pd;
        qp->rq->cq = receive_cq;
        qp->rq->buffer = reinterpret_cast<uint8_t*>(vendor.buf_addr);
        qp->rq->stride = 1u << vendor.rq_wqe_shift;
        qp->rq->wqe_count = vendor.rq_wqe_count;
        qp->rq->wqe_has_signature = (vendor.flags & MLX5_QP_FLAG_SIGNATURE) != 0;
        qp->rq->doorbell = doorbell;
        qp->rq->user_index = vendor.uidx;
        qp->rq->vlan_strip = (request.create_flags & IB_UVERBS_QP_CREATE_CVLAN_STRIPPING) != 0;
        qp->rq->scatter_fcs = (request.create_flags & IB_UVERBS_QP_CREATE_SCATTER_FCS) != 0;
    }
    made = std::move(qp);
    return 0;
}

// The vendor response is the same for every kind: nothing of it is announced
// without DEVX.
int create(const Command& command, const ib_uverbs_ex_create_qp& request,
           ib_uverbs_create_qp_resp& response) {
    if (const int error = check_request(request))
        return error;
    ProtectionDomain* pd = find_pd(command.context, request.pd_handle);
    if (pd == nullptr)
        return EINVAL;
    std::unique_ptr<QueuePair> qp;
    const bool rss = (request.comp_mask & IB_UVERBS_CREATE_QP_MASK_IND_TABLE) != 0;
    if (const int error =
            rss ? make_rss_qp(command, request, *pd, qp) : make_raw_qp(command, request, *pd, qp))
        return error;
    response = {};
    response.qpn = qp->qpn;
    response.max_send_wr = request.max_send_wr;
    response.max_recv_wr = request.max_recv_wr;
    response.max_send_sge = request.max_send_sge;
    response.max_recv_sge = request.max_recv_sge;
    response.max_inline_data = request.max_inline_data;
    response.qp_handle = publish(command.context, std::move(qp));
    mlx5_ib_create_qp_resp vendor_response{};
    vendor_response.bfreg_index = kInvalidBfreg;
    write_response(command.vendor_response, vendor_response);
    return 0;
}

}  // namespace

int create_qp(const Command& command) {
    ib_uverbs_create_qp request;
    if (const int error = read_request(command.request, request))
        return error;
    ib_uverbs_create_qp_resp response;
    if (const int error = create(command, extend(request), response))
        return error;
    write_response(command.response, response);
    return 0;
}

int create_qp_ex(const Command& command) {
    ib_uverbs_ex_create_qp request;
    if (const int error = read_request(command.request, request))
        return error;
    ib_uverbs_ex_create_qp_resp response{};
    if (const int error = create(command, request, response.base))
        return error;
    response.response_length =
        static_cast<uint32_t>(std::min(command.response.size(), sizeof(response)));
    write_response(command.response, response);
    return 0;
}

}  // namespace softcx
