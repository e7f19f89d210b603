// SPDX-License-Identifier: BSD-3-Clause
// Transmitting: reap, write WQEs, ring one doorbell.
#include <rte_atomic.h>
#include <rte_ethdev.h>
#include <rte_io.h>

#include "drivers/net/mlx5raw/txq.h"
#include "drivers/net/mlx5raw/wqe.h"

namespace tagwire::mlx5raw {
namespace {

constexpr uint32_t kShortestPacket = RTE_ETHER_HDR_LEN;

// Copies the first bytes of a chain; returns the segment and offset behind them.
struct ChainPosition {
    rte_mbuf* segment;
    uint32_t offset;
};

ChainPosition copy_header(rte_mbuf* segment, uint8_t* to, uint32_t length) {
    uint32_t offset = 0;
    while (length != 0) {
        const uint32_t part = RTE_MIN(length, segment->data_len - offset);
        memcpy(to, rte_pktmbuf_mtod_offset(segment, const uint8_t*, offset), part);
        to += part;
        length -= part;
        offset += part;
        if (length != 0) {
            segment = segment->next;
            offset = 0;
        }
    }
    return {segment, offset};
}

}  // namespace

template <bool kSegments, bool kChecksum, bool kInline>
uint16_t TxQueue::burst(void* queue, rte_mbuf** packets, uint16_t count) {
    TxQueue& q = *static_cast<TxQueue*>(queue);
    q.reap();
    if (unlikely(!q.running_)) {  // a recovery failed
        return 0;
    }
    q.memory_.refresh();

    // Where the rings may be filled to; every packet takes at least one of each.
    const uint32_t block_end = q.consumer_ + q.mask_ + 1;
    const uint32_t segment_end = q.segment_consumer_ + q.mask_ + 1;
    uint32_t last_block = 0;
    uint32_t posted = 0;
    uint64_t bytes = 0;
    uint16_t i = 0;
    for (; i < count; ++i) {
        rte_mbuf* const packet = packets[i];
        const uint32_t block = q.producer_;
        if (unlikely(block == block_end || q.segment_producer_ == segment_end)) {
            break;
        }
        const uint32_t length = packet->pkt_len;
        const uint8_t checksum = kChecksum ? tx_checksum_flags(packet->ol_flags) : 0;
        if (kSegments && packet->nb_segs != 1) {
            const uint32_t segments = packet->nb_segs;
            // At most one data segment each, so this many blocks or fewer.
            if ((segment_end - q.segment_producer_ < segments ||
                 block_end - block < blocks_of(kInlineHeaderOctowords + segments)) &&
                segments <= kMaxTxSegments) {
                break;
            }
            if (unlikely(q.write_chain<kInline>(*packet, checksum) == 0)) {
                rte_pktmbuf_free(packet);
                continue;
            }
        } else {
            if (unlikely(!q.write_single<kInline>(*packet, checksum, block))) {
                rte_pktmbuf_free(packet);
                continue;
            }
            q.mbufs_[q.segment_producer_++ & q.mask_] = packet;
            q.producer_ = block + 1;
        }
        last_block = block;
        ++posted;
        bytes += length;
    }
    if (unlikely(i < count)) {
        ++q.counters_.ring_full;
    }
    if (likely(posted != 0)) {
        q.counters_.packets += posted;
        q.counters_.bytes += bytes;
        q.post(last_block);
    }
    return i;
}

template <bool kInline>
inline __attribute__((always_inline)) bool TxQueue::write_single(const rte_mbuf& packet,
                                                                 uint8_t checksum, uint32_t block) {
    constexpr uint32_t kHeader = kInline ? kInlineHeaderOctowords : kHeaderOctowords;
    constexpr uint32_t kInlined = kInline ? kInlineL2 : 0;
    const uint32_t length = packet.data_len;
    uintptr_t address = reinterpret_cast<uintptr_t>(packet.buf_addr) + packet.data_off;
    // A data segment of length zero would mean 2 GiB.
    if (unlikely(length < RTE_MAX(kShortestPacket, kInlined + 1))) {
        ++counters_.bad_packet;
        return false;
    }
    const Be32 key = memory_.lkey(packet, address);
    if (unlikely(key.raw == kNoLkey.raw)) {
        ++counters_.no_key;
        return false;
    }
    uint8_t* const wqe = wqes_[block & mask_].bytes;
    write_control(*reinterpret_cast<ControlSegment*>(wqe), static_cast<uint16_t>(block),
                  qpn_shifted_, kHeader + 1);
    auto& ethernet = *reinterpret_cast<EthernetSegment*>(wqe + kOctoword);
    write_ethernet(ethernet, checksum);
    if constexpr (kInline) {
        ethernet.inline_size = Be16::of(kInlineL2);
        memcpy(ethernet.inline_start, reinterpret_cast<const void*>(address), kInlineL2);
        address += kInlineL2;
    }
    write_data(*reinterpret_cast<DataSegment*>(wqe + kHeader * kOctoword), length - kInlined, key,
               address);
    return true;
}

// Returns the number of basic blocks, zero when the packet can't be sent.
template <bool kInline>
uint32_t TxQueue::write_chain(rte_mbuf& packet, uint8_t checksum) {
    constexpr uint32_t kInlined = kInline ? kInlineL2 : 0;
    if (unlikely(packet.pkt_len < kShortestPacket || packet.pkt_len <= kInlined ||
                 packet.nb_segs > kMaxTxSegments)) {
        ++counters_.bad_packet;
        return 0;
    }
    // Control and Ethernet segments, header included, lie in the first block.
    uint8_t* const wqe = wqes_[producer_ & mask_].bytes;
    auto& ethernet = *reinterpret_cast<EthernetSegment*>(wqe + kOctoword);
    write_ethernet(ethernet, checksum);
    ChainPosition position{&packet, 0};
    uint32_t octowords = kHeaderOctowords;
    if constexpr (kInline) {
        ethernet.inline_size = Be16::of(kInlineL2);
        position = copy_header(&packet, ethernet.inline_start, kInlineL2);
        octowords = kInlineHeaderOctowords;
    }
    uint32_t offset = position.offset;
    for (rte_mbuf* segment = position.segment; segment != nullptr; segment = segment->next) {
        const uint32_t length = segment->data_len - offset;
        if (length != 0) {
            const uintptr_t address = rte_pktmbuf_mtod_offset(segment, uintptr_t, offset);
            const Be32 key = memory_.lkey(*segment, address);
            if (unlikely(key.raw == kNoLkey.raw)) {
                ++counters_.no_key;
                return 0;
            }
            const uint32_t block = producer_ + octowords / 4;
            uint8_t* const at = wqes_[block & mask_].bytes + octowords % 4 * kOctoword;
            write_data(*reinterpret_cast<DataSegment*>(at), length, key, address);
            ++octowords;
        }
        offset = 0;
    }
    write_control(*reinterpret_cast<ControlSegment*>(wqe), static_cast<uint16_t>(producer_),
                  qpn_shifted_, octowords);
    for (rte_mbuf *segment = &packet, *next; segment != nullptr; segment = next) {
        next = segment->next;
        mbufs_[segment_producer_++ & mask_] = segment;
        if (fast_free_) {  // goes back to the pool as it is
            segment->next = nullptr;
            segment->nb_segs = 1;
        }
    }
    producer_ += blocks_of(octowords);
    return blocks_of(octowords);
}

// Announces everything up to producer_ (PRM, "Posting a Work Request": WQE, then
// doorbell record, then doorbell register).
void TxQueue::post(uint32_t last_block) {
    auto& control = *reinterpret_cast<ControlSegment*>(wqes_[last_block & mask_].bytes);
    if (producer_ - requested_.block >= threshold_ ||
        segment_producer_ - requested_.segment >= threshold_) {
        request_completion(control);
        requested_ = {producer_, segment_producer_};
        pending_[pending_head_++ & cq_mask_] = requested_;
    }
    rte_io_wmb();
    sq_doorbell_.set(producer_ & 0xffff);
    rte_wmb();
    *doorbell_register_ = doorbell_value(&control);
    rte_wmb();  // the register may be write-combining
    ++counters_.doorbells;
}

uint32_t TxQueue::reap() {
    const uint32_t first = pending_tail_;
    while (true) {
        const Cqe& cqe = cqes_[cq_consumer_ & cq_mask_];
        const uint8_t op_own = *const_cast<const volatile uint8_t*>(&cqe.op_own);
        const uint8_t owner = (cq_consumer_ >> cq_log_) & kCqeOwnerMask;
        if (likely((op_own & kCqeKindMask) != (kCqeRequester << 4 | owner))) {
            if (unlikely((op_own & kCqeOwnerMask) == owner && op_own >> 4 != kCqeInvalid)) {
                recover();
                return 0;
            }
            break;
        }
        ++cq_consumer_;
        ++pending_tail_;
    }
    const uint32_t completed = pending_tail_ - first;
    if (completed == 0) {
        return 0;
    }
    rte_io_rmb();
    cq_doorbell_.set(cq_consumer_ & 0xffffff);
    const Mark& mark = pending_[(pending_tail_ - 1) & cq_mask_];
    const uint32_t freed = mark.segment - segment_consumer_;
    consumer_ = mark.block;
    release(mark.segment);
    counters_.completions += completed;
    return freed;
}

void TxQueue::release(uint32_t to_segment) {
    if (fast_free_) {
        release_fast(to_segment);
        return;
    }
    constexpr uint32_t kBatch = 64;
    rte_mbuf* batch[kBatch];
    uint32_t size = 0;
    for (; segment_consumer_ != to_segment; ++segment_consumer_) {
        rte_mbuf* const mbuf = rte_pktmbuf_prefree_seg(mbufs_[segment_consumer_ & mask_]);
        if (unlikely(mbuf == nullptr)) {
            continue;  // somebody else holds it
        }
        if (size == kBatch || (size != 0 && mbuf->pool != batch[0]->pool)) {
            rte_mempool_put_bulk(batch[0]->pool, reinterpret_cast<void**>(batch), size);
            size = 0;
        }
        batch[size++] = mbuf;
    }
    if (size != 0) {
        rte_mempool_put_bulk(batch[0]->pool, reinterpret_cast<void**>(batch), size);
    }
}

// The application promised: one pool, no other references.
void TxQueue::release_fast(uint32_t to_segment) {
    while (segment_consumer_ != to_segment) {
        const uint32_t first = segment_consumer_ & mask_;
        const uint32_t run = RTE_MIN(to_segment - segment_consumer_, mask_ + 1 - first);
        rte_mempool_put_bulk(mbufs_[first]->pool, reinterpret_cast<void**>(&mbufs_[first]), run);
        segment_consumer_ += run;
    }
}

TxBurst TxQueue::choose_burst(uint64_t offloads, uint32_t inline_size, const char*& name) {
    struct Choice {
        TxBurst burst;
        const char* name;
    };
    static const Choice kChoices[] = {
        {burst<false, false, false>, "single segment"},
        {burst<false, false, true>, "single segment, inline header"},
        {burst<false, true, false>, "single segment, checksum"},
        {burst<false, true, true>, "single segment, checksum, inline header"},
        {burst<true, false, false>, "multi segment"},
        {burst<true, false, true>, "multi segment, inline header"},
        {burst<true, true, false>, "multi segment, checksum"},
        {burst<true, true, true>, "multi segment, checksum, inline header"},
    };
    constexpr uint64_t kChecksums =
        RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
    const size_t index = (offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS ? 4 : 0) +
                         (offloads & kChecksums ? 2 : 0) + (inline_size != 0 ? 1 : 0);
    name = kChoices[index].name;
    return kChoices[index].burst;
}

}  // namespace tagwire::mlx5raw
