// SPDX-License-Identifier: BSD-3-Clause
// The device as a program sees it: Debian's own libibverbs and libmlx5 on softcx.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "drivers/softcx/softcx.h"

namespace softcx::test {

struct Release {
    void operator()(ibv_context* context) const { ibv_close_device(context); }
    void operator()(ibv_pd* pd) const { EXPECT_EQ(ibv_dealloc_pd(pd), 0); }
    void operator()(ibv_cq* cq) const { EXPECT_EQ(ibv_destroy_cq(cq), 0); }
    void operator()(ibv_mr* mr) const { EXPECT_EQ(ibv_dereg_mr(mr), 0); }
    void operator()(ibv_wq* wq) const { EXPECT_EQ(ibv_destroy_wq(wq), 0); }
    void operator()(ibv_rwq_ind_table* table) const {
        EXPECT_EQ(ibv_destroy_rwq_ind_table(table), 0);
    }
    void operator()(ibv_qp* qp) const { EXPECT_EQ(ibv_destroy_qp(qp), 0); }
    void operator()(ibv_flow* flow) const { EXPECT_EQ(ibv_destroy_flow(flow), 0); }
    void operator()(ibv_comp_channel* channel) const {
        EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
    }
};

template <class Object>
using Owned = std::unique_ptr<Object, Release>;

// nullptr when there is no such device.
inline Owned<ibv_context> open_device(const char* name = "mlx5_0") {
    ibv_device** list = ibv_get_device_list(nullptr);
    Owned<ibv_context> context;
    for (ibv_device** device = list; list != nullptr && *device != nullptr; ++device)
        if (std::strcmp(ibv_get_device_name(*device), name) == 0)
            context.reset(ibv_open_device(*device));
    if (list != nullptr)
        ibv_free_device_list(list);
    return context;
}

class Verbs : public ::testing::Test {
  protected:
    void SetUp() override {
        context_ = open_device();
        ASSERT_NE(context_, nullptr);
        pd_.reset(ibv_alloc_pd(context_.get()));
        ASSERT_NE(pd_, nullptr);
        cq_.reset(ibv_create_cq(context_.get(), 255, nullptr, nullptr, 0));
        ASSERT_NE(cq_, nullptr);
    }

    Owned<ibv_wq> make_wq(ibv_pd* pd, ibv_cq* cq, uint32_t max_wr = 16, uint32_t max_sge = 1) {
        ibv_wq_init_attr attributes{};
        attributes.wq_type = IBV_WQT_RQ;
        attributes.max_wr = max_wr;
        attributes.max_sge = max_sge;
        attributes.pd = pd;
        attributes.cq = cq;
        return Owned<ibv_wq>(ibv_create_wq(context_.get(), &attributes));
    }

    Owned<ibv_wq> make_wq() { return make_wq(pd_.get(), cq_.get()); }

    static int move(ibv_wq* wq, ibv_wq_state to) {
        ibv_wq_attr attributes{};
        attributes.attr_mask = IBV_WQ_ATTR_STATE;
        attributes.wq_state = to;
        return ibv_modify_wq(wq, &attributes);
    }

    Owned<ibv_rwq_ind_table> make_table(std::vector<ibv_wq*> entries) {
        ibv_rwq_ind_table_init_attr attributes{};
        while ((size_t{1} << attributes.log_ind_tbl_size) < entries.size())
            ++attributes.log_ind_tbl_size;
        attributes.ind_tbl = entries.data();
        return Owned<ibv_rwq_ind_table>(ibv_create_rwq_ind_table(context_.get(), &attributes));
    }

    Owned<ibv_qp> make_rss_qp(ibv_rwq_ind_table* table, uint64_t fields = 0,
                              uint8_t key_length = 40) {
        static std::array<uint8_t, 40> key{0x6d, 0x5a};
        ibv_qp_init_attr_ex attributes{};
        attributes.qp_type = IBV_QPT_RAW_PACKET;
        attributes.comp_mask =
            IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_IND_TABLE;
        attributes.pd = pd_.get();
        attributes.rwq_ind_tbl = table;
        attributes.rx_hash_conf.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
        attributes.rx_hash_conf.rx_hash_key_len = key_length;
        attributes.rx_hash_conf.rx_hash_key = key.data();
        attributes.rx_hash_conf.rx_hash_fields_mask = fields;
        return Owned<ibv_qp>(ibv_create_qp_ex(context_.get(), &attributes));
    }

