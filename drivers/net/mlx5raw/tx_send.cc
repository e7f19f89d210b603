// SPDX-License-Identifier: BSD-3-Clause
// Any packet in a WQE of its own: several segments, large send, VLAN tag, inline
// header, or all of it inline.
#include <rte_ethdev.h>

#include <algorithm>

#include "drivers/net/mlx5raw/txq.h"
#include "drivers/net/mlx5raw/wqe.h"

namespace tagwire::mlx5raw {
namespace {

constexpr uint32_t kMacAddresses = 2 * RTE_ETHER_ADDR_LEN;

// Reads a chain from its start.
class ChainReader {
  public:
    explicit ChainReader(rte_mbuf* head) : segment_(head) {}

    template <typename Consume>
    void take(uint32_t length, Consume consume) {
        while (length != 0 && segment_ != nullptr) {
            const uint32_t part = std::min(length, segment_->data_len - offset_);
            consume(rte_pktmbuf_mtod_offset(segment_, const uint8_t*, offset_), part);
            length -= part;
            offset_ += part;
            if (offset_ == segment_->data_len) {
                next();
            }
        }
    }
    void next() {
        segment_ = segment_->next;
        offset_ = 0;
    }

    const rte_mbuf* segment() const { return segment_; }
    uint32_t left() const { return segment_->data_len - offset_; }
    uintptr_t address() const { return rte_pktmbuf_mtod_offset(segment_, uintptr_t, offset_); }

  private:
    rte_mbuf* segment_;
    uint32_t offset_ = 0;
};

// Writes into a WQE that may wrap around the ring's end.
class RingWriter {
  public:
    RingWriter(BasicBlock* ring, uint32_t mask, uint32_t block, uint32_t offset)
        : start_(ring->bytes),
          bytes_mask_((mask + 1) * kBasicBlock - 1),
          at_(block * kBasicBlock + offset) {}

    void write(const void* from, uint32_t length) {
        const uint32_t position = at_ & bytes_mask_;
        const uint32_t linear = std::min(length, bytes_mask_ + 1 - position);
        memcpy(start_ + position, from, linear);
        memcpy(start_, static_cast<const uint8_t*>(from) + linear, length - linear);
        at_ += length;
    }

