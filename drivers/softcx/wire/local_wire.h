// SPDX-License-Identifier: BSD-3-Clause
// Wires inside one process: a pair of devices back to back, and a loopback plug.
#pragma once

#include <atomic>
#include <memory>

#include "drivers/softcx/wire/frame_ring.h"
#include "drivers/softcx/wire/wire.h"

namespace softcx {

// The memory of one direction of a cable.
class CableMemory {
  public:
    static constexpr uint64_t kSize = 4u << 20;

    CableMemory() noexcept;
    ~CableMemory();
    CableMemory(const CableMemory&) = delete;
    CableMemory& operator=(const CableMemory&) = delete;

    bool ok() const noexcept { return header_ != nullptr; }
    FrameProducer producer() noexcept { return {header_, data_, kSize}; }
    FrameConsumer consumer() noexcept { return {header_, data_, kSize}; }

  private:
    FrameRingHeader* header_ = nullptr;
    uint8_t* data_ = nullptr;
};

struct Cable {
    CableMemory direction[2];
    std::atomic<bool> plugged[2] = {};
};

// One end of a cable; both ends may be the same plug.
class LocalWire final : public Wire {
  public:
    LocalWire(std::shared_ptr<Cable> cable, uint32_t sends_to, uint32_t receives_from,
              std::string description) noexcept;
    ~LocalWire() override;

    bool send(std::span<const Piece> pieces, uint32_t total) noexcept override;
    std::span<const uint8_t> receive() noexcept override { return consumer_.front(); }
    void release() noexcept override { consumer_.release(); }
    bool link_up() const noexcept override;
    bool follows_carrier() const noexcept override { return own_end_ != far_end_; }
    bool moves_by_itself() const noexcept override { return false; }
    std::string describe() const override { return description_; }

  private:
    std::shared_ptr<Cable> cable_;
    uint32_t own_end_;
    uint32_t far_end_;
    FrameProducer producer_;
    FrameConsumer consumer_;
    std::string description_;
};

std::unique_ptr<Wire> open_pair_wire(uint32_t device_index, std::string* error);
std::unique_ptr<Wire> open_loopback_wire(std::string* error);

}  // namespace softcx
