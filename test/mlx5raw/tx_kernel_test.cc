// SPDX-License-Identifier: BSD-3-Clause
// The vector loops of transmission beside the scalar builders.
#include "drivers/net/mlx5raw/tx_kernel.h"

#include <gtest/gtest.h>
#include <rte_cpuflags.h>

#include <array>
#include <functional>
#include <random>
#include <vector>

#include "drivers/net/mlx5raw/wqe.h"

namespace tagwire::mlx5raw {
namespace {

constexpr uint32_t kCount = 23;  // groups of four, and a rest
constexpr uint32_t kInGroups = kCount / 4 * 4;
constexpr uintptr_t kBase = 0x7f0000200000;
constexpr uintptr_t kLength = 0x200000;

class TxKernel : public testing::TestWithParam<WritePointers> {
  protected:
    void SetUp() override {
        if (rte_cpu_get_flag_enabled(RTE_CPUFLAG_AVX2) <= 0) {
            GTEST_SKIP() << "no AVX2 here";
        }
        for (uint32_t i = 0; i < kCount; ++i) {
            rte_mbuf& mbuf = mbufs_[i];
            mbuf.buf_addr = reinterpret_cast<void*>(kBase + random_() % (kLength - 0x10000));
            mbuf.data_off = static_cast<uint16_t>(random_());
            mbuf.refcnt = 1;
            mbuf.nb_segs = 1;
            mbuf.port = static_cast<uint16_t>(random_());
            mbuf.ol_flags = kFlags | RTE_MBUF_F_TX_IPV4;
            mbuf.packet_type = static_cast<uint32_t>(random_());
            mbuf.data_len = static_cast<uint16_t>(14 + random_() % (65536 - 14));
            mbuf.pkt_len = mbuf.data_len;
            mbuf.vlan_tci = static_cast<uint16_t>(random_());
            mbuf.pool = pool_;
            packets_[i] = &mbuf;
        }
    }
    uint32_t write() {
        segments_.fill({});
        kept_.fill(nullptr);
        bytes_ = 1000;
        return GetParam()(reinterpret_cast<uint8_t*>(segments_.data()), packets_.data(),
                          kept_.data(), kCount, session_, bytes_);
    }
    void expect_written(uint32_t count) {
        uint64_t bytes = 1000;
        for (uint32_t i = 0; i < count; ++i) {
            DataSegment expected;
            write_data(expected, mbufs_[i].data_len, Be32{session_.lkey},
                       reinterpret_cast<uintptr_t>(mbufs_[i].buf_addr) + mbufs_[i].data_off);
            EXPECT_EQ(memcmp(&segments_[i], &expected, sizeof(expected)), 0) << i;
            EXPECT_EQ(kept_[i], packets_[i]) << i;
            bytes += mbufs_[i].data_len;
        }
        EXPECT_EQ(bytes_, bytes);
        for (uint32_t i = kInGroups; i < kCount; ++i) {
            EXPECT_EQ(segments_[i].byte_count.raw, 0u) << "behind the end";
            EXPECT_EQ(kept_[i], nullptr) << "behind the end";
        }
    }
    bool with_offloads() const { return GetParam() == write_pointers_offloads_avx2; }

