// SPDX-License-Identifier: BSD-3-Clause
// What may be held for messages that nobody has accepted, in units: one per small
// message, one per packet of a longer one. A sender gets credit in units before
// it sends, so nothing that arrives in order has to be dropped. Half of all units
// is set aside in equal parts for every peer, so that idle peers with credit
// cannot starve another; the other half is shared.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tagwire::transport {

class ReceiveBudget {
  public:
    // Enough for the records of dozens of frames on their way; below 2^15, half
    // the range of the credit field.
    static constexpr uint32_t kMaxPromise = 4096;

    ReceiveBudget(uint32_t units, uint32_t peers)
        : cap_(units),
          reserve_(std::max(units / 2 / peers, 1u)),
          shared_(static_cast<int64_t>(units) - static_cast<int64_t>(reserve_) * peers) {}

    // How many more units to promise a peer that has `committed` ones held or
    // promised, `promised` of them still to come. They are committed by the call.
    uint32_t promise(uint32_t& committed, uint32_t promised) noexcept {
        const uint32_t own = committed < reserve_ ? reserve_ - committed : 0;
        const int64_t free = std::max<int64_t>(shared_ - shared_used_, 0);
        const uint32_t left = cap_ > committed_ ? cap_ - committed_ : 0;
        auto room = std::min(static_cast<uint32_t>(own + free / 4), (left + 3) / 4);
        if (room == 0 && committed == 0) {
            room = 1;  // however full: one at a time goes on
        }
        const uint32_t wanted = promised < kMaxPromise ? kMaxPromise - promised : 0;
        const uint32_t units = std::min(room, wanted);
        commit(committed, units);
        return units;
    }

    void release(uint32_t& committed, uint32_t units) noexcept {
        if (committed > reserve_) [[unlikely]] {
            shared_used_ -= above_reserve(committed) - above_reserve(committed - units);
        }
        committed -= units;
        committed_ -= units;
    }

    uint32_t reserve() const noexcept { return reserve_; }

    // Never more than this in all, whatever the configuration says.
    void cap(uint32_t units) noexcept { cap_ = std::min(cap_, units); }

  private:
    int64_t above_reserve(uint32_t committed) const noexcept {
        return committed > reserve_ ? committed - reserve_ : 0;
    }

    void commit(uint32_t& committed, uint32_t units) noexcept {
        shared_used_ += above_reserve(committed + units) - above_reserve(committed);
        committed += units;
        committed_ += units;
    }

    uint32_t cap_;
    uint32_t committed_ = 0;
    uint32_t reserve_;
    int64_t shared_;
    int64_t shared_used_ = 0;
};

}  // namespace tagwire::transport
