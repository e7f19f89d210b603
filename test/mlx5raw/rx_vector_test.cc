// SPDX-License-Identifier: BSD-3-Clause
// The vector paths against the scalar one: the same completions must leave the same
// mbufs, byte for byte.
#include <gtest/gtest.h>
#include <rte_cpuflags.h>
#include <rte_mbuf_dyn.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "drivers/net/mlx5raw/rx_path.h"

namespace tagwire::mlx5raw {
namespace {

constexpr uint32_t kEntries = 64;
constexpr uint16_t kTimeField = RTE_ALIGN_CEIL(offsetof(rte_mbuf, dynfield1), sizeof(uint64_t));
constexpr uint64_t kTimeFlag = RTE_BIT64(30);

struct alignas(64) PaddedMbuf {
    uint8_t bytes[sizeof(rte_mbuf)];
};

CqeClassTable& classes() {
    static CqeClassTable table = make_cqe_classes(
        {.checksum = true, .rss_types = ~uint64_t{0}, .time_flag = kTimeFlag, .port_id = 0x1234});
    return table;
}

// One queue's memory. Two of them with the same seed are equal.
class Queue {
  public:
    Queue(uint32_t seed, uint8_t extras) : cqes_(kEntries), mbufs_(kEntries), posted_(kEntries) {
        std::mt19937 random(seed);
        for (PaddedMbuf& mbuf : mbufs_) {
            for (uint8_t& byte : mbuf.bytes) {
                byte = static_cast<uint8_t>(random());
            }
        }
        for (uint32_t i = 0; i < kEntries; ++i) {
            posted_[i] = reinterpret_cast<rte_mbuf*>(&mbufs_[i]);
        }
        ring.cqes = cqes_.data();
        ring.mbufs = posted_.data();
        ring.classes = classes().data();
        ring.cq_mask = ring.mask = kEntries - 1;
        ring.cq_log = 6;
        ring.extras = extras;
        ring.time_field = kTimeField;
        ring.cq_consumer = random() % (4 * kEntries);
        ring.consumer = random() % (4 * kEntries);  // not in step, as after a recovery
        first = ring.consumer;
        ring.producer = ring.consumer + random() % (kEntries + 1);
        before_ = mbufs_;
        const auto used = static_cast<uint32_t>(random() % (kEntries + 1));
        for (uint32_t i = 0; i < kEntries; ++i) {
            write(ring.cq_consumer + i, i < used, random);
        }
        if (random() % 4 == 0) {  // an entry of another kind among them
            Cqe& cqe = cqes_[random() % kEntries];
            cqe.op_own = static_cast<uint8_t>(cqe.op_own & 1) | uint8_t{kCqeResponderError << 4};
        }
    }

    const PaddedMbuf& mbuf(uint32_t slot) const { return mbufs_[slot & (kEntries - 1)]; }
    bool untouched(uint32_t slot) const {
        slot &= kEntries - 1;
        return memcmp(&mbufs_[slot], &before_[slot], sizeof(PaddedMbuf)) == 0;
    }
    uint32_t slot_of(const rte_mbuf* packet) const {
        return static_cast<uint32_t>(reinterpret_cast<const PaddedMbuf*>(packet) - mbufs_.data());
    }

    RxRing ring;
    uint32_t first;  // where ring.consumer began

  private:
    void write(uint32_t index, bool valid, std::mt19937& random) {
        Cqe& cqe = cqes_[index & (kEntries - 1)];
        auto* const words = reinterpret_cast<uint32_t*>(&cqe);
        for (size_t i = 0; i < sizeof(Cqe) / sizeof(uint32_t); ++i) {
            words[i] = static_cast<uint32_t>(random());
        }
        cqe.byte_count = Be32::of(60 + static_cast<uint32_t>(random() % 16000));
        if (random() % 4 == 0) {
            cqe.flow_tag = Be32::of(random() % 2 == 0 ? 0 : 0xffffff);
        }
        const uint32_t owner = (index / kEntries + (valid ? 0 : 1)) & 1;
        const uint32_t solicited = static_cast<uint32_t>(random() % 2) << 1;
        cqe.op_own = static_cast<uint8_t>(kCqeResponderSend << 4 | solicited | owner);
    }

