// SPDX-License-Identifier: BSD-3-Clause
// CQE compression, read as a client reads it.
#include "drivers/softcx/engine/compression.h"
#include "test/softcx/engine/receive_fixture.h"

namespace softcx::test {
namespace {

// One frame as the client sees it, from a whole or from a mini CQE.
struct Seen {
    Cqe title;
    MiniCqe mini;  // of a whole CQE: not set
    bool compressed;
    uint32_t byte_cnt;
};

class EngineCompression : public ReceiveFixture {
  protected:
    std::unique_ptr<ClientWq> wq = rig.make_wq(*cq, 64, 1);
    QueuePair* qp = rig.make_rss_qp({wq->wq});
    Flow* flow = rig.make_flow(qp);

    void SetUp() override { use(MiniFormat::kHash); }

    void use(MiniFormat format) {
        cq->cq->compression = static_cast<uint8_t>(format);
        rig.changed();
    }

    static Bytes frame_of(size_t length) {
        return make_packet({.payload = pattern(length - 42, static_cast<uint8_t>(length))});
    }

    void post_all() {
        for (uint32_t i = 0; i < 60; ++i)
            wq->post({buffer(i)});
    }

    uint8_t* entry(uint32_t index) {
        return cq->ring.data() + size_t{index & (cq->cq->entries - 1)} * sizeof(Cqe);
    }

