/* SPDX-License-Identifier: BSD-3-Clause */
/* Somebody else's verbs program: sends one frame to itself on mlx5_0. It knows of softcx only
 * when it is built with WITH_SOFTCX, to step the device itself. */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef WITH_SOFTCX
#include <softcx.h>
#endif

static void need(int condition, const char* what) {
    if (condition)
        return;
    perror(what);
    exit(1);
}

int main(void) {
    int count = 0;
    struct ibv_device** devices = ibv_get_device_list(&count);
    need(devices != NULL && count == 1, "one device");
    struct ibv_context* context = ibv_open_device(devices[0]);
    need(context != NULL, "ibv_open_device");
    struct ibv_pd* pd = ibv_alloc_pd(context);
    struct ibv_cq* cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    need(pd != NULL && cq != NULL, "pd and cq");
    static uint8_t frames[2][2048];
    struct ibv_mr* mr = ibv_reg_mr(pd, frames, sizeof(frames), IBV_ACCESS_LOCAL_WRITE);
    need(mr != NULL, "ibv_reg_mr");
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RAW_PACKET,
                                    .cap = {.max_send_wr = 4, .max_recv_wr = 4,
                                            .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp* qp = ibv_create_qp(pd, &init);
    need(qp != NULL, "ibv_create_qp");
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    need(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT) == 0, "INIT");
    attr.qp_state = IBV_QPS_RTR;
    need(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0, "RTR");
    attr.qp_state = IBV_QPS_RTS;
    need(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0, "RTS");
    struct ibv_flow_attr rule = {.type = IBV_FLOW_ATTR_ALL_DEFAULT, .size = sizeof(rule), .port = 1};
    struct ibv_flow* flow = ibv_create_flow(qp, &rule);
    need(flow != NULL, "ibv_create_flow");

    struct ibv_sge to = {(uintptr_t)frames[1], sizeof(frames[1]), mr->lkey};
    struct ibv_recv_wr receive = {.wr_id = 1, .sg_list = &to, .num_sge = 1}, *bad_receive;
    need(ibv_post_recv(qp, &receive, &bad_receive) == 0, "ibv_post_recv");
    memset(frames[0], 0x5a, 100);
    memset(frames[0], 0xff, 6);
    struct ibv_sge from = {(uintptr_t)frames[0], 100, mr->lkey};
    struct ibv_send_wr send = {.wr_id = 2, .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED}, *bad_send;
    need(ibv_post_send(qp, &send, &bad_send) == 0, "ibv_post_send");

    int done = 0;
    struct ibv_wc wc;
    while (done < 2) {
#ifdef WITH_SOFTCX
        softcx_step();
#endif
        if (ibv_poll_cq(cq, 1, &wc) == 1) {
            need(wc.status == IBV_WC_SUCCESS, "completion");
            ++done;
        }
    }
    need(memcmp(frames[0], frames[1], 100) == 0, "the frame that came back");
    need(ibv_destroy_flow(flow) == 0 && ibv_destroy_qp(qp) == 0 && ibv_dereg_mr(mr) == 0, "release");
    need(ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0, "close");
#ifdef WITH_SOFTCX
    puts(softcx_describe());
#endif
    puts("a frame went round");
    return 0;
}