    std::vector<Cqe> cqes_;
    std::vector<PaddedMbuf> mbufs_, before_;
    std::vector<rte_mbuf*> posted_;
};

void compare(RxDecode decode, uint8_t extras) {
    uint64_t packets = 0;
    for (uint32_t seed = 0; seed < 1000; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Queue expected(seed, extras);
        Queue tested(seed, extras);
        std::mt19937 random(seed);
        for (int burst = 0; burst < 4; ++burst) {
            const auto count = static_cast<uint16_t>(random() % (kEntries + 8));
            std::vector<rte_mbuf*> expected_out(count), tested_out(count + 1);
            tested_out[count] = reinterpret_cast<rte_mbuf*>(&packets);
            const uint16_t expected_count =
                rx_decode_scalar(expected.ring, expected_out.data(), count);
            const uint16_t tested_count = decode(tested.ring, tested_out.data(), count);
            ASSERT_EQ(tested_count, expected_count);
            ASSERT_EQ(tested_out[count], reinterpret_cast<rte_mbuf*>(&packets)) << "past the end";
            for (uint16_t i = 0; i < expected_count; ++i) {
                const uint32_t slot = expected.slot_of(expected_out[i]);
                ASSERT_EQ(tested.slot_of(tested_out[i]), slot) << i;
                ASSERT_EQ(memcmp(&tested.mbuf(slot), &expected.mbuf(slot), sizeof(PaddedMbuf)), 0)
                    << "packet " << i;
            }
            packets += expected_count;
        }
        ASSERT_EQ(tested.ring.cq_consumer, expected.ring.cq_consumer);
        ASSERT_EQ(tested.ring.consumer, expected.ring.consumer);
        ASSERT_EQ(tested.ring.counters.bytes, expected.ring.counters.bytes);
        // Mbufs that were never posted belong to somebody else.
        for (uint32_t slot = tested.ring.producer; slot != tested.first + kEntries; ++slot) {
            ASSERT_TRUE(tested.untouched(slot)) << "slot " << slot;
        }
    }
    EXPECT_GT(packets, 15'000u);
}

// A session of random minis at cq_consumer, of all that is posted or less.
void make_session(Queue& queue, uint32_t seed) {
    std::mt19937 random(seed);
    RxRing& ring = queue.ring;
    ring.producer = ring.consumer + 2 + static_cast<uint32_t>(random() % (kEntries - 1));
    const uint32_t count =
        2 + static_cast<uint32_t>(random() % (ring.producer - ring.consumer - 1));
    Cqe& title = ring.cqes[ring.cq_consumer & ring.cq_mask];
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t entry = ring.cq_consumer + (i < kMinisPerEntry ? 1 : i & ~7u);
        auto* const minis = reinterpret_cast<MiniCqe*>(&ring.cqes[entry & ring.cq_mask]);
        minis[i % kMinisPerEntry] = {Be32::of(static_cast<uint32_t>(random())),
                                     Be32::of(60 + static_cast<uint32_t>(random() % 16000))};
    }
    title.byte_count = Be32::of(count);
    title.op_own = static_cast<uint8_t>(kCqeResponderSend << 4 | kCqeCompressed |
                                        ((ring.cq_consumer >> ring.cq_log) & 1));
}

void compare_sessions(RxExpand expand, uint8_t extras) {
    for (uint32_t seed = 0; seed < 1000; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Queue expected(seed, extras);
        Queue tested(seed, extras);
        make_session(expected, seed);
        make_session(tested, seed);
        rx_expand_scalar(expected.ring);
        expand(tested.ring);
        ASSERT_GE(expected.ring.ready, 2u);
        ASSERT_EQ(tested.ring.ready, expected.ring.ready);
        ASSERT_EQ(tested.ring.cq_consumer, expected.ring.cq_consumer);
        ASSERT_EQ(tested.ring.counters.bytes, expected.ring.counters.bytes);
        for (uint32_t slot = 0; slot < kEntries; ++slot) {
            ASSERT_EQ(memcmp(&tested.mbuf(slot), &expected.mbuf(slot), sizeof(PaddedMbuf)), 0)
                << "slot " << slot;
            ASSERT_EQ(tested.ring.cqes[slot].op_own, expected.ring.cqes[slot].op_own) << slot;
        }
    }
}

TEST(RxScalar, AllEntriesOfASessionAreMarkedAndNoOther) {
    Queue queue(3, 0);
    make_session(queue, 3);
    RxRing& ring = queue.ring;
    const uint32_t first = ring.cq_consumer;
    rx_expand_scalar(ring);
    for (uint32_t i = 0; i < kEntries; ++i) {
        EXPECT_EQ(ring.cqes[(first + i) & ring.cq_mask].op_own == kCqeNotWritten, i < ring.ready);
    }
}

TEST(RxScalar, FieldsOfOnePacket) {
    Queue queue(1, kRxVlan | kRxMark | kRxTime);
    RxRing& ring = queue.ring;
    ring.producer = ring.consumer + 1;
    Cqe& cqe = ring.cqes[ring.cq_consumer & ring.cq_mask];
    cqe.header = 0x7 | (1 | kL3Ipv4 << 2 | kL4Udp << 4) << 8;
    cqe.byte_count = Be32::of(1234);
    cqe.rx_hash = Be32::of(0xcafe0123);
    cqe.vlan_info = Be16::of(0xa064);
    cqe.flow_tag = Be32::of(78);
    cqe.timestamp = Be64::of(0x123456789abcdef0);
    cqe.op_own = static_cast<uint8_t>(kCqeResponderSend << 4 | ((ring.cq_consumer >> 6) & 1));
    rte_mbuf* packet = nullptr;

    ASSERT_EQ(rx_decode_scalar(ring, &packet, 1), 1);

    EXPECT_EQ(packet->data_off, RTE_PKTMBUF_HEADROOM);
    EXPECT_EQ(packet->refcnt, 1);
    EXPECT_EQ(packet->nb_segs, 1);
    EXPECT_EQ(packet->port, 0x1234);
    EXPECT_EQ(packet->ol_flags, RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD |
                                    RTE_MBUF_F_RX_RSS_HASH | RTE_MBUF_F_RX_VLAN |
                                    RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_FDIR |
                                    RTE_MBUF_F_RX_FDIR_ID | kTimeFlag);
    EXPECT_EQ(packet->packet_type,
              RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4_EXT_UNKNOWN | RTE_PTYPE_L4_UDP);
    EXPECT_EQ(packet->pkt_len, 1234u);
    EXPECT_EQ(packet->data_len, 1234);
    EXPECT_EQ(packet->vlan_tci, 0xa064);
    EXPECT_EQ(packet->hash.rss, 0xcafe0123u);
    EXPECT_EQ(packet->hash.fdir.hi, 77u);
    EXPECT_EQ(*RTE_MBUF_DYNFIELD(packet, kTimeField, uint64_t*), 0x123456789abcdef0u);
    EXPECT_EQ(ring.counters.bytes, 1234u);
}

struct VectorPath {
    const char* name;
    bool (*available)();
    RxDecode decode;
    RxExpand expand;
};

bool has_avx2() {
    return rte_cpu_get_flag_enabled(RTE_CPUFLAG_AVX2) > 0;
}

constexpr VectorPath kVectorPaths[] = {
    {"Avx2", has_avx2, rx_decode_avx2, rx_expand_avx2},
    {"Avx512", has_rx_avx512, rx_decode_avx512, rx_expand_avx512},
};

class RxVector : public testing::TestWithParam<std::tuple<VectorPath, int>> {
  protected:
    void SetUp() override {
        if (!path().available()) {
            GTEST_SKIP() << "this processor has not got the instructions";
        }
    }
    const VectorPath& path() const { return std::get<0>(GetParam()); }
    uint8_t extras() const { return static_cast<uint8_t>(std::get<1>(GetParam())); }
};

TEST_P(RxVector, LeavesTheSameMbufsAsTheScalarPath) {
    compare(path().decode, extras());
}

TEST_P(RxVector, ExpandsSessionsAsTheScalarPathDoes) {
    compare_sessions(path().expand, extras());
}

INSTANTIATE_TEST_SUITE_P(Extras, RxVector,
                         testing::Combine(testing::ValuesIn(kVectorPaths), testing::Range(0, 8)),
                         [](const auto& info) {
                             return std::string(std::get<0>(info.param).name) + "Extras" +
                                    std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace tagwire::mlx5raw
