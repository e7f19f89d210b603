// SPDX-License-Identifier: BSD-3-Clause
// Send WQEs: what reaches the wire, what the CQE says.
#include "test/softcx/engine/send_fixture.h"

namespace softcx::test {
namespace {

using EngineSend = SendFixture;

TEST_F(EngineSend, OneSegmentArrivesBitForBit) {
    for (uint32_t length = 60; length <= 9000; length += length < 200 ? 1 : 997) {
        sq->post({.segments = {segment(3, length)}});
        rig.step();
        ASSERT_EQ(receive(), Bytes(memory.begin() + 3, memory.begin() + 3 + length)) << length;
        ASSERT_TRUE(cq->poll().has_value());
    }
}

TEST_F(EngineSend, CompletionNamesWqeAndQp) {
    sq->post({.segments = {segment(0, 64)}});
    const uint16_t index = sq->post({.segments = {segment(0, 64)}});

    rig.step();
    cq->poll();
    const std::optional<Cqe> cqe = cq->poll();

    ASSERT_TRUE(cqe.has_value());
    EXPECT_EQ(opcode_of(*cqe), CqeOpcode::kRequester);
    EXPECT_EQ(cqe->wqe_counter.get(), index);
    EXPECT_EQ(cqe->sop_drop_qpn.get(), 0x0a000000u | sq->qp->qpn);
    EXPECT_EQ(cqe->srqn_uidx.get(), sq->qp->user_index);
    EXPECT_FALSE(cq->poll().has_value());
}

TEST_F(EngineSend, InlineHeaderAndSegmentsAreJoined) {
    for (size_t header = 0; header <= 100; ++header) {
        const Bytes inline_header = pattern(header, 0x40);
        sq->post({.inline_header = inline_header,
                  .segments = {segment(10, 50), segment(500, 1), segment(1000, 133)}});
        rig.step();

        Bytes expected = inline_header;
        expected.insert(expected.end(), memory.begin() + 10, memory.begin() + 60);
        expected.push_back(memory[500]);
        expected.insert(expected.end(), memory.begin() + 1000, memory.begin() + 1133);
        ASSERT_EQ(receive(), expected) << header;
        ASSERT_EQ(opcode_of(*cq->poll()), CqeOpcode::kRequester);
    }
}

TEST_F(EngineSend, InlineDataNeedsNoMemoryRegion) {
    for (size_t length = 60; length < 200; length += 7) {
        const Bytes data = pattern(length, 9);
        sq->post({.inline_data = data});
        rig.step();
        ASSERT_EQ(receive(), data) << length;
        cq->poll();
    }
}

TEST_F(EngineSend, WqesWrapAroundTheRingAndTheCounterAround16Bits) {
    // 16 basic blocks; WQEs of 1 to 7 blocks cross the end at every offset.
    sq->producer = sq->qp->sq.consumer_index = 0xff00;
    for (uint32_t i = 0; i < 600; ++i) {
        const Bytes data = pattern(60 + i * 37 % 340, static_cast<uint8_t>(i));
        const uint16_t index = sq->post({.inline_data = data, .segments = {segment(i, 40)}});
        rig.step();
        Bytes expected = data;
        expected.insert(expected.end(), memory.begin() + i, memory.begin() + i + 40);
        ASSERT_EQ(receive(), expected) << i;
        const std::optional<Cqe> cqe = cq->poll();
        ASSERT_TRUE(cqe.has_value());
        ASSERT_EQ(opcode_of(*cqe), CqeOpcode::kRequester);
        ASSERT_EQ(cqe->wqe_counter.get(), index);
    }
}

TEST_F(EngineSend, NothingLeavesBeforeTheDoorbell) {
    sq->post({.segments = {segment(0, 64)}, .ring_doorbell = false});
    EXPECT_EQ(rig.step(), 0u);
    EXPECT_TRUE(receive().empty());
    sq->ring_doorbell();
    EXPECT_EQ(rig.step(), 1u);
    EXPECT_FALSE(receive().empty());
}

TEST_F(EngineSend, ShortFramesArePadded) {
    sq->post({.segments = {segment(0, 20)}});
    rig.step();
    Bytes expected(memory.begin(), memory.begin() + 20);
    expected.resize(60);
    EXPECT_EQ(receive(), expected);
}

TEST_F(EngineSend, OnlyWqesThatAskGetACompletion) {
    sq->post({.completion = CompletionMode::kOnError, .segments = {segment(0, 64)}});
    sq->post({.completion = CompletionMode::kOnFirstError, .segments = {segment(0, 64)}});
    const uint16_t third = sq->post({.segments = {segment(0, 64)}});
    rig.step();
    EXPECT_EQ(cq->poll()->wqe_counter.get(), third);
    EXPECT_FALSE(cq->poll().has_value());
    EXPECT_EQ(rig.counters().tx_packets, 3u);
    EXPECT_EQ(rig.counters().tx_bytes, 192u);
}

TEST_F(EngineSend, SignalAllCompletesEveryWqe) {
    sq->qp->sq.signal_all = true;
    sq->post({.completion = CompletionMode::kOnError, .segments = {segment(0, 64)}});
    rig.step();
    EXPECT_TRUE(cq->poll().has_value());
}

TEST_F(EngineSend, NopCompletesAndSendsNothing) {
    const uint16_t index = sq->post({.opcode = WqeOpcode::kNop});
    rig.step();
    const std::optional<Cqe> cqe = cq->poll();
    ASSERT_TRUE(cqe.has_value());
    EXPECT_EQ(opcode_of(*cqe), CqeOpcode::kRequester);
    EXPECT_EQ(cqe->wqe_counter.get(), index);
    EXPECT_TRUE(receive().empty());
}

TEST_F(EngineSend, BudgetBoundsAStepAndRingsTakeTurns) {
    const auto other = rig.make_sender(*cq, 16);
    for (int i = 0; i < 8; ++i) {
        sq->post({.inline_data = pattern(60, 1)});
        other->post({.inline_data = pattern(60, 2)});
    }
    ASSERT_EQ(rig.step(4), 4u);
    ASSERT_EQ(rig.step(4), 4u);
    int from_first = 0;
    for (int i = 0; i < 8; ++i)
        from_first += receive()[0] == 1;
    EXPECT_EQ(from_first, 4);
}

TEST_F(EngineSend, DrainExecutesEverythingThatWasAnnounced) {
    for (int i = 0; i < 5; ++i)
        sq->post({.inline_data = pattern(60)});
    engine_drain(rig.device);
    EXPECT_EQ(rig.counters().tx_packets, 5u);
}

TEST_F(EngineSend, RingIsIdleOutsideRts) {
    for (const QpState state : {QpState::kReset, QpState::kInit, QpState::kRtr, QpState::kSqd}) {
        sq->qp->state = state;
        sq->post({.segments = {segment(0, 64)}});
        EXPECT_EQ(rig.step(), 0u);
    }
    sq->qp->state = QpState::kRts;
    EXPECT_EQ(rig.step(), 4u);
}

TEST_F(EngineSend, ResetStartsTheRingAtZero) {
    sq->post({.segments = {segment(0, 64)}});
    rig.step();
    engine_reset(*sq->qp);
    sq->producer = 0;
    const uint16_t index = sq->post({.segments = {segment(0, 64)}});
    rig.step();
    cq->poll();
    EXPECT_EQ(cq->poll()->wqe_counter.get(), index);
    EXPECT_EQ(index, 0);
}

TEST_F(EngineSend, WithoutALinkWqesCompleteAndFramesVanish) {
    rig.device.port.link_up = false;
    sq->post({.segments = {segment(0, 64)}});
    rig.step();
    EXPECT_EQ(opcode_of(*cq->poll()), CqeOpcode::kRequester);
    EXPECT_TRUE(receive().empty());
    EXPECT_EQ(rig.counters().tx_packets, 0u);
}

TEST_F(EngineSend, AFullWireIsATailDropAndTheWqeCompletes) {
    while (rig.counters().tx_wire_full == 0) {
        sq->post({.segments = {segment(0, 9000)}});
        rig.step();
        ASSERT_EQ(opcode_of(*cq->poll()), CqeOpcode::kRequester);
    }
    const uint64_t sent = rig.counters().tx_packets;
    EXPECT_EQ(rig.counters().tx_bytes, sent * 9000);
    uint64_t arrived = 0;
    while (!receive().empty())
        ++arrived;
    EXPECT_EQ(arrived, sent);
}

TEST_F(EngineSend, ARegionMayBeAddressedByAnotherIova) {
    MemoryRegion* shifted = rig.make_mr(memory.data() + 100, 1000);
    shifted->iova = 0x700000000000;
    rig.changed();
    sq->post({.segments = {{shifted->iova + 20, 64, shifted->lkey}}});
    rig.step();
    EXPECT_EQ(receive(), Bytes(memory.begin() + 120, memory.begin() + 184));
}

}  // namespace
}  // namespace softcx::test
