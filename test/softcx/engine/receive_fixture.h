// SPDX-License-Identifier: BSD-3-Clause
// A device that receives what the test puts on the far end of its wire.
#pragma once

#include "test/softcx/engine/packets.h"
#include "test/softcx/engine/rig.h"

namespace softcx::test {

class ReceiveFixture : public ::testing::Test {
  protected:
    static constexpr uint32_t kBuffer = 2048;

    Rig rig{0, "pair"};
    std::string error;
    std::unique_ptr<Wire> far = open_wire("pair", 1, &error);
    std::unique_ptr<ClientCq> cq = rig.make_cq();
    Bytes memory = Bytes(64 * kBuffer);
    MemoryRegion* mr = rig.make_mr(memory.data(), memory.size());

    void arrive(const Bytes& frame) {
        const Wire::Piece piece{frame.data(), static_cast<uint32_t>(frame.size())};
        ASSERT_TRUE(far->send({&piece, 1}, piece.length));
    }

    Segment buffer(uint32_t number, uint32_t length = kBuffer) const {
        return {mr->start + uint64_t{number} * kBuffer, length, mr->lkey};
    }

    Bytes content(uint32_t number, size_t length) const {
        const auto from = memory.begin() + size_t{number} * kBuffer;
        return {from, from + static_cast<ptrdiff_t>(length)};
    }
};

}  // namespace softcx::test
