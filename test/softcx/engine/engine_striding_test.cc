// SPDX-License-Identifier: BSD-3-Clause
// Striding (multi-packet) receive rings: many frames in one WQE.
#include <algorithm>

#include "drivers/softcx/engine/state.h"
#include "test/softcx/engine/receive_fixture.h"

namespace softcx::test {
namespace {

class EngineStriding : public ReceiveFixture {
  protected:
    static constexpr uint32_t kStride = 64;
    static constexpr uint32_t kStrides = 8;

    std::unique_ptr<ClientWq> wq = rig.make_wq(*cq, 16, 2);
    QueuePair* qp = rig.make_rss_qp({wq->wq});
    Flow* flow = rig.make_flow(qp);

    void SetUp() override {
        wq->wq->striding = true;
        wq->wq->log_stride_bytes = 6;
        wq->wq->log_strides = 3;
        rig.changed();
    }

    // The segment in front is the "next" segment, which says nothing here.
    void post(uint32_t number) { wq->post({{}, buffer(number, kStride * kStrides)}); }

    static Bytes frame_of(size_t length, uint8_t seed = 1) {
        Bytes frame = make_packet({.payload = pattern(length - 42, seed)});
        EXPECT_EQ(frame.size(), length);
        return frame;
    }

    void expect_frame(uint16_t wqe, uint16_t stride, const Bytes& frame, uint32_t shift = 0) {
        const std::optional<Cqe> cqe = cq->poll();
        ASSERT_TRUE(cqe.has_value());
        ASSERT_EQ(opcode_of(*cqe), CqeOpcode::kResponderSend);
        const auto strides = static_cast<uint32_t>((frame.size() + shift + kStride - 1) / kStride);
        EXPECT_EQ(cqe->byte_cnt.get(), strides << 16 | frame.size());
        EXPECT_EQ(cqe->wqe_id.get(), wqe);
        EXPECT_EQ(cqe->wqe_counter.get(), stride);
        const size_t start = size_t{wqe} * kBuffer + size_t{stride} * kStride + shift;
        EXPECT_TRUE(
            std::equal(frame.begin(), frame.end(), memory.begin() + static_cast<ptrdiff_t>(start)));
    }

    void expect_filler(uint16_t wqe, uint16_t stride) {
        const std::optional<Cqe> cqe = cq->poll();
        ASSERT_TRUE(cqe.has_value());
        EXPECT_EQ(cqe->byte_cnt.get(), 1u << 31 | (kStrides - stride) << 16);
        EXPECT_EQ(cqe->wqe_id.get(), wqe);
        EXPECT_EQ(cqe->wqe_counter.get(), stride);
    }
};

TEST_F(EngineStriding, FramesTakeStridesOneAfterTheOther) {
    post(0);
    const Bytes small = frame_of(64), medium = frame_of(65, 2), large = frame_of(300, 3);
    for (const Bytes& frame : {small, medium, large})
        arrive(frame);
    rig.step();
    expect_frame(0, 0, small);
    expect_frame(0, 1, medium);
    expect_frame(0, 3, large);
    EXPECT_FALSE(cq->poll().has_value());
}

TEST_F(EngineStriding, AFullWqeNeedsNoFiller) {
    post(0);
    post(1);
    const Bytes half = frame_of(256), next = frame_of(70, 9);
    for (const Bytes& frame : {half, half, next})
        arrive(frame);
    rig.step();
    expect_frame(0, 0, half);
    expect_frame(0, 4, half);
    expect_frame(1, 0, next);
}

TEST_F(EngineStriding, AFrameThatDoesNotFitIsPrecededByAFiller) {
    post(0);
    post(1);
    const Bytes first = frame_of(200), second = frame_of(400, 5);
    arrive(first);
    arrive(second);
    rig.step();
    expect_frame(0, 0, first);
    expect_filler(0, 4);
    expect_frame(1, 0, second);
    EXPECT_EQ(wq->wq->consumer_index, 1);
}

TEST_F(EngineStriding, WithoutANextWqeTheFrameIsOutOfBuffer) {
    post(0);
    arrive(frame_of(200));
    arrive(frame_of(400));
    rig.step();
    cq->poll();
    expect_filler(0, 4);
    EXPECT_FALSE(cq->poll().has_value());
    EXPECT_EQ(rig.counters().out_of_buffer, 1u);
    EXPECT_EQ(wq->wq->state, WqState::kReady);
}

TEST_F(EngineStriding, TwoByteShiftMovesTheFrameAndCountsForItsStrides) {
    wq->wq->two_byte_shift = true;
    post(0);
    const Bytes exact = frame_of(64), shorter = frame_of(62, 4);
    arrive(exact);
    arrive(shorter);
    rig.step();
    expect_frame(0, 0, exact, 2);
    expect_frame(0, 2, shorter, 2);
}

TEST_F(EngineStriding, AFrameMayCrossTheSegmentsOfAWqe) {
    const auto wide = rig.make_wq(*cq, 16, 4);
    wide->wq->striding = true;
    wide->wq->log_stride_bytes = 6;
    wide->wq->log_strides = 3;
    flow->qp = rig.make_rss_qp({wide->wq});
    rig.changed();
    wide->post({{}, buffer(0, 100), buffer(1, 200), buffer(2, 212)});
    const Bytes first = frame_of(64), second = frame_of(300, 7);
    arrive(first);
    arrive(second);
    rig.step();
    cq->poll();
    EXPECT_EQ(cq->poll()->wqe_counter.get(), 1);
    Bytes all = content(0, 100);
    for (const Bytes& part : {content(1, 200), content(2, 212)})
        all.insert(all.end(), part.begin(), part.end());
    EXPECT_EQ(Bytes(all.begin() + 64, all.begin() + 364), second);
}

TEST_F(EngineStriding, AFrameLongerThanAWqeFailsTheRing) {
    post(0);
    arrive(frame_of(513));
    rig.step();
    const std::optional<Cqe> cqe = cq->poll();
    ASSERT_TRUE(cqe.has_value());
    EXPECT_EQ(opcode_of(*cqe), CqeOpcode::kResponderError);
    EXPECT_EQ(syndrome_of(*cqe), Syndrome::kLocalLength);
    EXPECT_EQ(wq->wq->state, WqState::kError);
}

TEST_F(EngineStriding, FlushReturnsEachWqeOnceAndResetForgetsTheStrides) {
    post(0);
    post(1);
    arrive(frame_of(64));
    rig.step();
    cq->poll();
    wq->wq->state = WqState::kError;
    engine_flush(rig.device, *wq->wq);
    for (uint16_t i = 0; i < 2; ++i) {
        const std::optional<Cqe> cqe = cq->poll();
        ASSERT_TRUE(cqe.has_value());
        EXPECT_EQ(syndrome_of(*cqe), Syndrome::kFlushed);
        EXPECT_EQ(cqe->wqe_counter.get(), i);
    }
    EXPECT_FALSE(cq->poll().has_value());
    wq->wq->used_strides = 3;
    engine_reset(*wq->wq);
    EXPECT_EQ(wq->wq->used_strides, 0u);
}

}  // namespace
}  // namespace softcx::test