    static constexpr uint64_t kFlags = RTE_MBUF_F_TX_UDP_CKSUM | RTE_MBUF_F_TX_IP_CKSUM;
    std::mt19937_64 random_{3};
    rte_mempool* const pool_ = reinterpret_cast<rte_mempool*>(0x1000);
    std::array<rte_mbuf, kCount> mbufs_ = {};
    std::array<rte_mbuf*, kCount> packets_ = {};
    std::array<rte_mbuf*, kCount> kept_ = {};
    std::array<DataSegment, kCount> segments_ = {};
    uint64_t bytes_ = 0;
    const MpwSession session_ = {kBase, kLength, Be32::of(0x12345678).raw, kShortestPacket, kFlags};
};

TEST_P(TxKernel, WritesWhatTheScalarBuilderWrites) {
    EXPECT_EQ(write(), kInGroups);
    expect_written(kInGroups);
}

TEST_P(TxKernel, TheMemorysFirstAndLastByteBelongToIt) {
    mbufs_[5].buf_addr = reinterpret_cast<void*>(kBase);
    mbufs_[5].data_off = 0;
    mbufs_[6].buf_addr = reinterpret_cast<void*>(kBase + kLength - 1);
    mbufs_[6].data_off = 0;
    mbufs_[7].data_len = 14;
    EXPECT_EQ(write(), kInGroups);
    expect_written(kInGroups);
}

// In each lane: with offloads the groups before it are written, without none is.
TEST_P(TxKernel, StopsBeforeAPacketThatDoesNotFit) {
    struct Misfit {
        const char* what;
        std::function<void(rte_mbuf&)> spoil;
        bool offloads_only;
    };
    const Misfit kMisfits[] = {
        {"short", [](rte_mbuf& m) { m.data_len = 13; }, false},
        {"empty", [](rte_mbuf& m) { m.data_len = 0; }, false},
        {"below the memory",
         [](rte_mbuf& m) { m.buf_addr = reinterpret_cast<void*>(kBase - 1), m.data_off = 0; },
         false},
        {"behind the memory",
         [](rte_mbuf& m) { m.buf_addr = reinterpret_cast<void*>(kBase + kLength), m.data_off = 0; },
         false},
        {"far away",
         [](rte_mbuf& m) {
             m.buf_addr = reinterpret_cast<void*>(0xffff800000000000), m.data_off = 0;
         },
         false},
        {"segments", [](rte_mbuf& m) { m.nb_segs = 2; }, true},
        {"checksums", [](rte_mbuf& m) { m.ol_flags &= ~RTE_MBUF_F_TX_IP_CKSUM; }, true},
        {"a tag", [](rte_mbuf& m) { m.ol_flags |= RTE_MBUF_F_TX_VLAN; }, true},
        {"a large send", [](rte_mbuf& m) { m.ol_flags |= RTE_MBUF_F_TX_TCP_SEG; }, true},
    };
    for (const Misfit& misfit : kMisfits) {
        if (misfit.offloads_only && !with_offloads()) {
            continue;
        }
        for (uint32_t at = 0; at < kInGroups; ++at) {
            const rte_mbuf good = mbufs_[at];
            misfit.spoil(mbufs_[at]);
            const uint32_t expected = with_offloads() ? at / 4 * 4 : 0;
            EXPECT_EQ(write(), expected) << misfit.what << " " << at;
            expect_written(expected);
            mbufs_[at] = good;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Each, TxKernel,
                         testing::Values(write_pointers_avx2, write_pointers_offloads_avx2));

TEST(TxKernelSimple, SeesWhatMustNotGoBackAsItIs) {
    if (rte_cpu_get_flag_enabled(RTE_CPUFLAG_AVX2) <= 0) {
        GTEST_SKIP() << "no AVX2 here";
    }
    auto* const pool = reinterpret_cast<rte_mempool*>(0x1000);
    std::vector<rte_mbuf> mbufs(kCount);
    std::vector<rte_mbuf*> pointers;
    for (rte_mbuf& mbuf : mbufs) {
        mbuf = {};
        mbuf.refcnt = 1;
        mbuf.nb_segs = 1;
        mbuf.pool = pool;
        // What does not matter.
        mbuf.data_off = 0xffff;
        mbuf.port = 0xffff;
        mbuf.ol_flags = ~(RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL);
        pointers.push_back(&mbuf);
    }
    const auto simple = [&](AllSimple function) { return function(pointers.data(), kCount, pool); };
    EXPECT_TRUE(simple(all_simple_avx2));
    EXPECT_TRUE(simple(all_simple_segments_avx2));
    const std::function<void(rte_mbuf&)> kSpoils[] = {
        [](rte_mbuf& m) { m.refcnt = 2; },
        [](rte_mbuf& m) { m.nb_segs = 2; },
        [](rte_mbuf& m) { m.ol_flags |= RTE_MBUF_F_INDIRECT; },
        [](rte_mbuf& m) { m.ol_flags |= RTE_MBUF_F_EXTERNAL; },
        [](rte_mbuf& m) { m.pool = reinterpret_cast<rte_mempool*>(0x2000); },
    };
    for (rte_mbuf& mbuf : mbufs) {
        const rte_mbuf good = mbuf;
        for (const auto& spoil : kSpoils) {
            spoil(mbuf);
            EXPECT_FALSE(simple(all_simple_avx2));
            EXPECT_FALSE(simple(all_simple_segments_avx2));
            mbuf = good;
        }
        mbuf.next = &mbuf;
        EXPECT_FALSE(simple(all_simple_segments_avx2));
        mbuf = good;
    }
}

}  // namespace
}  // namespace tagwire::mlx5raw
