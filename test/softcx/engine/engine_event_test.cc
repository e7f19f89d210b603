// SPDX-License-Identifier: BSD-3-Clause
// Completion events: one per arm, at the right time.
#include "drivers/softcx/engine/state.h"
#include "test/softcx/engine/send_fixture.h"

namespace softcx::test {
namespace {

class EngineEvent : public SendFixture {
  protected:
    EngineEvent() {
        cq->cq->channel = &channel;
        rig.changed();
    }

    void complete(bool solicited = false) {
        sq->post({.solicited = solicited, .segments = {segment(0, 64)}});
        rig.step();
    }

    uint32_t events() const { return cq->cq->events_reported; }

    CompletionChannel channel;
};

TEST_F(EngineEvent, AnUnarmedCqIsSilent) {
    complete();
    EXPECT_EQ(events(), 0u);
}

TEST_F(EngineEvent, TheFirstArmWritesZeroAndIsSeen) {
    cq->arm(0);
    ASSERT_EQ(cq->doorbell[1], 0u);
    rig.step();
    EXPECT_EQ(events(), 0u);
    complete();
    EXPECT_EQ(events(), 1u);
}

TEST_F(EngineEvent, OneEventPerArm) {
    cq->arm(0);
    complete();
    complete();
    EXPECT_EQ(events(), 1u);
    while (cq->poll().has_value()) {
    }
    cq->arm(1);
    rig.step();
    EXPECT_EQ(events(), 1u);
    complete();
    EXPECT_EQ(events(), 2u);
}

TEST_F(EngineEvent, ACqeThatTheClientHasNotSeenRaisesItAtOnce) {
    complete();
    cq->arm(0);
    engine_check_arm(rig.device, *cq->cq);
    EXPECT_EQ(events(), 1u);
}

TEST_F(EngineEvent, ACqeThatTheClientConsumedDoesNot) {
    complete();
    cq->poll();
    cq->arm(0);
    engine_check_arm(rig.device, *cq->cq);
    EXPECT_EQ(events(), 0u);
}

TEST_F(EngineEvent, SolicitedOnlyWaitsForASolicitedCqe) {
    cq->arm(0, true);
    complete();
    EXPECT_EQ(events(), 0u);
    complete(true);
    EXPECT_EQ(events(), 1u);
}

TEST_F(EngineEvent, SolicitedOnlyLooksBackForASolicitedCqe) {
    complete(true);
    complete();
    cq->arm(0, true);
    rig.step();
    EXPECT_EQ(events(), 1u);
    while (cq->poll().has_value()) {
    }
    complete();
    cq->arm(1, true);
    rig.step();
    EXPECT_EQ(events(), 1u);
}

TEST_F(EngineEvent, AnErrorCountsAsSolicited) {
    cq->arm(0, true);
    sq->post({.segments = {{mr->start, 64, 0xdead00}}});
    rig.step();
    EXPECT_EQ(events(), 1u);
}

TEST_F(EngineEvent, ArmingWorksAcrossTheWrapOfTheIndex) {
    cq->cq->producer_index = cq->consumer_index = kIndexMask;
    cq->publish();
    rig.changed();
    cq->arm(0);
    rig.step();
    EXPECT_EQ(events(), 0u);
    complete();
    EXPECT_EQ(events(), 1u);
}

}  // namespace
}  // namespace softcx::test