    // Everything from the consumer index on; entries are invalidated behind it.
    std::vector<Seen> read_all() {
        std::vector<Seen> seen;
        for (std::optional<Cqe> cqe = cq->poll(false); cqe.has_value(); cqe = cq->poll(false)) {
            if ((cqe->op_own & 0xc) != kCqeCompressed) {
                seen.push_back({*cqe, {}, false, cqe->byte_cnt.get()});
                continue;
            }
            const uint32_t title = cq->consumer_index - 1;
            const uint32_t count = cqe->byte_cnt.get();
            for (uint32_t i = 0; i < count; ++i) {
                MiniCqe mini;
                const uint32_t at = i < 8 ? title + 1 : title + i / 8 * 8;
                std::memcpy(&mini, entry(at) + i % 8 * sizeof(mini), sizeof(mini));
                seen.push_back({*cqe, mini, true, mini.byte_cnt.get()});
            }
            for (uint32_t i = 0; i < count; ++i)
                entry(title + i)[63] = static_cast<uint8_t>(CqeOpcode::kInvalid) << 4;
            cq->consumer_index = title + count;
        }
        cq->publish();
        return seen;
    }
};

TEST_F(EngineCompression, ALoneCqeStaysWhole) {
    post_all();
    arrive(frame_of(100));
    rig.step();
    const std::vector<Seen> seen = read_all();
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_FALSE(seen[0].compressed);
    EXPECT_EQ(seen[0].byte_cnt, 100u);
}

TEST_F(EngineCompression, EveryLengthOfASessionIsReadBack) {
    for (uint32_t count = 2; count <= 40; ++count) {
        for (uint32_t i = 0; i < count; ++i)
            wq->post({buffer(i)});
        for (uint32_t i = 0; i < count; ++i)
            arrive(frame_of(100 + i));
        rig.step();
        const std::vector<Seen> seen = read_all();
        ASSERT_EQ(seen.size(), count);
        uint32_t whole = 0;  // one at the end of the ring, one at its start
        for (uint32_t i = 0; i < count; ++i) {
            whole += seen[i].compressed ? 0 : 1;
            ASSERT_EQ(seen[i].byte_cnt, 100 + i);
        }
        ASSERT_LE(whole, 2u);
    }
    EXPECT_EQ(rig.counters().client_errors, 0u);
}

TEST_F(EngineCompression, TheTitleNamesTheFirstWqeAndTakesAsManyEntries) {
    post_all();
    for (int i = 0; i < 10; ++i)
        arrive(frame_of(100));
    rig.step();
    const std::optional<Cqe> title = cq->poll(false);
    ASSERT_TRUE(title.has_value());
    EXPECT_EQ(title->op_own >> 4, 2);
    EXPECT_EQ(title->byte_cnt.get(), 10u);
    EXPECT_EQ(title->wqe_counter.get(), 0);
    EXPECT_EQ(cq->cq->producer_index, 10u);
}

TEST_F(EngineCompression, ASessionEndsWithTheRing) {
    const uint32_t entries = cq->cq->entries;
    const uint32_t before_end = 5;
    for (uint32_t i = 0; i < entries - before_end; ++i) {
        wq->post({buffer(i % 60)});
        arrive(frame_of(100));
        rig.step();
        ASSERT_EQ(read_all().size(), 1u);
    }
    post_all();
    for (int i = 0; i < 12; ++i)
        arrive(frame_of(100));
    rig.step();
    const std::optional<Cqe> title = cq->poll(false);
    ASSERT_TRUE(title.has_value());
    EXPECT_EQ(title->byte_cnt.get(), before_end);
    --cq->consumer_index;
    EXPECT_EQ(read_all().size(), 12u);
}

TEST_F(EngineCompression, TheHashFormatHasTheHashOfEachFrame) {
    qp->rss->fields = MLX5_RX_HASH_SRC_IPV4 | MLX5_RX_HASH_DST_IPV4;
    qp->rss->key.fill(0x6d);
    qp->rss->key_length = 40;
    use(MiniFormat::kHash);
    post_all();
    arrive(make_packet({.dst_ip = "10.0.0.7"}));
    arrive(make_packet({.dst_ip = "10.0.0.8"}));
    rig.step();
    const std::vector<Seen> seen = read_all();
    ASSERT_EQ(seen.size(), 2u);
    EXPECT_EQ(seen[0].mini.rx_hash_result.get(), seen[0].title.rx_hash_result.get());
    EXPECT_NE(seen[0].mini.rx_hash_result.get(), seen[1].mini.rx_hash_result.get());
}

TEST_F(EngineCompression, TheChecksumFormatHasTheSumOfEachFrame) {
    use(MiniFormat::kChecksum);
    post_all();
    arrive(frame_of(100));
    arrive(frame_of(200));
    rig.step();
    const std::vector<Seen> seen = read_all();
    ASSERT_EQ(seen.size(), 2u);
    EXPECT_EQ(seen[0].mini.sum.check_sum.get(), seen[0].title.check_sum.get());
    EXPECT_EQ(seen[0].mini.sum.stride_index.get(), 0);
    EXPECT_EQ(seen[1].mini.sum.stride_index.get(), 0);
}

TEST_F(EngineCompression, TheStrideFormatHasTheFirstStrideOfEachFrame) {
    const auto striding = rig.make_wq(*cq, 16, 2);
    striding->wq->striding = true;
    striding->wq->log_stride_bytes = 6;
    striding->wq->log_strides = 5;
    flow->qp = rig.make_rss_qp({striding->wq});
    use(MiniFormat::kChecksumAndStride);
    striding->post({{}, buffer(0)});
    for (const size_t length : {64, 200, 65})
        arrive(frame_of(length));
    rig.step();
    const std::vector<Seen> seen = read_all();
    ASSERT_EQ(seen.size(), 3u);
    EXPECT_EQ(seen[0].mini.sum.stride_index.get(), 0);
    EXPECT_EQ(seen[1].mini.sum.stride_index.get(), 1);
    EXPECT_EQ(seen[2].mini.sum.stride_index.get(), 5);
    EXPECT_EQ(seen[1].byte_cnt, 4u << 16 | 200);
}

TEST_F(EngineCompression, WhatAMiniCannotSayStartsANewSession) {
    post_all();
    arrive(make_packet({}));
    arrive(make_packet({}));
    arrive(make_packet({.protocol = 6}));
    rig.step();
    const std::vector<Seen> seen = read_all();
    ASSERT_EQ(seen.size(), 3u);
    EXPECT_TRUE(seen[1].compressed);
    EXPECT_FALSE(seen[2].compressed);
    EXPECT_EQ(seen[2].title.wqe_counter.get(), 2);
}

TEST_F(EngineCompression, AnErrorCqeFollowsTheFramesBeforeIt) {
    wq->post({buffer(0)});
    wq->post({buffer(1)});
    wq->post({buffer(2, 20)});
    for (int i = 0; i < 3; ++i)
        arrive(frame_of(100));
    rig.step();
    const std::vector<Seen> seen = read_all();
    ASSERT_EQ(seen.size(), 3u);
    EXPECT_TRUE(seen[1].compressed);
    EXPECT_EQ(opcode_of(seen[2].title), CqeOpcode::kResponderError);
}

TEST_F(EngineCompression, AFullCqKeepsWhatItTook) {
    const auto small = rig.make_cq(8);
    const auto ring = rig.make_wq(*small, 16, 1);
    small->cq->compression = static_cast<uint8_t>(MiniFormat::kHash);
    flow->qp = rig.make_rss_qp({ring->wq});
    rig.changed();
    for (uint32_t i = 0; i < 10; ++i)
        ring->post({buffer(i)});
    for (int i = 0; i < 9; ++i)
        arrive(frame_of(100));
    rig.step();
    EXPECT_TRUE(small->cq->overrun);
    const std::optional<Cqe> title = small->poll();
    ASSERT_TRUE(title.has_value());
    EXPECT_EQ(title->byte_cnt.get(), 8u);
}

// Title and array lie in the second half of their entries, where whole CQEs are.
TEST_F(EngineCompression, CqesOf128BytesShrinkToo) {
    const auto wide = rig.make_cq(16, 128);
    const auto ring = rig.make_wq(*wide, 16, 1);
    wide->cq->compression = static_cast<uint8_t>(MiniFormat::kHash);
    flow->qp = rig.make_rss_qp({ring->wq});
    rig.changed();
    for (uint32_t i = 0; i < 3; ++i)
        ring->post({buffer(i)});
    for (uint32_t i = 0; i < 3; ++i)
        arrive(frame_of(100 + i));
    rig.step();
    const std::optional<Cqe> title = wide->poll();
    ASSERT_TRUE(title.has_value());
    EXPECT_EQ(title->op_own & 0xc, kCqeCompressed);
    EXPECT_EQ(title->byte_cnt.get(), 3u);
    const uint8_t* array = wide->ring.data() + 128 + 64;
    for (uint32_t i = 0; i < 3; ++i) {
        MiniCqe mini;
        std::memcpy(&mini, array + i * sizeof(mini), sizeof(mini));
        EXPECT_EQ(mini.byte_cnt.get(), 100 + i);
    }
}

TEST_F(EngineCompression, AnArmedCqRaisesItsEventOnce) {
    post_all();
    rig.step();
    cq->arm(1);
    rig.device.cqs.at(cq->cq->cqn)->channel = nullptr;
    engine_check_arm(rig.device, *cq->cq);
    arrive(frame_of(100));
    arrive(frame_of(100));
    rig.step();
    EXPECT_EQ(cq->cq->events_reported, 1u);
}

}  // namespace
}  // namespace softcx::test
