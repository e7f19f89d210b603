// SPDX-License-Identifier: BSD-3-Clause
// A wire with faults, around any other. What the device sends suffers, what it
// receives does not: each end of a cable has the faults of its own direction.
// The same seed and the same frames give the same faults; delay and rate follow
// the clock.
#pragma once

#include <memory>
#include <vector>

#include "drivers/softcx/model/objects.h"
#include "drivers/softcx/wire/faults.h"
#include "drivers/softcx/wire/wire.h"

namespace softcx {

// splitmix64: small, and the same on every machine.
class FaultRandom {
  public:
    explicit FaultRandom(uint64_t seed) noexcept : state_(seed) {}

    uint64_t next() noexcept {
        uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
    }
    bool happens(double probability) noexcept {
        return static_cast<double>(next() >> 11) * 0x1p-53 < probability;
    }
    uint32_t below(uint32_t bound) noexcept { return static_cast<uint32_t>(next() % bound); }

  private:
    uint64_t state_;
};

class FaultWire final : public Wire {
  public:
    using Clock = uint64_t (*)() noexcept;  // nanoseconds

    static uint64_t monotonic_clock() noexcept;

    // `counters` outlives the wire.
    FaultWire(std::unique_ptr<Wire> inner, const FaultPlan& plan, PortCounters& counters,
              Clock clock = monotonic_clock);

    bool send(std::span<const Piece> pieces, uint32_t total) noexcept override;
    std::span<const uint8_t> receive() noexcept override;
    void release() noexcept override { inner_->release(); }
    bool link_up() const noexcept override { return inner_->link_up(); }
    bool moves_by_itself() const noexcept override {
        return plan_.reorder != 0 || plan_.delay != 0 || plan_.rate != 0 ||
               inner_->moves_by_itself();
    }
    bool can_wait() const noexcept override { return inner_->can_wait(); }
    bool follows_carrier() const noexcept override { return inner_->follows_carrier(); }
    std::string describe() const override { return inner_->describe() + ", with faults"; }

  private:
    using Slot = uint32_t;  // of frames_
    struct Waiting {
        Slot slot;
        uint64_t due;
    };

    uint8_t* frame(Slot slot) noexcept { return frames_.get() + size_t{slot} * kSlotBytes; }
    Slot copy(std::span<const Piece> pieces, uint32_t total) noexcept;
    void give_back(Slot slot) noexcept { free_.push_back(slot); }
    bool hold(Slot slot) noexcept;
    bool release_one() noexcept;
    bool queue(Slot slot) noexcept;
    void leave(Slot slot) noexcept;
    void send_what_is_due() noexcept;

    static constexpr size_t kSlotBytes = 10240;

    std::unique_ptr<Wire> inner_;
    FaultPlan plan_;
    PortCounters& counters_;
    Clock clock_;
    // A stream each: the losses stay the same when another fault is added.
    FaultRandom loss_, duplication_, corruption_, order_;

    // Pages appear as they are touched, and nothing is allocated per frame.
    std::unique_ptr<uint8_t[]> frames_;
    std::vector<uint32_t> lengths_;
    std::vector<Slot> free_;
    std::vector<Slot> held_;        // in order of arrival, to leave in any order
    std::vector<Waiting> waiting_;  // a ring, in order of departure
    size_t waiting_first_ = 0;
    size_t waiting_count_ = 0;
    uint64_t line_free_ = 0;  // when the last frame has left the line
    bool sent_since_poll_ = false;
};

}  // namespace softcx
