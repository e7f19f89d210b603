// SPDX-License-Identifier: BSD-3-Clause
// Our structures against those of infiniband/mlx5dv.h.
#include "drivers/net/mlx5raw/prm.h"

#include <gtest/gtest.h>
#include <infiniband/mlx5dv.h>

namespace tagwire::mlx5raw {
namespace {

TEST(Prm, CompletionEntry) {
    static_assert(sizeof(Cqe) == sizeof(mlx5_cqe64));
    EXPECT_EQ(offsetof(Cqe, header), offsetof(mlx5_cqe64, hds_ip_ext));
    EXPECT_EQ(offsetof(Cqe, vlan_info), offsetof(mlx5_cqe64, vlan_info));
    EXPECT_EQ(offsetof(Cqe, byte_count), offsetof(mlx5_cqe64, byte_cnt));
    EXPECT_EQ(offsetof(Cqe, timestamp), offsetof(mlx5_cqe64, timestamp));
    EXPECT_EQ(offsetof(Cqe, flow_tag), offsetof(mlx5_cqe64, sop_drop_qpn));
    EXPECT_EQ(offsetof(Cqe, wqe_counter), offsetof(mlx5_cqe64, wqe_counter));
    EXPECT_EQ(offsetof(Cqe, op_own), offsetof(mlx5_cqe64, op_own));
}

TEST(Prm, ErrorEntry) {
    static_assert(sizeof(ErrorCqe) == sizeof(mlx5_err_cqe));
    EXPECT_EQ(offsetof(ErrorCqe, vendor_syndrome), offsetof(mlx5_err_cqe, vendor_err_synd));
    EXPECT_EQ(offsetof(ErrorCqe, syndrome), offsetof(mlx5_err_cqe, syndrome));
    EXPECT_EQ(offsetof(ErrorCqe, wqe_counter), offsetof(mlx5_err_cqe, wqe_counter));
}

TEST(Prm, SendSegments) {
    static_assert(sizeof(ControlSegment) == sizeof(mlx5_wqe_ctrl_seg));
    EXPECT_EQ(offsetof(ControlSegment, fm_ce_se), offsetof(mlx5_wqe_ctrl_seg, fm_ce_se));
    EXPECT_EQ(offsetof(EthernetSegment, checksum_flags), offsetof(mlx5_wqe_eth_seg, cs_flags));
    EXPECT_EQ(offsetof(EthernetSegment, inline_size), offsetof(mlx5_wqe_eth_seg, inline_hdr_sz));
    EXPECT_EQ(offsetof(EthernetSegment, inline_start),
              offsetof(mlx5_wqe_eth_seg, inline_hdr_start));
    EXPECT_EQ(offsetof(DataSegment, lkey), offsetof(mlx5_wqe_data_seg, lkey));
    EXPECT_EQ(offsetof(DataSegment, address), offsetof(mlx5_wqe_data_seg, addr));
}

TEST(Prm, Constants) {
    EXPECT_EQ(int{kCqeResponderError}, int{MLX5_CQE_RESP_ERR});
    EXPECT_EQ(int{kCqeRequesterError}, int{MLX5_CQE_REQ_ERR});
    EXPECT_EQ(int{kCqeResponderSend}, int{MLX5_CQE_RESP_SEND});
    EXPECT_EQ(int{kCompletionAlways}, int{MLX5_WQE_CTRL_CQ_UPDATE});
    EXPECT_EQ(int{kChecksumL3}, int{MLX5_ETH_WQE_L3_CSUM});
    EXPECT_EQ(int{kChecksumL4}, int{MLX5_ETH_WQE_L4_CSUM});
    EXPECT_EQ(int{kInvalidLkey}, int{MLX5_INVALID_LKEY});
    EXPECT_EQ(int{kSyndromeFlushed}, int{MLX5_CQE_SYNDROME_WR_FLUSH_ERR});
}

TEST(Prm, SyndromesHaveWords) {
    EXPECT_STREQ(syndrome_text(MLX5_CQE_SYNDROME_LOCAL_PROT_ERR), "local protection error");
    EXPECT_STREQ(syndrome_text(0xee), "unknown syndrome");
}

}  // namespace
}  // namespace tagwire::mlx5raw
