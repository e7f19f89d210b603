// SPDX-License-Identifier: BSD-3-Clause
// Compressed completions (prm.h, MiniCqe). The device does not write every entry of a
// session, and what is left there from earlier rounds would look new two rounds later:
// each entry is marked as not written before it is given back.
#include "drivers/net/mlx5raw/rx_session.h"

#include <rte_io.h>

#include <algorithm>
#include <cstring>

namespace tagwire::mlx5raw {

const MiniCqe* rx_mini_array(const RxRing& ring, uint32_t title, uint32_t first) {
    const uint32_t entry = title + (first == 0 ? 1 : first);
    return reinterpret_cast<const MiniCqe*>(&ring.cqes[entry & ring.cq_mask]);
}

void rx_expand_some(RxRing& ring, const Cqe& title, const MiniCqe* minis, uint32_t first,
                    uint32_t count) {
    const CqeClass& kind = ring.classes[cqe_class_index(title.header)];
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; ++i) {
        rte_mbuf* const mbuf = ring.mbufs[(ring.consumer + first + i) & ring.mask];
        const uint32_t length = minis[i].byte_count.get();
        memcpy(reinterpret_cast<uint8_t*>(mbuf) + offsetof(rte_mbuf, data_off), &kind,
               sizeof(kind));
        mbuf->pkt_len = length;
        mbuf->data_len = static_cast<uint16_t>(length);
        mbuf->hash.rss = minis[i].rx_hash.get();
        if (unlikely(ring.extras != 0)) {
            rx_report_extras(ring, &title, 0, &mbuf, 1);
        }
        bytes += length;
    }
    ring.counters.bytes += bytes;
}

void rx_release_entries(RxRing& ring, uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        ring.cqes[(first + i) & ring.cq_mask].op_own = kCqeNotWritten;
    }
}

void rx_expand_scalar(RxRing& ring) {
    rte_io_rmb();  // the arrays were written before the title's owner bit
    const uint32_t first_entry = ring.cq_consumer;
    const Cqe title = ring.cqes[first_entry & ring.cq_mask];
    const uint32_t count = title.byte_count.get();
    for (uint32_t first = 0; first < count; first += kMinisPerEntry) {
        rx_expand_some(ring, title, rx_mini_array(ring, first_entry, first), first,
                       std::min(kMinisPerEntry, count - first));
    }
    rx_release_entries(ring, first_entry, count);
    ring.cq_consumer += count;
    ring.ready = count;
    ++ring.counters.sessions;
}

void CqeSession::open(RxRing& ring) {
    rte_io_rmb();
    const uint32_t first_entry = ring.cq_consumer;
    cqe_ = ring.cqes[first_entry & ring.cq_mask];
    next_ = 0;
    count_ = std::min(cqe_.byte_count.get(), static_cast<uint32_t>(minis_.size()));
    for (uint32_t first = 0; first < count_; first += kMinisPerEntry) {
        memcpy(&minis_[first], rx_mini_array(ring, first_entry, first),
               std::min(kMinisPerEntry, count_ - first) * sizeof(MiniCqe));
    }
    rx_release_entries(ring, first_entry, count_);
    ring.cq_consumer += count_;
    ++ring.counters.sessions;
}

const Cqe& CqeSession::next(RxRing& ring) {
    if (empty()) {
        open(ring);
    }
    cqe_.rx_hash = minis_[next_].rx_hash;
    cqe_.byte_count = minis_[next_].byte_count;
    ++next_;
    return cqe_;
}

}  // namespace tagwire::mlx5raw
