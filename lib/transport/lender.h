// SPDX-License-Identifier: BSD-3-Clause
// The seam to memory that a NIC may read by itself: the payload of a large message then leaves
// from where it is, as a second segment of each frame.
#pragma once

#include <rte_mbuf.h>

#include <cstddef>

namespace tagwire::transport {

class Lender {
  public:
    virtual ~Lender() = default;

    // The NIC may read the memory until the last reference is gone; one is the caller's.
    // nullptr: it may not, so the payload is copied.
    virtual rte_mbuf_ext_shared_info* borrow(const void* start, size_t length) noexcept = 0;
};

inline void give_back(rte_mbuf_ext_shared_info* loan) noexcept {
    if (rte_mbuf_ext_refcnt_update(loan, -1) == 0) {
        loan->free_cb(nullptr, loan->fcb_opaque);
    }
}

}  // namespace tagwire::transport
