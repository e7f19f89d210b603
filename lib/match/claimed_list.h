// SPDX-License-Identifier: BSD-3-Clause
// Messages that were claimed and not fetched yet, in the order of their claims.
#pragma once

#include "lib/match/arena.h"
#include "lib/match/types.h"

namespace tagwire::match {

class ClaimedList {
  public:
    struct Link {
        Slot next;
        Slot prev;
    };
    // One more than the capacity: the last is both ends of the list.
    static Link* lay_out(uint32_t capacity, Arena& arena) {
        return arena.take<Link>(size_t{capacity} + 1);
    }

    ClaimedList(Link* links, uint32_t capacity) : links_(links), end_(capacity) {
        links_[end_] = {end_, end_};
    }

    void append(Slot slot) {
        const Slot last = links_[end_].prev;
        links_[slot] = {end_, last};
        links_[last].next = slot;
        links_[end_].prev = slot;
        ++size_;
    }

    void remove(Slot slot) {
        const Link& link = links_[slot];
        links_[link.prev].next = link.next;
        links_[link.next].prev = link.prev;
        --size_;
    }

    Slot oldest() const { return size_ == 0 ? kNone : links_[end_].next; }
    uint32_t size() const { return size_; }

  private:
    Link* links_;
    Slot end_;
    uint32_t size_ = 0;
};

}  // namespace tagwire::match
