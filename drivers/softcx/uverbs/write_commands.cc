// SPDX-License-Identifier: BSD-3-Clause
#include <rdma/ib_user_verbs.h>

#include <exception>
#include <mutex>
#include <string_view>

#include "drivers/softcx/engine.h"
#include "drivers/softcx/log.h"
#include "drivers/softcx/model/refusal.h"
#include "drivers/softcx/uverbs/command.h"

namespace softcx {

namespace {

constexpr uint32_t kExtended = 0x80000000u;  // IB_USER_VERBS_CMD_FLAG_EXTENDED

struct WriteMethod {
    uint32_t number;
    const char* name;
    int (*execute)(const Command&);
    size_t request_size;   // the least that the kernel takes
    size_t response_size;  // likewise
};

#define END_OF(structure, field) (offsetof(structure, field) + sizeof(structure::field))

constexpr WriteMethod kMethods[] = {
    {IB_USER_VERBS_CMD_GET_CONTEXT, "GET_CONTEXT", get_context, sizeof(ib_uverbs_get_context),
     sizeof(ib_uverbs_get_context_resp)},
    {IB_USER_VERBS_CMD_QUERY_DEVICE, "QUERY_DEVICE", query_device, sizeof(ib_uverbs_query_device),
     sizeof(ib_uverbs_query_device_resp)},
    {kExtended | IB_USER_VERBS_EX_CMD_QUERY_DEVICE, "EX_QUERY_DEVICE", query_device_ex,
     END_OF(ib_uverbs_ex_query_device, reserved),
     END_OF(ib_uverbs_ex_query_device_resp, response_length)},
    {IB_USER_VERBS_CMD_QUERY_PORT, "QUERY_PORT", query_port, sizeof(ib_uverbs_query_port),
     sizeof(ib_uverbs_query_port_resp)},
    {IB_USER_VERBS_CMD_ALLOC_PD, "ALLOC_PD", alloc_pd, sizeof(ib_uverbs_alloc_pd),
     sizeof(ib_uverbs_alloc_pd_resp)},
    {IB_USER_VERBS_CMD_DEALLOC_PD, "DEALLOC_PD", dealloc_pd, sizeof(ib_uverbs_dealloc_pd), 0},
    {IB_USER_VERBS_CMD_REG_MR, "REG_MR", reg_mr, sizeof(ib_uverbs_reg_mr),
     sizeof(ib_uverbs_reg_mr_resp)},
    {IB_USER_VERBS_CMD_REREG_MR, "REREG_MR", rereg_mr, sizeof(ib_uverbs_rereg_mr),
     sizeof(ib_uverbs_rereg_mr_resp)},
    {IB_USER_VERBS_CMD_DEREG_MR, "DEREG_MR", dereg_mr, sizeof(ib_uverbs_dereg_mr), 0},
    {IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, "CREATE_COMP_CHANNEL", create_comp_channel,
     sizeof(ib_uverbs_create_comp_channel), sizeof(ib_uverbs_create_comp_channel_resp)},
    {IB_USER_VERBS_CMD_CREATE_CQ, "CREATE_CQ", create_cq, sizeof(ib_uverbs_create_cq),
     sizeof(ib_uverbs_create_cq_resp)},
    {kExtended | IB_USER_VERBS_EX_CMD_CREATE_CQ, "EX_CREATE_CQ", create_cq_ex,
     END_OF(ib_uverbs_ex_create_cq, reserved),
     END_OF(ib_uverbs_ex_create_cq_resp, response_length)},
    {IB_USER_VERBS_CMD_RESIZE_CQ, "RESIZE_CQ", resize_cq, sizeof(ib_uverbs_resize_cq),
     sizeof(ib_uverbs_resize_cq_resp)},
    {kExtended | IB_USER_VERBS_EX_CMD_MODIFY_CQ, "EX_MODIFY_CQ", modify_cq,
     END_OF(ib_uverbs_ex_modify_cq, reserved), 0},
    {IB_USER_VERBS_CMD_DESTROY_CQ, "DESTROY_CQ", destroy_cq, sizeof(ib_uverbs_destroy_cq),
     sizeof(ib_uverbs_destroy_cq_resp)},
    {kExtended | IB_USER_VERBS_EX_CMD_CREATE_WQ, "EX_CREATE_WQ", create_wq,
     END_OF(ib_uverbs_ex_create_wq, max_sge), END_OF(ib_uverbs_ex_create_wq_resp, wqn)},
    {kExtended | IB_USER_VERBS_EX_CMD_MODIFY_WQ, "EX_MODIFY_WQ", modify_wq,
     END_OF(ib_uverbs_ex_modify_wq, curr_wq_state), 0},
    {kExtended | IB_USER_VERBS_EX_CMD_DESTROY_WQ, "EX_DESTROY_WQ", destroy_wq,
     END_OF(ib_uverbs_ex_destroy_wq, wq_handle), END_OF(ib_uverbs_ex_destroy_wq_resp, reserved)},
    {kExtended | IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL, "EX_CREATE_RWQ_IND_TBL",
     create_rwq_ind_table, END_OF(ib_uverbs_ex_create_rwq_ind_table, log_ind_tbl_size),
     END_OF(ib_uverbs_ex_create_rwq_ind_table_resp, ind_tbl_num)},
    {kExtended | IB_USER_VERBS_EX_CMD_DESTROY_RWQ_IND_TBL, "EX_DESTROY_RWQ_IND_TBL",
     destroy_rwq_ind_table, END_OF(ib_uverbs_ex_destroy_rwq_ind_table, ind_tbl_handle), 0},
    {IB_USER_VERBS_CMD_CREATE_QP, "CREATE_QP", create_qp, sizeof(ib_uverbs_create_qp),
     sizeof(ib_uverbs_create_qp_resp)},
    {kExtended | IB_USER_VERBS_EX_CMD_CREATE_QP, "EX_CREATE_QP", create_qp_ex,
     END_OF(ib_uverbs_ex_create_qp, comp_mask),
     END_OF(ib_uverbs_ex_create_qp_resp, response_length)},
    {IB_USER_VERBS_CMD_MODIFY_QP, "MODIFY_QP", modify_qp, sizeof(ib_uverbs_modify_qp), 0},
    {kExtended | IB_USER_VERBS_EX_CMD_MODIFY_QP, "EX_MODIFY_QP", modify_qp_ex,
     END_OF(ib_uverbs_ex_modify_qp, base), END_OF(ib_uverbs_ex_modify_qp_resp, response_length)},
    {IB_USER_VERBS_CMD_QUERY_QP, "QUERY_QP", query_qp, sizeof(ib_uverbs_query_qp),
     sizeof(ib_uverbs_query_qp_resp)},
    {IB_USER_VERBS_CMD_DESTROY_QP, "DESTROY_QP", destroy_qp, sizeof(ib_uverbs_destroy_qp),
     sizeof(ib_uverbs_destroy_qp_resp)},
    {kExtended | IB_USER_VERBS_EX_CMD_CREATE_FLOW, "EX_CREATE_FLOW", create_flow,
     END_OF(ib_uverbs_create_flow, flow_attr), END_OF(ib_uverbs_create_flow_resp, flow_handle)},
    {kExtended | IB_USER_VERBS_EX_CMD_DESTROY_FLOW, "EX_DESTROY_FLOW", destroy_flow,
     END_OF(ib_uverbs_destroy_flow, flow_handle), 0},
};

#undef END_OF

const WriteMethod* find_method(uint32_t number) {
    for (const WriteMethod& method : kMethods)
        if (method.number == number)
            return &method;
    return nullptr;
}

// What a card that failed can still do: let go.
bool releases(const WriteMethod& method) {
    const std::string_view name = method.name;
    return name.find("DESTROY_") != name.npos || name.starts_with("DEALLOC_") ||
           name.starts_with("DEREG_");
}

}  // namespace

int execute_write_command(const Command& command, uint32_t number) {
    const WriteMethod* method = find_method(number);
    if (method == nullptr) {
        log(LogLevel::kInfo, "%s: command 0x%x is not modelled", command.device().name.c_str(),
            number);
        return EOPNOTSUPP;
    }
    if (command.request.size() < method->request_size ||
        command.response.size() < method->response_size)
        return ENOSPC;

    const std::lock_guard lock(command.device().mutex);
    if (!command.context.opened && number != IB_USER_VERBS_CMD_GET_CONTEXT)
        return EINVAL;
    if (!releases(*method)) {
        if (command.device().failed)
            return EIO;
        if (const int error = take_refusal(command.device()))
            return error;
    }
    // What the client announced before the command happens before it.
    engine_drain(command.device());
    int error;
    try {
        error = method->execute(command);
    } catch (const std::bad_alloc&) {
        error = ENOMEM;
    }
    log(LogLevel::kDebug, "%s: %s: %s", command.device().name.c_str(), method->name,
        error == 0 ? "done" : strerrorname_np(error));
    return error;
}

}  // namespace softcx
