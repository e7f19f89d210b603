// SPDX-License-Identifier: BSD-3-Clause
// Send WQEs that can't be executed: the error CQE, the QP's state, the flush, and
// the named diagnostics.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "drivers/softcx/engine/state.h"
#include "test/softcx/engine/send_fixture.h"

namespace softcx::test {
namespace {

class EngineError : public SendFixture {
  protected:
    // The next CQE must be an error for the WQE `index`.
    void expect_error(Syndrome syndrome, uint16_t index) {
        const std::optional<Cqe> cqe = cq->poll();
        ASSERT_TRUE(cqe.has_value());
        EXPECT_EQ(opcode_of(*cqe), CqeOpcode::kRequesterError);
        EXPECT_EQ(syndrome_of(*cqe), syndrome);
        EXPECT_EQ(cqe->wqe_counter.get(), index);
        EXPECT_EQ(cqe->sop_drop_qpn.get() & 0xffffff, sq->qp->qpn);
        EXPECT_EQ(cqe->srqn_uidx.get(), sq->qp->user_index);
    }

    bool was_reported(ClientCheck check) {
        return rig.device.engine->reported[static_cast<size_t>(check)];
    }

    // Posts one WQE, lets `damage` at it, and expects its error.
    void expect_malformed(ClientCheck check, const std::function<void(ControlSegment&)>& damage) {
        const uint16_t index = sq->post({.segments = {segment(0, 64)}});
        damage(*reinterpret_cast<ControlSegment*>(sq->block(index)));
        rig.step();
        expect_error(Syndrome::kLocalQpOperation, index);
        EXPECT_TRUE(was_reported(check));
        EXPECT_EQ(rig.counters().client_errors, 1u);
        EXPECT_EQ(sq->qp->state, QpState::kError);
        EXPECT_TRUE(receive().empty());
    }
};

TEST_F(EngineError, UnknownLkey) {
    const uint16_t index = sq->post({.segments = {{mr->start, 64, 0xdead00}}});
    rig.step();
    expect_error(Syndrome::kLocalProtection, index);
    EXPECT_EQ(sq->qp->state, QpState::kError);
    EXPECT_EQ(rig.counters().local_protection_errors, 1u);
    EXPECT_TRUE(was_reported(ClientCheck::kKeyUnknown));
    EXPECT_TRUE(receive().empty());
}

TEST_F(EngineError, LkeyOfAnotherProtectionDomain) {
    MemoryRegion* foreign =
        rig.make_mr(memory.data(), memory.size(), IB_UVERBS_ACCESS_LOCAL_WRITE, rig.make_pd());
    const uint16_t index = sq->post({.segments = {{mr->start, 64, foreign->lkey}}});
    rig.step();
    expect_error(Syndrome::kLocalProtection, index);
    EXPECT_TRUE(was_reported(ClientCheck::kKeyOtherPd));
}

TEST_F(EngineError, OneByteOutsideTheRegionAtEitherEnd) {
    const uint16_t first = sq->post({.segments = {{mr->start - 1, 64, mr->lkey}}});
    rig.step();
    expect_error(Syndrome::kLocalProtection, first);
    sq->qp->state = QpState::kRts;
    const uint16_t second = sq->post({.segments = {segment(memory.size() - 63, 64)}});
    rig.step();
    expect_error(Syndrome::kLocalProtection, second);
    EXPECT_TRUE(was_reported(ClientCheck::kMemoryBounds));
    EXPECT_EQ(rig.counters().client_errors, 2u);
    sq->qp->state = QpState::kRts;
    sq->post({.segments = {segment(memory.size() - 64, 64)}});
    rig.step();
    EXPECT_EQ(opcode_of(*cq->poll()), CqeOpcode::kRequester);
}

TEST_F(EngineError, ARegionThatIsGone) {
    const uint64_t mr_start = mr->start;
    sq->post({.segments = {segment(0, 64)}});
    rig.step();
    cq->poll();
    engine_forget(rig.device, *mr);
    const uint32_t key = mr->lkey;
    rig.device.mrs.erase(key);
    rig.changed();
    const uint16_t index = sq->post({.segments = {{mr_start, 64, key}}});
    rig.step();
    expect_error(Syndrome::kLocalProtection, index);
    EXPECT_TRUE(was_reported(ClientCheck::kKeyDeregistered));
    EXPECT_FALSE(was_reported(ClientCheck::kKeyUnknown));
}

TEST_F(EngineError, AForgottenRegionDoesNotHideOthers) {
    std::vector<MemoryRegion*> regions;
    for (int i = 0; i < 50; ++i)
        regions.push_back(rig.make_mr(memory.data(), memory.size()));
    rig.step();
    for (int i = 0; i < 50; i += 2)
        engine_forget(rig.device, *regions[i]);
    for (int i = 1; i < 50; i += 2) {
        sq->post({.segments = {{mr->start, 64, regions[i]->lkey}}});
        rig.step();
        ASSERT_EQ(opcode_of(*cq->poll()), CqeOpcode::kRequester) << i;
    }
    sq->post({.segments = {{mr->start, 64, 0xffffffff}}});
    rig.step();
    EXPECT_EQ(opcode_of(*cq->poll()), CqeOpcode::kRequesterError);
}

TEST_F(EngineError, FramesTooShortOrTooLong) {
    for (const uint32_t length : {13u, kMaxFrame + 1}) {
        const uint16_t index = sq->post({.segments = {segment(0, length)}});
        rig.step();
        expect_error(Syndrome::kLocalLength, index);
        sq->qp->state = QpState::kRts;
    }
    EXPECT_EQ(rig.counters().local_length_errors, 2u);
    EXPECT_TRUE(was_reported(ClientCheck::kWqeLength));
}

TEST_F(EngineError, ZeroByteCountIsTwoGigabytes) {
    const uint16_t index = sq->post({.segments = {segment(0, 64), segment(0, 0)}});
    rig.step();
    expect_error(Syndrome::kLocalLength, index);
}

TEST_F(EngineError, UnknownOpcode) {
    expect_malformed(ClientCheck::kWqeOpcode, [](ControlSegment& control) {
        control.opmod_idx_opcode.set((control.opmod_idx_opcode.get() & ~0xffu) | 0x2a);
    });
}

TEST_F(EngineError, WrongWqeIndex) {
    expect_malformed(ClientCheck::kWqeIndex, [](ControlSegment& control) {
        control.opmod_idx_opcode.set(control.opmod_idx_opcode.get() + (1u << 8));
    });
}

TEST_F(EngineError, WrongQpn) {
    expect_malformed(ClientCheck::kWqeQpn, [](ControlSegment& control) {
        control.qpn_ds.set(control.qpn_ds.get() ^ 1u << 8);
    });
}

TEST_F(EngineError, SizeZero) {
    expect_malformed(ClientCheck::kWqeSize, [](ControlSegment& control) {
        control.qpn_ds.set(control.qpn_ds.get() & ~0x3fu);
    });
}

TEST_F(EngineError, SizePastTheDoorbell) {
    expect_malformed(ClientCheck::kWqeSize, [](ControlSegment& control) {
        control.qpn_ds.set((control.qpn_ds.get() & ~0x3fu) | 5);
    });
}

TEST_F(EngineError, InlineHeaderPastTheWqe) {
    expect_malformed(ClientCheck::kWqeSegment, [](ControlSegment& control) {
        reinterpret_cast<EthernetSegment*>(&control + 1)->inline_header_size.set(200);
    });
}

TEST_F(EngineError, InlineDataPastTheWqe) {
    expect_malformed(ClientCheck::kWqeSegment, [](ControlSegment& control) {
        reinterpret_cast<DataSegment*>(&control + 2)->byte_count.set(kInlineData | 1000);
    });
}

TEST_F(EngineError, DoorbellPastTheRing) {
    sq->producer = 17;
    sq->ring_doorbell();
    rig.step();
    EXPECT_TRUE(was_reported(ClientCheck::kDoorbellPastRing));
    EXPECT_EQ(sq->qp->state, QpState::kError);
    ASSERT_EQ(async_events.size(), 1u);
    EXPECT_EQ(async_events[0].type, kEventQpFatal);
    EXPECT_EQ(async_events[0].element, sq->qp->user_handle);
}

TEST_F(EngineError, WhatFollowsAnErrorIsFlushedAndSoAreLaterPosts) {
    const uint16_t bad = sq->post(
        {.completion = CompletionMode::kOnFirstError, .segments = {{mr->start, 64, 0xdead00}}});
    const uint16_t second =
        sq->post({.completion = CompletionMode::kOnError, .inline_data = pattern(200)});
    const uint16_t third = sq->post({.segments = {segment(0, 64)}});
    rig.step();
    expect_error(Syndrome::kLocalProtection, bad);
    expect_error(Syndrome::kFlushed, second);
    expect_error(Syndrome::kFlushed, third);
    const uint16_t fourth = sq->post({.segments = {segment(0, 64)}});
    rig.step();
    expect_error(Syndrome::kFlushed, fourth);
    EXPECT_FALSE(cq->poll().has_value());
    EXPECT_EQ(rig.counters().tx_packets, 0u);
}

TEST_F(EngineError, OnFirstErrorIsSilentWhenFlushed) {
    const uint16_t bad = sq->post(
        {.completion = CompletionMode::kOnFirstError, .segments = {{mr->start, 64, 0xdead00}}});
    sq->post({.completion = CompletionMode::kOnFirstError, .segments = {segment(0, 64)}});
    rig.step();
    expect_error(Syndrome::kLocalProtection, bad);
    EXPECT_FALSE(cq->poll().has_value());
}

TEST_F(EngineError, AQpWhoseReceiveSideWorksGoesToSqe) {
    sq->qp->rq = std::make_unique<WorkQueue>();
    sq->qp->rq->state = WqState::kReady;
    sq->post({.segments = {{mr->start, 64, 0xdead00}}});
    rig.step();
    EXPECT_EQ(sq->qp->state, QpState::kSqe);
}

TEST_F(EngineError, FlushByCommand) {
    sq->qp->state = QpState::kSqd;
    const uint16_t index = sq->post({.segments = {segment(0, 64)}});
    sq->qp->state = QpState::kError;
    engine_flush(rig.device, *sq->qp);
    expect_error(Syndrome::kFlushed, index);
}

TEST_F(EngineError, InjectedSyndromeHitsTheNextWqeOnce) {
    sq->qp->sq.injected_syndrome = 0x22;
    const uint16_t index = sq->post({.segments = {segment(0, 64)}});
    rig.step();
    expect_error(static_cast<Syndrome>(0x22), index);
    engine_reset(*sq->qp);
    sq->producer = 0;
    sq->qp->state = QpState::kRts;
    sq->post({.segments = {segment(0, 64)}});
    rig.step();
    EXPECT_EQ(opcode_of(*cq->poll()), CqeOpcode::kRequester);
}

TEST_F(EngineError, CompletionQueueOverrun) {
    const auto small = rig.make_cq(4);
    const auto sender = rig.make_sender(*small, 16);
    for (int i = 0; i < 6; ++i)
        sender->post({.segments = {segment(0, 64)}});
    rig.step();
    EXPECT_TRUE(small->cq->overrun);
    EXPECT_EQ(rig.counters().cq_overrun, 1u);
    EXPECT_EQ(sender->qp->state, QpState::kError);
    ASSERT_EQ(async_events.size(), 2u);
    EXPECT_EQ(async_events[0].type, kEventCqError);
    EXPECT_EQ(async_events[0].element, small->cq->user_handle);
    EXPECT_EQ(async_events[1].type, kEventQpFatal);
    for (int i = 0; i < 4; ++i)
        EXPECT_EQ(opcode_of(*small->poll()), CqeOpcode::kRequester);
    EXPECT_FALSE(small->poll().has_value());
}

TEST_F(EngineError, InjectedOverrunLosesTheNextCqe) {
    cq->cq->injected_overrun = true;
    sq->post({.segments = {segment(0, 64)}});
    rig.step();
    EXPECT_TRUE(cq->cq->overrun);
    EXPECT_FALSE(cq->poll().has_value());
    EXPECT_EQ(rig.counters().cq_overrun, 1u);
    ASSERT_EQ(async_events.size(), 2u);
    EXPECT_EQ(async_events[0].type, kEventCqError);
    EXPECT_EQ(async_events[1].type, kEventQpFatal);
}

TEST_F(EngineError, AFailedDeviceMovesNothing) {
    rig.device.failed = true;
    sq->post({.segments = {segment(0, 64)}});
    EXPECT_EQ(rig.step(), 0u);
    engine_drain(rig.device);
    EXPECT_TRUE(receive().empty());
    EXPECT_FALSE(cq->poll().has_value());
}

TEST_F(EngineError, AConsumerIndexOf16BitsIsEnough) {
    const auto small = rig.make_cq(4);
    const auto sender = rig.make_sender(*small, 16);
    small->cq->producer_index = small->consumer_index = 0xfffe;
    small->publish();
    rig.changed();
    for (int i = 0; i < 20; ++i) {
        sender->post({.segments = {segment(0, 64)}});
        rig.step();
        receive();
        ASSERT_TRUE(small->poll(false).has_value());
        small->doorbell[0] = big_endian(small->consumer_index & 0xffff);
    }
    EXPECT_FALSE(small->cq->overrun);
    EXPECT_EQ(rig.counters().client_errors, 0u);
}

TEST_F(EngineError, ConsumerIndexGoingBackwards) {
    const auto small = rig.make_cq(4);
    const auto sender = rig.make_sender(*small, 16);
    for (int i = 0; i < 4; ++i)
        sender->post({.segments = {segment(0, 64)}});
    rig.step();
    small->doorbell[0] = big_endian(uint32_t{kIndexMask});
    sender->post({.segments = {segment(0, 64)}});
    rig.step();
    EXPECT_TRUE(was_reported(ClientCheck::kConsumerBackwards));
}

TEST_F(EngineError, FatalChecksAbort) {
    sq->producer = 17;
    sq->ring_doorbell();
    EXPECT_DEATH(
        {
            setenv("SOFTCX_CHECKS", "fatal", 1);
            rig.step();
        },
        "doorbell-past-ring");
}

TEST_F(EngineError, ASendBeforeTheQpIsReadyIsNamed) {
    sq->qp->state = QpState::kInit;
    rig.changed();
    rig.step();
    EXPECT_EQ(rig.counters().client_errors, 0u);
    sq->post({.segments = {segment(0, 64)}});
    rig.step();
    rig.step();
    EXPECT_TRUE(was_reported(ClientCheck::kSendNotReady));
    EXPECT_EQ(rig.counters().client_errors, 1u);
    EXPECT_TRUE(receive().empty());
}

TEST_F(EngineError, EveryCheckHasAName) {
    for (size_t i = 0; i < kClientChecks; ++i)
        EXPECT_STRNE(client_check_name(static_cast<ClientCheck>(i)), "unknown");
}

}  // namespace
}  // namespace softcx::test
