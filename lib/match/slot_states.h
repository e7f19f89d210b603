// SPDX-License-Identifier: BSD-3-Clause
// Where the entry of each slot stands, and which stay of the slot it is.
#pragma once

#include "lib/match/types.h"

namespace tagwire::match {

class SlotStates {
  public:
    struct State {
        uint32_t generation;
        uint32_t place;  // a position in the short list, or one of the following
    };
    static constexpr uint32_t kFree = UINT32_MAX;
    static constexpr uint32_t kDeep = UINT32_MAX - 1;     // in the hashes
    static constexpr uint32_t kClaimed = UINT32_MAX - 2;  // taken out of matching, and still kept

    SlotStates(State* states, uint32_t capacity) : states_(states), capacity_(capacity) {
        for (Slot slot = 0; slot < capacity; ++slot) {
            states_[slot] = {0, kFree};
        }
    }

    // A new stay begins.
    Handle enter(Slot slot, uint32_t place) {
        State& state = states_[slot];
        state.place = place;
        return uint64_t{++state.generation} << 32 | slot;
    }

    Handle handle(Slot slot) const { return uint64_t{states_[slot].generation} << 32 | slot; }

    // The handle names the latest stay of its slot, which may have ended.
    bool is_latest(Handle handle) const {
        return slot_of(handle) < capacity_ &&
               states_[slot_of(handle)].generation == static_cast<uint32_t>(handle >> 32);
    }

    // What a slot left from the short list says is out of date: the list has to be asked.
    uint32_t place(Slot slot) const { return states_[slot].place; }
    void move(Slot slot, uint32_t place) { states_[slot].place = place; }

    uint32_t capacity() const { return capacity_; }

  private:
    State* states_;
    uint32_t capacity_;
};

}  // namespace tagwire::match
