// SPDX-License-Identifier: BSD-3-Clause
// The burst functions: reap, write WQEs, ring one doorbell.
#include <rte_ethdev.h>

#include "drivers/net/mlx5raw/tx_session.h"
#include "drivers/net/mlx5raw/tx_singles.h"
#include "drivers/net/mlx5raw/txq.h"
#include "drivers/net/mlx5raw/wqe.h"

namespace tagwire::mlx5raw {

inline __attribute__((always_inline)) bool TxQueue::begin_burst() {
    if (has_completion() || segment_done_ != segment_consumer_) {
        reap();
    }
    memory_.refresh();
    return likely(running_);  // not when a recovery failed
}

inline __attribute__((always_inline)) uint16_t TxQueue::end_burst(const Written& written,
                                                                  uint32_t done, uint16_t count) {
    if (unlikely(done < count)) {
        ++counters_.ring_full;
        // A packet of many segments may wait for the last few, whose completion is not due.
        if (written.packets == 0 && pending_head_ == pending_tail_) {
            ask_for_completion();
        }
    }
    if (likely(written.packets != 0)) {
        counters_.packets += written.packets;
        counters_.bytes += written.bytes;
        post(written.last_block);
    }
    return static_cast<uint16_t>(done);
}

// `kWrite` takes as many packets as it can; what it does not take goes alone, or nowhere.
template <bool kOffloads, auto kWrite>
uint16_t TxQueue::burst(void* queue, rte_mbuf** packets, uint16_t count) {
    TxQueue& q = *static_cast<TxQueue*>(queue);
    if (!q.begin_burst()) {
        return 0;
    }
    if constexpr (kWrite == &TxQueue::write_session<kOffloads>) {
        if (count == 1 && q.send_one<kOffloads>(packets[0])) {
            return 1;
        }
    }
    Written written;
    uint32_t done = 0;
    while (done != count) {
        uint32_t taken = 0;
        if (!kOffloads || is_plain(*packets[done])) {
            taken = (q.*kWrite)(packets + done, count - done, written);
            done += taken;
        }
        if (unlikely(taken == 0)) {
            if (q.send_alone(packets[done], written) == Outcome::kFull) {
                break;
            }
            ++done;
        }
    }
    return q.end_burst(written, done, count);
}

uint16_t TxQueue::burst_send_inline(void* queue, rte_mbuf** packets, uint16_t count) {
    TxQueue& q = *static_cast<TxQueue*>(queue);
    if (!q.begin_burst()) {
        return 0;
    }
    Written written;
    uint32_t done = 0;
    while (done != count && q.send_alone(packets[done], written) != Outcome::kFull) {
        ++done;
    }
    return q.end_burst(written, done, count);
}

TxBurst TxQueue::burst_of(TxPath path) {
    switch (path) {
        case TxPath::kSend:
            return burst<false, &TxQueue::write_singles<false, false>>;
        case TxPath::kSendOffloads:
            return burst<true, &TxQueue::write_singles<true, false>>;
        case TxPath::kSendInlineHeader:
            return burst<true, &TxQueue::write_singles<true, true>>;
        case TxPath::kSendInline:
            return burst_send_inline;
        case TxPath::kMultiPacket:
        case TxPath::kMultiPacketAvx2:
            return burst<false, &TxQueue::write_session<false>>;
        case TxPath::kMultiPacketOffloads:
        case TxPath::kMultiPacketAvx2Offloads:
            return burst<true, &TxQueue::write_session<true>>;
        case TxPath::kMultiPacketInline:
            return burst<false, &TxQueue::write_inline_session<false>>;
        case TxPath::kMultiPacketInlineOffloads:
            return burst<true, &TxQueue::write_inline_session<true>>;
        case TxPath::kCount:
            break;
    }
    return nullptr;
}

}  // namespace tagwire::mlx5raw
