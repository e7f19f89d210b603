// SPDX-License-Identifier: BSD-3-Clause
// Receive rings: scatter, CQE, lack of buffers, protection, flush.
#include "drivers/softcx/engine/fcs.h"
#include "drivers/softcx/engine/state.h"
#include "test/softcx/engine/receive_fixture.h"

namespace softcx::test {
namespace {

class EngineReceive : public ReceiveFixture {
  protected:
    std::unique_ptr<ClientWq> wq = rig.make_wq(*cq, 16, 4);
    QueuePair* qp = rig.make_rss_qp({wq->wq});
    Flow* flow = rig.make_flow(qp);

    void expect_error(Syndrome syndrome, uint16_t counter) {
        const std::optional<Cqe> cqe = cq->poll();
        ASSERT_TRUE(cqe.has_value());
        EXPECT_EQ(opcode_of(*cqe), CqeOpcode::kResponderError);
        EXPECT_EQ(syndrome_of(*cqe), syndrome);
        EXPECT_EQ(cqe->wqe_counter.get(), counter);
        EXPECT_EQ(cqe->srqn_uidx.get(), wq->wq->user_index);
    }

    // The WQ failed by itself: state, event, and the rest of the ring.
    void expect_wq_failed(Syndrome syndrome, uint16_t posted) {
        expect_error(syndrome, 0);
        for (uint16_t i = 1; i < posted; ++i)
            expect_error(Syndrome::kFlushed, i);
        EXPECT_FALSE(cq->poll().has_value());
        EXPECT_EQ(wq->wq->state, WqState::kError);
        ASSERT_EQ(async_events.size(), 1u);
        EXPECT_EQ(async_events[0].type, kEventWqFatal);
        EXPECT_EQ(async_events[0].element, wq->wq->user_handle);
    }
};

TEST_F(EngineReceive, AFrameLandsInTheBufferAndTheCqeDescribesIt) {
    const Bytes frame = make_packet({.payload = pattern(500)});
    wq->post({buffer(0)});
    wq->post({buffer(1)});
    arrive(frame);
    arrive(frame);
    rig.step();

    cq->poll();
    const std::optional<Cqe> cqe = cq->poll();
    ASSERT_TRUE(cqe.has_value());
    EXPECT_EQ(opcode_of(*cqe), CqeOpcode::kResponderSend);
    EXPECT_EQ(cqe->byte_cnt.get(), frame.size());
    EXPECT_EQ(cqe->wqe_counter.get(), 1);
    EXPECT_EQ(cqe->srqn_uidx.get(), wq->wq->user_index);
    EXPECT_NE(cqe->timestamp.get(), 0u);
    EXPECT_EQ(content(1, frame.size()), frame);
    EXPECT_EQ(content(1, kBuffer)[frame.size()], 0);
    EXPECT_EQ(rig.counters().rx_packets, 2u);
    EXPECT_EQ(rig.counters().rx_bytes, 2 * frame.size());
}

TEST_F(EngineReceive, FramesOfAllSizesScatterOverSeveralSegments) {
    for (uint32_t length = 60; length <= 1514; length += 13) {
        const Bytes frame = pattern(length, static_cast<uint8_t>(length));
        wq->post({buffer(0, 17), buffer(1, 1), buffer(2, 70), buffer(3)});
        arrive(frame);
        rig.step();
        ASSERT_EQ(cq->poll()->byte_cnt.get(), length);
        Bytes joined = content(0, 17);
        for (const auto& [number, room] : {std::pair{1u, 1u}, {2u, 70u}, {3u, kBuffer}}) {
            const Bytes part = content(number, std::min<size_t>(room, length - joined.size()));
            joined.insert(joined.end(), part.begin(), part.end());
            if (joined.size() == length)
                break;
        }
        ASSERT_EQ(joined, frame) << length;
    }
}

TEST_F(EngineReceive, LargeCqesCarryTheirContentInTheSecondHalf) {
    const auto large = rig.make_cq(8, 128);
    const auto ring = rig.make_wq(*large);
    flow->qp = rig.make_rss_qp({ring->wq});
    rig.changed();
    for (int i = 0; i < 20; ++i) {
        ring->post({buffer(0)});
        arrive(pattern(100));
        rig.step();
        const std::optional<Cqe> cqe = large->poll();
        ASSERT_TRUE(cqe.has_value()) << i;
        ASSERT_EQ(cqe->byte_cnt.get(), 100u);
    }
}

TEST_F(EngineReceive, RingAndCounterWrap) {
    wq->head = 0xfff0;
    wq->wq->consumer_index = 0xfff0;
    for (uint32_t i = 0; i < 100; ++i) {
        wq->post({buffer(i % 16)});
        const Bytes frame = pattern(60 + i, static_cast<uint8_t>(i));
        arrive(frame);
        rig.step();
        ASSERT_EQ(cq->poll()->wqe_counter.get(), static_cast<uint16_t>(0xfff0 + i));
        ASSERT_EQ(content(i % 16, frame.size()), frame);
    }
}

TEST_F(EngineReceive, WithoutABufferTheFrameIsCounted) {
    arrive(pattern(60));
    wq->post({buffer(0)});
    arrive(pattern(60));
    arrive(pattern(60));
    rig.step();
    EXPECT_EQ(rig.counters().out_of_buffer, 2u);
    EXPECT_EQ(wq->wq->out_of_buffer, 2u);
    EXPECT_TRUE(cq->poll().has_value());
    EXPECT_FALSE(cq->poll().has_value());
}

TEST_F(EngineReceive, AForeignLkeyIsAProtectionErrorAndTheDataIsUntouched) {
    MemoryRegion* foreign =
        rig.make_mr(memory.data(), memory.size(), IB_UVERBS_ACCESS_LOCAL_WRITE, rig.make_pd());
    wq->post({buffer(0, 20), {mr->start + kBuffer, kBuffer, foreign->lkey}});
    wq->post({buffer(2)});
    wq->post({buffer(3)});
    arrive(pattern(100));
    rig.step();
    expect_wq_failed(Syndrome::kLocalProtection, 3);
    EXPECT_EQ(memory, Bytes(memory.size()));
    EXPECT_EQ(rig.counters().local_protection_errors, 1u);
}

TEST_F(EngineReceive, AReadOnlyRegionIsAProtectionError) {
    MemoryRegion* read_only = rig.make_mr(memory.data(), memory.size(), 0);
    wq->post({{mr->start, kBuffer, read_only->lkey}});
    arrive(pattern(100));
    rig.step();
    expect_wq_failed(Syndrome::kLocalProtection, 1);
    EXPECT_TRUE(rig.device.engine->reported[static_cast<size_t>(ClientCheck::kMemoryReadOnly)]);
}

TEST_F(EngineReceive, OnlyTheBytesThatAreWrittenMustLieInTheRegion) {
    MemoryRegion* exact = rig.make_mr(memory.data(), 100);
    wq->post({{exact->start, kBuffer, exact->lkey}});
    arrive(pattern(100));
    rig.step();
    EXPECT_EQ(opcode_of(*cq->poll()), CqeOpcode::kResponderSend);
    wq->post({{exact->start, kBuffer, exact->lkey}});
    arrive(pattern(101));
    rig.step();
    EXPECT_EQ(syndrome_of(*cq->poll()), Syndrome::kLocalProtection);
}

TEST_F(EngineReceive, AFrameLongerThanTheBuffersIsALengthError) {
    wq->post({buffer(0, 50), buffer(1, 49)});
    wq->post({buffer(2)});
    arrive(pattern(100));
    rig.step();
    expect_wq_failed(Syndrome::kLocalLength, 2);
    EXPECT_EQ(memory, Bytes(memory.size()));
}

TEST_F(EngineReceive, AnInjectedErrorFailsTheWqAndResetRecoversIt) {
    wq->wq->injected_syndrome = 0x02;
    wq->post({buffer(0)});
    wq->post({buffer(1)});
    arrive(pattern(60));
    rig.step();
    expect_wq_failed(Syndrome::kLocalQpOperation, 2);

    wq->wq->state = WqState::kReset;
    engine_reset(*wq->wq);
    wq->head = 0;
    wq->doorbell[0] = 0;
    wq->wq->state = WqState::kReady;
    wq->post({buffer(0)});
    arrive(pattern(60));
    rig.step();
    const std::optional<Cqe> cqe = cq->poll();
    EXPECT_EQ(opcode_of(*cqe), CqeOpcode::kResponderSend);
    EXPECT_EQ(cqe->wqe_counter.get(), 0);
    EXPECT_EQ(rig.counters().client_errors, 0u);
}

TEST_F(EngineReceive, FlushByCommandCompletesWhatWasPosted) {
    wq->post({buffer(0)});
    wq->post({buffer(1)});
    wq->wq->state = WqState::kError;
    engine_flush(rig.device, *wq->wq);
    expect_error(Syndrome::kFlushed, 0);
    expect_error(Syndrome::kFlushed, 1);
    EXPECT_TRUE(async_events.empty());
    wq->post({buffer(2)});
    rig.step();
    expect_error(Syndrome::kFlushed, 2);
}

TEST_F(EngineReceive, AWqThatIsNotReadyTakesNothing) {
    wq->post({buffer(0)});
    wq->wq->state = WqState::kReset;
    arrive(pattern(60));
    rig.step();
    EXPECT_EQ(rig.counters().rx_wq_not_ready, 1u);
    EXPECT_EQ(rig.device.engine->reported[static_cast<size_t>(ClientCheck::kReceiveInReset)], true);
}

TEST_F(EngineReceive, DoorbellPastTheRing) {
    wq->head = 17;
    wq->doorbell[0] = big_endian(uint32_t{17});
    arrive(pattern(60));
    rig.step();
    EXPECT_TRUE(rig.device.engine->reported[static_cast<size_t>(ClientCheck::kDoorbellPastRing)]);
    EXPECT_EQ(wq->wq->state, WqState::kError);
}

TEST_F(EngineReceive, AnOverrunCqFailsTheWq) {
    const auto small = rig.make_cq(2);
    const auto ring = rig.make_wq(*small);
    flow->qp = rig.make_rss_qp({ring->wq});
    rig.changed();
    for (int i = 0; i < 4; ++i) {
        ring->post({buffer(0)});
        arrive(pattern(60));
    }
    rig.step();
    EXPECT_EQ(rig.counters().cq_overrun, 1u);
    EXPECT_EQ(ring->wq->state, WqState::kError);
}

TEST_F(EngineReceive, FcsIsScatteredOnRequest) {
    wq->wq->scatter_fcs = true;
    const Bytes frame = pattern(60);
    wq->post({buffer(0)});
    arrive(frame);
    rig.step();
    EXPECT_EQ(cq->poll()->byte_cnt.get(), 64u);
    const uint32_t fcs = ethernet_fcs(frame.data(), 60);
    const Bytes tail = content(0, 64);
    EXPECT_EQ(tail[60] | tail[61] << 8 | tail[62] << 16 | uint32_t{tail[63]} << 24, fcs);
}

TEST(EthernetFcs, CheckValueOfTheStandardPolynomial) {
    const uint8_t digits[] = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
    EXPECT_EQ(ethernet_fcs(digits, sizeof(digits)), 0xcbf43926u);
}

TEST_F(EngineReceive, FramesBeyondTheMtuAreCounted) {
    rig.device.port.mtu = 1500;
    wq->post({buffer(0)});
    arrive(pattern(1500 + 14 + 8));
    arrive(pattern(1500 + 14 + 8 + 1));
    rig.step();
    EXPECT_EQ(rig.counters().rx_too_long, 1u);
    EXPECT_EQ(rig.counters().rx_packets, 1u);
}

TEST_F(EngineReceive, WithoutALinkNothingArrives) {
    rig.device.port.link_up = false;
    wq->post({buffer(0)});
    arrive(pattern(60));
    rig.step();
    rig.device.port.link_up = true;
    rig.step();
    EXPECT_FALSE(cq->poll().has_value());
}

TEST_F(EngineReceive, APlainQpReceivesOnItsOwnRing) {
    const auto own = rig.make_wq(*cq);
    QueuePair* receiver = rig.make_receiver(*own);
    flow->qp = receiver;
    rig.changed();
    own->post({buffer(0)});
    arrive(pattern(60));
    rig.step();
    const std::optional<Cqe> cqe = cq->poll();
    ASSERT_TRUE(cqe.has_value());
    EXPECT_EQ(cqe->srqn_uidx.get(), receiver->user_index);
}

TEST_F(EngineReceive, APlainQpInErrorTakesNothingAndAReceiveErrorPutsItThere) {
    const auto own = rig.make_wq(*cq);
    QueuePair* receiver = rig.make_receiver(*own);
    flow->qp = receiver;
    rig.changed();
    own->post({{mr->start, kBuffer, 0xdead00}});
    arrive(pattern(60));
    arrive(pattern(60));
    rig.step();
    EXPECT_EQ(receiver->state, QpState::kError);
    EXPECT_EQ(rig.counters().rx_wq_not_ready, 1u);
    ASSERT_EQ(async_events.size(), 1u);
    EXPECT_EQ(async_events[0].type, kEventQpFatal);
}

}  // namespace
}  // namespace softcx::test
