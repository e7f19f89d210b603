// SPDX-License-Identifier: BSD-3-Clause
// Send WQEs: what reaches the wire, what the CQE says.
#include "test/softcx/engine/rig.h"

namespace softcx::test {
namespace {

class EngineSend : public ::testing::Test {
  protected:
    // The device looks at a wire that the test reads.
    Rig rig{0, "pair"};
    std::string error;
    std::unique_ptr<Wire> far = open_wire("pair", 1, &error);
    std::unique_ptr<ClientCq> cq = rig.make_cq();
    std::unique_ptr<ClientSq> sq = rig.make_sender(*cq, 16);
    Bytes memory = pattern(16384);
    MemoryRegion* mr = rig.make_mr(memory.data(), memory.size());

    Segment segment(size_t offset, uint32_t length) const {
        return {mr->start + offset, length, mr->lkey};
    }

    Bytes receive() {
        const std::span<const uint8_t> frame = far->receive();
        Bytes copy(frame.begin(), frame.end());
        if (!copy.empty())
            far->release();
        return copy;
    }
};

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

}  // namespace
}  // namespace softcx::test
