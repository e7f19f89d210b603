// SPDX-License-Identifier: BSD-3-Clause
// One port of a learning switch between processes.
#pragma once

#include <array>
#include <memory>

#include "drivers/softcx/wire/switch_segment.h"
#include "drivers/softcx/wire/wire.h"

namespace softcx {

class SwitchWire final : public Wire {
  public:
    SwitchWire(std::unique_ptr<SwitchSegment> segment, std::string name) noexcept;

    bool send(std::span<const Piece> pieces, uint32_t total) noexcept override;
    std::span<const uint8_t> receive() noexcept override;
    void release() noexcept override;
    bool link_up() const noexcept override { return true; }
    std::string describe() const override;

    // Frames to this port that found its ring full.
    uint64_t tail_drops() const noexcept;

  private:
    bool push(uint32_t port, std::span<const Piece> pieces, uint32_t total) noexcept;
    void learn(uint64_t mac) noexcept;
    void look_around() noexcept;
    std::span<const uint8_t> next_source(uint64_t sources) noexcept;

    std::unique_ptr<SwitchSegment> segment_;
    std::string name_;
    std::array<FrameProducer, kSwitchPorts> producers_;
    std::array<FrameConsumer, kSwitchPorts> consumers_;
    uint64_t no_room_ = 0;  // ports whose ring could not be reserved

    uint32_t source_ = 0;      // whose ring is being read
    uint32_t turn_ = 0;        // frames read from it in a row
    uint32_t calls_ = 0;       // since the clock was read
    uint32_t now_ = 0;         // seconds
    uint32_t last_look_ = 0;   // when dead ports were looked for
    uint64_t learnt_mac_ = 0;  // the last source address, and when it was written
    uint32_t learnt_time_ = 0;
};

std::unique_ptr<Wire> open_switch_wire(const std::string& name, std::string* error);

}  // namespace softcx
