// SPDX-License-Identifier: BSD-3-Clause
// A send ring, registered memory, and the far end of the wire.
#pragma once

#include "test/softcx/engine/packets.h"
#include "test/softcx/engine/rig.h"

namespace softcx::test {

class SendFixture : public ::testing::Test {
  protected:
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

    // The next frame that reached the far end, or nothing.
    Bytes receive() {
        const std::span<const uint8_t> frame = far->receive();
        Bytes copy(frame.begin(), frame.end());
        if (!copy.empty())
            far->release();
        return copy;
    }
};

}  // namespace softcx::test