    Owned<ibv_qp> make_raw_qp(ibv_cq* cq, uint32_t send_wr = 16, uint32_t receive_wr = 16) {
        ibv_qp_init_attr attributes{};
        attributes.qp_type = IBV_QPT_RAW_PACKET;
        attributes.send_cq = cq;
        attributes.recv_cq = cq;
        attributes.cap.max_send_wr = send_wr;
        attributes.cap.max_recv_wr = receive_wr;
        attributes.cap.max_send_sge = 1;
        attributes.cap.max_recv_sge = 1;
        return Owned<ibv_qp>(ibv_create_qp(pd_.get(), &attributes));
    }

    static int move(ibv_qp* qp, ibv_qp_state to, int more = 0) {
        ibv_qp_attr attributes{};
        attributes.qp_state = to;
        attributes.port_num = 1;
        return ibv_modify_qp(qp, &attributes, IBV_QP_STATE | more);
    }

    static void ready_to_send(ibv_qp* qp) {
        ASSERT_EQ(move(qp, IBV_QPS_INIT, IBV_QP_PORT), 0);
        ASSERT_EQ(move(qp, IBV_QPS_RTR), 0);
        ASSERT_EQ(move(qp, IBV_QPS_RTS), 0);
    }

    static Owned<ibv_flow> take_all(ibv_qp* qp) {
        ibv_flow_attr attributes{};
        attributes.type = IBV_FLOW_ATTR_ALL_DEFAULT;
        attributes.size = sizeof(attributes);
        attributes.port = 1;
        return Owned<ibv_flow>(ibv_create_flow(qp, &attributes));
    }

    Owned<ibv_mr> register_memory(ibv_pd* pd, std::vector<uint8_t>& memory) {
        return Owned<ibv_mr>(ibv_reg_mr(pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE));
    }

    static int post_receive(ibv_wq* wq, const std::vector<uint8_t>& memory, uint32_t lkey,
                            uint64_t id = 1) {
        ibv_sge segment{reinterpret_cast<uintptr_t>(memory.data()),
                        static_cast<uint32_t>(memory.size()), lkey};
        ibv_recv_wr request{};
        request.wr_id = id;
        request.sg_list = &segment;
        request.num_sge = 1;
        ibv_recv_wr* bad = nullptr;
        return ibv_post_wq_recv(wq, &request, &bad);
    }

    static int post_send(ibv_qp* qp, const std::vector<uint8_t>& frame, uint32_t lkey) {
        ibv_sge segment{reinterpret_cast<uintptr_t>(frame.data()),
                        static_cast<uint32_t>(frame.size()), lkey};
        ibv_send_wr request{};
        request.wr_id = 2;
        request.sg_list = &segment;
        request.num_sge = 1;
        request.opcode = IBV_WR_SEND;
        request.send_flags = IBV_SEND_SIGNALED;
        ibv_send_wr* bad = nullptr;
        return ibv_post_send(qp, &request, &bad);
    }

    static std::vector<uint8_t> broadcast_frame(size_t size = 60) {
        std::vector<uint8_t> frame(size, 0x5a);
        std::fill_n(frame.begin(), 6, uint8_t{0xff});
        std::copy_n(std::array<uint8_t, 8>{2, 0, 0, 0, 0, 9, 0x88, 0xb5}.begin(), 8,
                    frame.begin() + 6);
        return frame;
    }

    static void run_device() {
        for (int i = 0; i < 16; ++i)
            softcx_step();
    }

    static std::vector<ibv_wc> completions(ibv_cq* cq) {
        std::vector<ibv_wc> all;
        ibv_wc one;
        while (ibv_poll_cq(cq, 1, &one) > 0)
            all.push_back(one);
        return all;
    }

    Owned<ibv_context> context_;
    Owned<ibv_pd> pd_;
    Owned<ibv_cq> cq_;
};

}  // namespace softcx::test
