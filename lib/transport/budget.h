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
    // promised, `promised` of them still to come, while `held` are held for all peers. They are
    // committed by the call.
    uint32_t promise(uint32_t& committed, uint32_t promised, uint32_t held) noexcept {
        const uint32_t own = committed < reserve_ ? reserve_ - committed : 0;
        const int64_t free = std::max<int64_t>(shared_ - shared_used_, 0);
        const uint32_t left = cap_ > committed_ ? cap_ - committed_ : 0;
        auto room = std::min(static_cast<uint32_t>(own + free / 4), (left + 3) / 4);
        if (room == 0 && promised == 0) {
            room = trickle(committed, held);
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

    // Not more than this is promised in all, but for what trickles, whatever the configuration
    // says.
    void cap(uint32_t units) noexcept { cap_ = std::min(cap_, units); }

  private:
    // For a peer that may send nothing, when all is promised. Promises that nobody uses must not
    // hold it back while there is room: what it sends next may be what the program waits for that
    // has not taken its earlier messages yet. And however full, one at a time goes on.
    uint32_t trickle(uint32_t committed, uint32_t held) const noexcept {
        constexpr uint32_t kShare = 64;
        const int64_t room = std::min<int64_t>(cap_, shared_) - held;  // without others' own units
        if (room > 0) {
            return std::max(static_cast<uint32_t>(room) / kShare, 1u);
        }
        return committed == 0 ? 1 : 0;
    }

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