  private:
    uint8_t* start_;
    uint32_t bytes_mask_;
    uint32_t at_;
};

// What the Ethernet segment holds.
struct Header {
    uint32_t length = 0;  // bytes of the packet
    bool tag = false;     // and a VLAN tag among them
    uint32_t size() const { return length + (tag ? RTE_VLAN_HLEN : 0); }
};

uint32_t header_of_large_send(const rte_mbuf& packet) {
    return packet.l2_len + packet.l3_len + packet.l4_len;
}

}  // namespace

bool TxQueue::good_large_send(const rte_mbuf& packet) const {
    const uint32_t header = header_of_large_send(packet);
    return packet.tso_segsz != 0 && header >= kShortestPacket &&
           header + RTE_VLAN_HLEN <= kMaxInlineHeader && header < packet.pkt_len &&
           packet.pkt_len - header <= mode_.max_tso;
}

TxQueue::Outcome TxQueue::drop(rte_mbuf* packet, uint64_t TxCounters::*counter) {
    ++(counters_.*counter);
    rte_pktmbuf_free(packet);
    return Outcome::kDropped;
}

TxQueue::Outcome TxQueue::send_alone(rte_mbuf* packet, Written& written) {
    const uint32_t length = packet->pkt_len;
    const bool large = (packet->ol_flags & RTE_MBUF_F_TX_TCP_SEG) != 0;
    const bool vlan = (packet->ol_flags & RTE_MBUF_F_TX_VLAN) != 0;
    if (unlikely(length < kShortestPacket)) {
        return drop(packet, &TxCounters::too_short);
    }
    Header header;
    if (large) {
        if (unlikely(!good_large_send(*packet))) {
            return drop(packet, &TxCounters::bad_tso);
        }
        header.length = header_of_large_send(*packet);
    } else {
        header.length = std::min(length, mode_.inline_header);
        if (length <= mode_.inline_send) {
            header.length = length;
        }
    }
    // The device inserts a tag only where no inline header is.
    const bool device_tag = vlan && header.length == 0 && mode_.vlan_insert;
    if (vlan && !device_tag) {
        header.tag = true;
        header.length = std::max(header.length, kShortestPacket);
    }
    const uint32_t header_octowords = 1 + ethernet_octowords(header.size());
    const uint32_t most = header_octowords + packet->nb_segs;
    if (unlikely(most > kMaxOctowords)) {
        return drop(packet, &TxCounters::too_many_segments);
    }
    if (free_segments() < packet->nb_segs || free_blocks() < blocks_of(most)) {
        return Outcome::kFull;
    }

    auto& control = *reinterpret_cast<ControlSegment*>(wqes_[producer_ & mask_].bytes);
    auto& ethernet =
        *reinterpret_cast<EthernetSegment*>(wqes_[producer_ & mask_].bytes + kOctoword);
    write_ethernet(ethernet, tx_checksum_flags(packet->ol_flags));
    ethernet.inline_size = Be16::of(static_cast<uint16_t>(header.size()));
    if (large) {
        ethernet.checksum_flags = kChecksumL3 | kChecksumL4;
        ethernet.mss = Be16::of(packet->tso_segsz);
    }
    if (device_tag) {
        ethernet.inline_size = Be16::of(kInsertVlan);
        const Be16 tci = Be16::of(packet->vlan_tci);
        memcpy(ethernet.inline_start, &tci, sizeof(tci));
    }
    ChainReader reader(packet);
    RingWriter writer(wqes_, mask_, producer_, kOctoword + offsetof(EthernetSegment, inline_start));
    const auto copy = [&writer](const uint8_t* from, uint32_t part) { writer.write(from, part); };
    if (header.tag) {
        const Be16 tag[2] = {Be16::of(RTE_ETHER_TYPE_VLAN), Be16::of(packet->vlan_tci)};
        reader.take(kMacAddresses, copy);
        writer.write(tag, sizeof(tag));
        reader.take(header.length - kMacAddresses, copy);
    } else {
        reader.take(header.length, copy);
    }

    uint32_t octowords = header_octowords;
    for (; reader.segment() != nullptr; reader.next()) {
        const uint32_t part = reader.left();
        if (part == 0) {
            continue;  // a length of zero would mean 2 GiB
        }
        const uintptr_t address = reader.address();
        const Be32 key = memory_.lkey(*reader.segment(), address);
        if (unlikely(key.raw == kNoLkey.raw)) {
            return drop(packet, &TxCounters::no_key);
        }
        const uint32_t block = producer_ + octowords / 4;
        uint8_t* const at = wqes_[block & mask_].bytes + octowords % 4 * kOctoword;
        write_data(*reinterpret_cast<DataSegment*>(at), part, key, address);
        ++octowords;
    }
    write_control(control, large ? kOpcodeLargeSend : kOpcodeSend, static_cast<uint16_t>(producer_),
                  qpn_shifted_, octowords);

    // As many frames as the device makes of it, each with the header.
    const uint32_t payload = length - header.length;
    const uint32_t frames = large ? (payload + packet->tso_segsz - 1) / packet->tso_segsz : 1;
    written.packets += frames;
    written.bytes +=
        length + (large ? (frames - 1) * header.length : 0) + (vlan ? frames * RTE_VLAN_HLEN : 0);
    written.last_block = producer_;
    for (rte_mbuf *segment = packet, *next; segment != nullptr; segment = next) {
        next = segment->next;
        mbufs_[segment_producer_++ & segment_mask_] = segment;
        if (fast_free_) {  // goes back to the pool as it is
            segment->next = nullptr;
            segment->nb_segs = 1;
        }
    }
    producer_ += blocks_of(octowords);
    return Outcome::kSent;
}

}  // namespace tagwire::mlx5raw
