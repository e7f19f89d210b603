// SPDX-License-Identifier: BSD-3-Clause
// The link of a wire that follows somebody else's carrier, and frames without a link.
#include "test/softcx/engine/packets.h"
#include "test/softcx/engine/rig.h"

namespace softcx::test {
namespace {

struct CarrierWire final : Wire {
    bool send(std::span<const Piece>, uint32_t) noexcept override { return true; }
    std::span<const uint8_t> receive() noexcept override { return std::exchange(next, {}); }
    void release() noexcept override {}
    bool link_up() const noexcept override { return carrier; }
    bool follows_carrier() const noexcept override { return true; }
    std::string describe() const override { return "carrier"; }

    bool carrier = true;
    std::span<const uint8_t> next;
};

class EngineLink : public ::testing::Test {
  protected:
    EngineLink() {
        auto made = std::make_unique<CarrierWire>();
        wire = made.get();
        rig.device.port.wire = std::move(made);
    }

    Rig rig;
    CarrierWire* wire;
};

TEST_F(EngineLink, AChangeOfTheCarrierIsAPortEvent) {
    rig.step();
    EXPECT_TRUE(async_events.empty());
    wire->carrier = false;
    rig.step();
    rig.step();
    ASSERT_EQ(async_events.size(), 1u);
    EXPECT_EQ(async_events[0].type, kEventPortError);
    EXPECT_EQ(async_events[0].element, 1u);
    EXPECT_EQ(rig.counters().link_downed, 1u);
    wire->carrier = true;
    rig.step();
    ASSERT_EQ(async_events.size(), 2u);
    EXPECT_EQ(async_events[1].type, kEventPortActive);
}

TEST_F(EngineLink, APortThatWasSetDownDoesNotReportTheCarrier) {
    rig.device.port.link_up = false;
    wire->carrier = false;
    rig.step();
    EXPECT_TRUE(async_events.empty());
}

TEST_F(EngineLink, AFrameForAPortWithoutLinkIsCounted) {
    rig.device.port.link_up = false;
    const Bytes frame = make_packet({});
    wire->next = frame;
    rig.step();
    EXPECT_EQ(rig.counters().rx_no_link, 1u);
    EXPECT_EQ(rig.counters().rx_packets, 0u);
}

}  // namespace
}  // namespace softcx::test
