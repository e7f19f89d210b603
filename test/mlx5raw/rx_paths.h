// SPDX-License-Identifier: BSD-3-Clause
// Tests that run on every receive path.
#pragma once

#include <ostream>

#include "drivers/net/mlx5raw/rx_path.h"
#include "test/mlx5raw/port_fixture.h"

namespace tagwire::mlx5raw {

struct RxPathCase {
    const char* name;
    const char* devargs;
    uint16_t mtu;
    uint64_t offloads;
    const char* mode;  // as rx_burst_mode_get names it
    uint16_t simd_width = 256;
};

// What --force-max-simd-bitwidth would say; for ports that start from now on.
void set_simd_width(uint16_t bits);

inline void PrintTo(const RxPathCase& path, std::ostream* out) {
    *out << path.mode;
}

inline constexpr RxPathCase kEveryRxPath[] = {
    {"Scalar", "rx_vec_en=0,rxq_cqe_comp_en=0", RTE_ETHER_MTU, 0, "scalar"},
    {"Vector", "rx_vec_en=1,rxq_cqe_comp_en=0", RTE_ETHER_MTU, 0, "vector AVX2"},
    {"Scatter", "rxq_cqe_comp_en=0", 9000, RTE_ETH_RX_OFFLOAD_SCATTER, "scalar scatter"},
    {"ScalarCompressed", "rx_vec_en=0", RTE_ETHER_MTU, 0, "scalar, compressed CQEs"},
    {"VectorCompressed", "", RTE_ETHER_MTU, 0, "vector AVX2, compressed CQEs"},
    {"ScatterCompressed", "", 9000, RTE_ETH_RX_OFFLOAD_SCATTER, "scalar scatter, compressed CQEs"},
    {"Vector512", "rxq_cqe_comp_en=0", RTE_ETHER_MTU, 0, "vector AVX-512", 512},
    {"Vector512Compressed", "", RTE_ETHER_MTU, 0, "vector AVX-512, compressed CQEs", 512},
    {"Striding", "mprq_en=1,rxq_cqe_comp_en=0", RTE_ETHER_MTU, 0, "striding"},
    {"StridingCompressed", "mprq_en=1", RTE_ETHER_MTU, 0, "striding, compressed CQEs"},
};

inline std::string name_of_path(const testing::TestParamInfo<RxPathCase>& info) {
    return info.param.name;
}

class RxPathTest : public PortPair, public testing::WithParamInterface<RxPathCase> {
  protected:
    void SetUp() override {
        if (GetParam().simd_width == 512 && !has_rx_avx512()) {
            GTEST_SKIP() << "this processor has no AVX-512 with VBMI";
        }
        set_simd_width(GetParam().simd_width);
        PortPair::SetUp();
    }
    void TearDown() override {
        if (!IsSkipped()) {
            PortPair::TearDown();
            set_simd_width(256);
        }
    }

    // One queue.
    PortOptions options(uint64_t offloads) const {
        return {.devargs = GetParam().devargs,
                .queues = 1,
                .mtu = GetParam().mtu,
                .rx_offloads = GetParam().offloads | offloads};
    }

    std::vector<rte_mbuf*> receive_burst(uint16_t most) {
        std::vector<rte_mbuf*> packets(most);
        packets.resize(rte_eth_rx_burst(ports[1], 0, packets.data(), most));
        return packets;
    }

    std::vector<rte_mbuf*> exchange_burst(const std::vector<Frame>& frames) {
        std::vector<rte_mbuf*> out;
        for (const Frame& frame : frames) {
            out.push_back(make_mbuf(frame));
        }
        send(ports[0], 0, out);
        settle();
        return receive_burst(static_cast<uint16_t>(frames.size()));
    }

    static Frame bytes_of(const rte_mbuf* packet) {
        Frame frame(packet->pkt_len);
        uint32_t at = 0;
        for (; packet != nullptr; packet = packet->next) {
            memcpy(&frame[at], rte_pktmbuf_mtod(packet, const void*), packet->data_len);
            at += packet->data_len;
        }
        return frame;
    }
};

}  // namespace tagwire::mlx5raw
