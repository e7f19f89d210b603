// SPDX-License-Identifier: BSD-3-Clause
// Sequences of write commands. Each starts as a good one that names the latest objects; the
// fuzzer's bytes are laid over it, and cut or lengthen it. Between commands memory is
// written and the device runs: rings, doorbells and objects of any kind together.
#include <algorithm>
#include <array>

#include "test/fuzz/session.h"

namespace softcx::fuzz {
namespace {

constexpr uint64_t kCqRing = kBase, kCqDoorbell = kBase + 0x8000;
constexpr uint64_t kWqRing = kBase + 0x9000, kWqDoorbell = kBase + 0xa000;
constexpr uint64_t kQpRing = kBase + 0xb000, kQpDoorbell = kBase + 0xe000;
constexpr uint64_t kRegion = kBase + 0x10000;

struct Handles {
    uint32_t pd, mr, cq, wq, table, qp, flow;
};

struct Draft {
    uint32_t number;
    std::vector<uint8_t> request, vendor;
    uint32_t Handles::*made = nullptr;  // which handle its response begins with
    size_t handle_offset = 0;           // in the response
    // Where addresses are; the vendor parts with rings have them at the same places.
    enum class Addresses : uint8_t { kNone, kRings, kStart, kEverywhere };
    Addresses addresses = Addresses::kNone;
    size_t start_offset = 0;
};

template <typename Request>
Draft draft(uint32_t number, const Request& request, uint32_t Handles::*made = nullptr,
            size_t handle_offset = 0) {
    return {number, Session::bytes_of(request), {}, made, handle_offset};
}

template <typename Request, typename Vendor>
Draft draft(uint32_t number, const Request& request, const Vendor& vendor, uint32_t Handles::*made,
            size_t handle_offset = 0) {
    return {number, Session::bytes_of(request), Session::bytes_of(vendor), made, handle_offset};
}

Draft with_rings(Draft made) {
    made.addresses = Draft::Addresses::kRings;
    return made;
}

Draft with_start(Draft made, size_t offset) {
    made.addresses = Draft::Addresses::kStart;
    made.start_offset = offset;
    return made;
}

Draft create_cq_draft() {
    ib_uverbs_create_cq request{};
    request.cqe = 15;
    request.comp_channel = -1;
    mlx5_ib_create_cq vendor{};
    vendor.buf_addr = kCqRing;
    vendor.db_addr = kCqDoorbell;
    vendor.cqe_size = 64;
    return with_rings(draft(IB_USER_VERBS_CMD_CREATE_CQ, request, vendor, &Handles::cq));
}

Draft create_wq_draft(const Handles& known) {
    ib_uverbs_ex_create_wq request{};
    request.pd_handle = known.pd;
    request.cq_handle = known.cq;
    request.max_wr = 4;
    request.max_sge = 1;
    mlx5_ib_create_wq vendor{};
    vendor.buf_addr = kWqRing;
    vendor.db_addr = kWqDoorbell;
    vendor.rq_wqe_count = 8;
    vendor.rq_wqe_shift = 5;
    return with_rings(draft(kExtended | IB_USER_VERBS_EX_CMD_CREATE_WQ, request, vendor,
                            &Handles::wq, offsetof(ib_uverbs_ex_create_wq_resp, wq_handle)));
}

// A request of two parts: the first ends in an array.
template <typename Head, typename Tail>
Draft joined(uint32_t number, const Head& head, const Tail& tail, uint32_t Handles::*made,
             size_t handle_offset = 0) {
    Draft result{number, Session::bytes_of(head), {}, made, handle_offset};
    const std::vector<uint8_t> more = Session::bytes_of(tail);
    result.request.insert(result.request.end(), more.begin(), more.end());
    return result;
}

Draft create_table_draft(const Handles& known) {
    const std::array<uint32_t, 2> handles{known.wq, 0};
    return joined(kExtended | IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL,
                  ib_uverbs_ex_create_rwq_ind_table{}, handles, &Handles::table,
                  offsetof(ib_uverbs_ex_create_rwq_ind_table_resp, ind_tbl_handle));
}

Draft create_rss_qp_draft(const Handles& known) {
    ib_uverbs_ex_create_qp request{};
    request.pd_handle = known.pd;
    request.qp_type = 8;
    request.comp_mask = IB_UVERBS_CREATE_QP_MASK_IND_TABLE;
    request.rwq_ind_tbl_handle = known.table;
    mlx5_ib_create_qp_rss vendor{};
    vendor.rx_hash_function = MLX5_RX_HASH_FUNC_TOEPLITZ;
    vendor.rx_key_len = 40;
    vendor.rx_hash_fields_mask = MLX5_RX_HASH_SRC_IPV4 | MLX5_RX_HASH_DST_IPV4;
    return draft(kExtended | IB_USER_VERBS_EX_CMD_CREATE_QP, request, vendor, &Handles::qp,
                 offsetof(ib_uverbs_create_qp_resp, qp_handle));
}

Draft create_raw_qp_draft(const Handles& known) {
    ib_uverbs_create_qp request{};
    request.pd_handle = known.pd;
    request.send_cq_handle = request.recv_cq_handle = known.cq;
    request.max_send_wr = request.max_recv_wr = 4;
    request.max_send_sge = request.max_recv_sge = 1;
    request.qp_type = 8;
    mlx5_ib_create_qp vendor{};
    vendor.buf_addr = kQpRing;
    vendor.sq_buf_addr = kQpRing + 0x1000;
    vendor.db_addr = kQpDoorbell;
    vendor.sq_wqe_count = 16;
    vendor.rq_wqe_count = 4;
    vendor.rq_wqe_shift = 4;
    return with_rings(draft(IB_USER_VERBS_CMD_CREATE_QP, request, vendor, &Handles::qp,
                            offsetof(ib_uverbs_create_qp_resp, qp_handle)));
}

Draft modify_qp_draft(const Handles& known, uint8_t state) {
    ib_uverbs_modify_qp request{};
    request.qp_handle = known.qp;
    request.attr_mask = 1;  // IB_QP_STATE
    request.qp_state = state & 7;
    request.port_num = 1;
    if (request.qp_state == 1)
        request.attr_mask |= 1 << 5;  // IB_QP_PORT
    return draft(IB_USER_VERBS_CMD_MODIFY_QP, request);
}

Draft create_flow_draft(const Handles& known) {
    ib_uverbs_flow_spec_eth ethernet{};
    ethernet.type = 0x20;
    ethernet.size = sizeof(ethernet);
    ib_uverbs_create_flow head{};
    head.qp_handle = known.qp;
    head.flow_attr.size = sizeof(ethernet);
    head.flow_attr.num_of_specs = 1;
    head.flow_attr.port = 1;
    return joined(kExtended | IB_USER_VERBS_EX_CMD_CREATE_FLOW, head, ethernet, &Handles::flow,
                  offsetof(ib_uverbs_create_flow_resp, flow_handle));
}

Draft reg_mr_draft(const Handles& known) {
    ib_uverbs_reg_mr request{};
    request.start = request.hca_va = kRegion;
    request.length = 0x4000;
    request.pd_handle = known.pd;
    request.access_flags = 1;
    return with_start(draft(IB_USER_VERBS_CMD_REG_MR, request, &Handles::mr),
                      offsetof(ib_uverbs_reg_mr, start));
}

// Commands whose request is a handle, wherever it lies; zeros around it.
Draft handle_draft(uint32_t number, uint32_t handle, size_t offset, size_t size) {
    std::vector<uint8_t> request(size);
    std::memcpy(request.data() + offset, &handle, sizeof(handle));
    return {number, request, {}};
}

Draft resize_cq_draft(const Handles& known) {
    ib_uverbs_resize_cq request{};
    request.cq_handle = known.cq;
    request.cqe = 31;
    mlx5_ib_resize_cq vendor{};
    vendor.buf_addr = kCqRing + 0x4000;
    vendor.cqe_size = 64;
    return with_rings(draft(IB_USER_VERBS_CMD_RESIZE_CQ, request, vendor, nullptr));
}

// Any number, and nothing but what the fuzzer lays over it.
Draft any_draft(uint8_t detail) {
    Draft made{(detail & 0x80) != 0 ? kExtended | (detail & 0x7fu) : detail,
               std::vector<uint8_t>(64), std::vector<uint8_t>(64)};
    made.addresses = Draft::Addresses::kEverywhere;
    return made;
}

void place_addresses(const Session& session, Draft& made) {
    switch (made.addresses) {
        case Draft::Addresses::kNone:
            break;
        case Draft::Addresses::kRings:
            static_assert(offsetof(mlx5_ib_create_cq, db_addr) == 8);
            static_assert(offsetof(mlx5_ib_create_wq, db_addr) == 8);
            for (const size_t at : {size_t{0}, size_t{8}, offsetof(mlx5_ib_create_qp, sq_buf_addr)})
                session.place_address(made.vendor, at);
            break;
        case Draft::Addresses::kStart:
            session.place_address(made.request, made.start_offset);
            break;
        case Draft::Addresses::kEverywhere:
            session.place_all(made.request);
            session.place_all(made.vendor);
            break;
    }
}

Draft make_draft(uint8_t kind, uint8_t detail, const Handles& known) {
    switch (kind % 24) {
        case 0:
            return draft(IB_USER_VERBS_CMD_ALLOC_PD, ib_uverbs_alloc_pd{}, &Handles::pd);
        case 1:
            return reg_mr_draft(known);
        case 2:
            return create_cq_draft();
        case 3:
            return create_wq_draft(known);
        case 4: {
            ib_uverbs_ex_modify_wq request{};
            request.attr_mask = 1;
            request.wq_handle = known.wq;
            request.wq_state = detail % 3;
            return draft(kExtended | IB_USER_VERBS_EX_CMD_MODIFY_WQ, request);
        }
        case 5:
            return create_table_draft(known);
        case 6:
            return create_rss_qp_draft(known);
        case 7:
            return create_raw_qp_draft(known);
        case 8:
        case 9:
            return modify_qp_draft(known, detail);
        case 10:
            return create_flow_draft(known);
        case 11:
            return handle_draft(kExtended | IB_USER_VERBS_EX_CMD_DESTROY_FLOW, known.flow, 4, 8);
        case 12:
            return handle_draft(IB_USER_VERBS_CMD_DESTROY_QP, known.qp, 8,
                                sizeof(ib_uverbs_destroy_qp));
        case 13:
            return handle_draft(kExtended | IB_USER_VERBS_EX_CMD_DESTROY_RWQ_IND_TBL, known.table,
                                4, 8);
        case 14:
            return handle_draft(kExtended | IB_USER_VERBS_EX_CMD_DESTROY_WQ, known.wq, 4, 8);
        case 15:
            return handle_draft(IB_USER_VERBS_CMD_DESTROY_CQ, known.cq, 8,
                                sizeof(ib_uverbs_destroy_cq));
        case 16:
            return handle_draft(IB_USER_VERBS_CMD_DEREG_MR, known.mr, 0, 4);
        case 17:
            return handle_draft(IB_USER_VERBS_CMD_DEALLOC_PD, known.pd, 0, 4);
        case 18:
            return draft(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, ib_uverbs_create_comp_channel{});
        case 19:
            return handle_draft(IB_USER_VERBS_CMD_QUERY_QP, known.qp, 8,
                                sizeof(ib_uverbs_query_qp));
        case 20:
            return resize_cq_draft(known);
        case 21:
            return with_start(
                handle_draft(IB_USER_VERBS_CMD_REREG_MR, known.mr, 8, sizeof(ib_uverbs_rereg_mr)),
                offsetof(ib_uverbs_rereg_mr, start));
        case 22:
            return handle_draft(kExtended | IB_USER_VERBS_EX_CMD_MODIFY_CQ, known.cq, 0, 12);
        default:
            return any_draft(detail);
    }
}

void lay_over(std::vector<uint8_t>& bytes, Input& input) {
    bytes.resize(std::min<size_t>(bytes.size() + input.take<int8_t>(), 512));
    for (int changes = input.take<uint8_t>() % 8; changes > 0 && !bytes.empty(); --changes) {
        const size_t at = input.take<uint8_t>() % bytes.size();
        bytes[at] ^= input.take<uint8_t>();
    }
}

void write_memory(Session& session, Input& input) {
    const size_t at = (input.take<uint16_t>() * size_t{4}) % (kMemory - 256);
    const std::vector<uint8_t> bytes = input.take_bytes(input.take<uint8_t>());
    std::copy(bytes.begin(), bytes.end(), session.memory() + at);
}

}  // namespace

void run(Input& input) {
    Session session;
    require(session.open(), "a context opens");
    Handles known{};
    for (int command = 0; command < 48 && input.left() != 0; ++command) {
        const auto kind = input.take<uint8_t>();
        const auto detail = input.take<uint8_t>();
        if (kind >= 0xf0) {
            write_memory(session, input);
            continue;
        }
        Draft made = make_draft(kind, detail, known);
        size_t response_size = 128, vendor_response_size = 64;
        if ((kind & 0x80) != 0) {
            lay_over(made.request, input);
            lay_over(made.vendor, input);
            response_size = input.take<uint8_t>();
            vendor_response_size = input.take<uint8_t>();
        }
        place_addresses(session, made);
        const int error = session.run(made.number, made.request, response_size, made.vendor,
                                      vendor_response_size);
        if (error == 0 && made.made != nullptr && made.handle_offset + 4 <= session.response.size())
            std::memcpy(&(known.*made.made), session.response.data() + made.handle_offset, 4);
        engine_step(session.device, 32);
    }
}

}  // namespace softcx::fuzz
