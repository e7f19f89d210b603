// SPDX-License-Identifier: BSD-3-Clause
// Receiving packets that may take several buffers: a WQE lists segments_ of them,
// and a packet uses as many as it needs. Only those are replaced.
#include <rte_atomic.h>
#include <rte_io.h>
#include <rte_prefetch.h>

#include "drivers/net/mlx5raw/rxq.h"

namespace tagwire::mlx5raw {
namespace {

// data_off, refcnt, nb_segs and port of an mbuf, written as one word.
void write_rearm(rte_mbuf* mbuf, uint64_t value) {
    static_assert(offsetof(rte_mbuf, port) == offsetof(rte_mbuf, data_off) + 6);
    auto* bytes = reinterpret_cast<uint8_t*>(mbuf) + offsetof(rte_mbuf, data_off);
    *reinterpret_cast<uint64_t*>(bytes) = value;
}

}  // namespace

uint16_t RxQueue::burst_scatter(void* queue, rte_mbuf** packets, uint16_t count) {
    RxQueue& q = *static_cast<RxQueue*>(queue);
    uint64_t bytes = 0;
    uint16_t received = 0;
    while (received < count) {
        const Next next = q.session_.empty() ? q.next_completion() : Next::kSession;
        if (next == Next::kNothing) {
            break;
        }
        if (unlikely(next == Next::kError)) {
            q.recover();
            break;
        }
        rte_io_rmb();  // the rest of the entry was written before its owner bit
        const Cqe& cqe = next == Next::kSession
                             ? q.session_.next(q.ring_)
                             : q.ring_.cqes[q.ring_.cq_consumer++ & q.ring_.cq_mask];
        const CqeClass& kind = q.ring_.classes[cqe_class_index(cqe.header)];
        const uint32_t length = cqe.byte_count.get();
        rte_mbuf* const head = q.take_chain(q.ring_.consumer & q.ring_.mask, length);
        head->ol_flags = kind.flags;
        head->packet_type = kind.packet_type;
        head->pkt_len = length;
        head->hash.rss = cqe.rx_hash.get();
        head->vlan_tci = 0;
        if (unlikely(q.ring_.extras != 0)) {
            rx_report_extras(q.ring_, &cqe, 1, &head, 1);
        }
        packets[received++] = head;
        bytes += length;
        ++q.ring_.consumer;
    }
    q.ring_.counters.packets += received;
    q.ring_.counters.bytes += bytes;
    const uint32_t empty = q.ring_.mask + 1 - (q.ring_.producer - q.ring_.consumer);
    if (empty >= q.refill_threshold_) {
        q.replenish();
    } else if (received != 0) {
        rte_io_wmb();
        q.cq_doorbell_.set(q.ring_.cq_consumer & 0xffffff);
    }
    return received;
}

// Links the buffers that hold `length` bytes and leaves their places empty.
rte_mbuf* RxQueue::take_chain(uint32_t slot, uint32_t length) {
    rte_mbuf** const buffers = &ring_.mbufs[slot * segments_];
    const uint32_t room = buffer_size(ring_.pool);
    const uint64_t rearm = ring_.classes[0].rearm;
    rte_mbuf* const head = buffers[0];
    rte_mbuf* tail = nullptr;
    uint32_t used = 0;
    uint32_t left = length;
    do {
        rte_mbuf* const mbuf = buffers[used];
        buffers[used++] = nullptr;
        write_rearm(mbuf, rearm);
        mbuf->ol_flags = 0;
        mbuf->data_len = static_cast<uint16_t>(RTE_MIN(left, room));
        left -= mbuf->data_len;
        if (tail != nullptr) {
            tail->next = mbuf;
        }
        tail = mbuf;
    } while (left != 0 && used < segments_);
    head->nb_segs = static_cast<uint16_t>(used);
    return head;
}

void RxQueue::refill_scatter() {
    memory_.refresh();
    while (ring_.producer - ring_.consumer <= ring_.mask) {
        if (unlikely(!refill_packet(ring_.producer & ring_.mask))) {
            ++ring_.counters.no_mbuf;
            return;
        }
        ++ring_.producer;
    }
}

bool RxQueue::refill_packet(uint32_t slot) {
    rte_mbuf** const buffers = &ring_.mbufs[slot * segments_];
    for (uint32_t i = 0; i < segments_; ++i) {
        if (buffers[i] != nullptr) {
            continue;
        }
        void* object = nullptr;
        if (unlikely(rte_mempool_get(ring_.pool, &object) != 0)) {
            return false;  // what this slot got already stays for the next attempt
        }
        buffers[i] = static_cast<rte_mbuf*>(object);
        post(slot, i, buffers[i]);
    }
    return true;
}

}  // namespace tagwire::mlx5raw
