// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/stride_ring.h"

#include <rte_memcpy.h>

#include <cstring>
#include <utility>

namespace tagwire::mlx5raw {

Status StrideRing::create(const std::string& owner, const StrideGeometry& geometry, int socket,
                          MemoryTable& table) {
    geometry_ = geometry;
    buffers_.assign(geometry.wqes, nullptr);
    return pool_.create(owner, geometry, socket, table);
}

void StrideRing::post(RxRing& ring, uint32_t slot, StrideBuffer* buffer) {
    buffers_[slot & ring.mask] = buffer;
    DataSegment& data = wqes_[slot & ring.mask].data;
    data.byte_count = Be32::of(geometry_.strides() << geometry_.log_bytes);
    data.lkey = buffer->lkey;
    data.address = Be64::of(reinterpret_cast<uintptr_t>(buffer->windows) + RTE_PKTMBUF_HEADROOM);
}

bool StrideRing::fill(RxRing& ring) {
    ring.consumer = ring.producer = 0;
    begun_ = false;
    while (ring.producer <= ring.mask) {
        StrideBuffer* const buffer = pool_.take();
        if (buffer == nullptr) {
            return false;
        }
        post(ring, ring.producer++, buffer);
    }
    return true;
}

void StrideRing::clear(RxRing& ring) {
    if (begun_) {
        end_wqe(ring);
    }
    for (; ring.consumer != ring.producer; ++ring.consumer) {
        StrideBuffer*& buffer = buffers_[ring.consumer & ring.mask];
        std::exchange(buffer, nullptr)->release(geometry_.strides() + 1);
    }
    ring.consumer = ring.producer = 0;
}

void StrideRing::restart(RxRing& ring) {
    if (begun_) {
        end_wqe(ring);
    }
    std::vector<StrideBuffer*> posted;
    for (uint32_t slot = ring.consumer; slot != ring.producer; ++slot) {
        posted.push_back(buffers_[slot & ring.mask]);
    }
    ring.consumer = ring.producer = 0;
    for (StrideBuffer* buffer : posted) {
        post(ring, ring.producer++, buffer);
    }
}

void StrideRing::begin(RxRing& ring) {
    begun_ = true;
    handed_out_ = 0;
    replacement_ = pool_.take();
    if (replacement_ == nullptr) {
        ++ring.counters.no_stride_buffer;
    }
}

void StrideRing::deliver(RxRing& ring, const Cqe& cqe, rte_mbuf* mbuf) {
    if (!begun_) {
        begin(ring);
    }
    const uint32_t word = cqe.byte_count.get();
    const uint32_t length = word & kStrideBytesMask;
    const uint32_t stride = cqe.wqe_counter.get() & (geometry_.strides() - 1);
    StrideBuffer& buffer = *buffers_[ring.consumer & ring.mask];
    const size_t window = size_t{stride} << geometry_.log_bytes;
    const CqeClass& kind = ring.classes[cqe_class_index(cqe.header)];
    uint64_t flags = kind.flags;
    if (length <= geometry_.most_copied || replacement_ == nullptr) {
        rte_memcpy(static_cast<uint8_t*>(mbuf->buf_addr) + RTE_PKTMBUF_HEADROOM,
                   buffer.windows + window + RTE_PKTMBUF_HEADROOM, length);
    } else {
        rte_mbuf_ext_shared_info* const shared = &buffer.shared()[stride];
        rte_mbuf_ext_refcnt_set(shared, 1);
        rte_pktmbuf_attach_extbuf(mbuf, buffer.windows + window, buffer.iova + window,
                                  static_cast<uint16_t>(geometry_.bytes()), shared);
        flags |= RTE_MBUF_F_EXTERNAL;
        ++handed_out_;
    }
    memcpy(reinterpret_cast<uint8_t*>(mbuf) + offsetof(rte_mbuf, data_off), &kind, sizeof(kind));
    mbuf->ol_flags = flags;
    mbuf->pkt_len = length;
    mbuf->data_len = static_cast<uint16_t>(length);
    mbuf->hash.rss = cqe.rx_hash.get();
    if (unlikely(ring.extras != 0)) {
        rx_report_extras(ring, &cqe, 1, &mbuf, 1);
    }
    advance(ring, stride + (word >> kStridesShift & kStridesMask));
}

void StrideRing::skip(RxRing& ring, const Cqe& cqe) {
    if (!begun_) {
        begin(ring);
    }
    advance(ring, cqe.wqe_counter.get() + (cqe.byte_count.get() >> kStridesShift & kStridesMask));
}

void StrideRing::advance(RxRing& ring, uint32_t next_stride) {
    if (next_stride < geometry_.strides()) {
        return;
    }
    end_wqe(ring);
    StrideBuffer* const buffer = buffers_[ring.consumer & ring.mask];
    ++ring.consumer;
    post(ring, ring.producer++, buffer);
}

// What packets hold of the buffer stays theirs; the slot has one that nobody holds.
void StrideRing::end_wqe(RxRing& ring) {
    StrideBuffer*& buffer = buffers_[ring.consumer & ring.mask];
    if (replacement_ != nullptr) {
        buffer->release(geometry_.strides() + 1 - handed_out_);
        buffer = std::exchange(replacement_, nullptr);
    }
    begun_ = false;
}

}  // namespace tagwire::mlx5raw
