// SPDX-License-Identifier: BSD-3-Clause
// What the device announces through the client library, and that it can be had.
#include "test/softcx/control/verbs_rig.h"

namespace softcx::test {
namespace {

class Capabilities : public Verbs {
  protected:
    Owned<ibv_wq> make_striding_wq(uint32_t log_bytes, uint32_t log_strides, bool shift = false) {
        ibv_wq_init_attr attributes{};
        attributes.wq_type = IBV_WQT_RQ;
        attributes.max_wr = 8;
        attributes.max_sge = 1;
        attributes.pd = pd_.get();
        attributes.cq = cq_.get();
        mlx5dv_wq_init_attr vendor{};
        vendor.comp_mask = MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ;
        vendor.striding_rq_attrs.single_stride_log_num_of_bytes = log_bytes;
        vendor.striding_rq_attrs.single_wqe_log_num_of_strides = log_strides;
        vendor.striding_rq_attrs.two_byte_shift_en = shift ? 1 : 0;
        return Owned<ibv_wq>(mlx5dv_create_wq(context_.get(), &attributes, &vendor));
    }
};

TEST_F(Capabilities, LargeSend) {
    ibv_device_attr_ex attributes{};
    ASSERT_EQ(ibv_query_device_ex(context_.get(), nullptr, &attributes), 0);
    EXPECT_EQ(attributes.tso_caps.max_tso, 256u * 1024);
    EXPECT_EQ(attributes.tso_caps.supported_qpts, 1u << IBV_QPT_RAW_PACKET);
}

TEST_F(Capabilities, MultiPacketSend) {
    mlx5dv_context properties{};
    ASSERT_EQ(mlx5dv_query_device(context_.get(), &properties), 0);
    constexpr uint64_t kBoth = MLX5DV_CONTEXT_FLAGS_MPW_ALLOWED | MLX5DV_CONTEXT_FLAGS_ENHANCED_MPW;
    EXPECT_EQ(properties.flags & kBoth, kBoth);
}

TEST_F(Capabilities, StridingRing) {
    mlx5dv_context properties{};
    properties.comp_mask = MLX5DV_CONTEXT_MASK_STRIDING_RQ;
    ASSERT_EQ(mlx5dv_query_device(context_.get(), &properties), 0);
    ASSERT_EQ(properties.comp_mask, uint64_t{MLX5DV_CONTEXT_MASK_STRIDING_RQ});
    const mlx5dv_striding_rq_caps& caps = properties.striding_rq_caps;
    EXPECT_EQ(caps.supported_qpts, 1u << IBV_QPT_RAW_PACKET);
    for (const uint32_t bytes :
         {caps.min_single_stride_log_num_of_bytes, caps.max_single_stride_log_num_of_bytes})
        for (const uint32_t strides :
             {caps.min_single_wqe_log_num_of_strides, caps.max_single_wqe_log_num_of_strides})
            EXPECT_NE(make_striding_wq(bytes, strides, true), nullptr) << bytes << " " << strides;
}

TEST_F(Capabilities, AStridingRingKeepsASegmentForItsLink) {
    const Owned<ibv_wq> wq = make_striding_wq(6, 9);
    ASSERT_NE(wq, nullptr);
    mlx5dv_rwq ring{};
    mlx5dv_obj object{};
    object.rwq = {wq.get(), &ring};
    ASSERT_EQ(mlx5dv_init_obj(&object, MLX5DV_OBJ_RWQ), 0);
    EXPECT_EQ(ring.stride, 32u);
}

TEST_F(Capabilities, StridesOutsideTheRangeAreRefused) {
    EXPECT_EQ(make_striding_wq(5, 9), nullptr);
    EXPECT_EQ(make_striding_wq(14, 9), nullptr);
    EXPECT_EQ(make_striding_wq(6, 2), nullptr);
    EXPECT_EQ(make_striding_wq(6, 17), nullptr);
}

}  // namespace
}  // namespace softcx::test
