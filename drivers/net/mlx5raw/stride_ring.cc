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

namespace {

uint32_t strides_of(uint32_t word) {
    return word >> kStridesShift & kStridesMask;
}

// Completions in a row.
struct PlainSource {
    const CqeClass* classes;
    const Cqe* cqe;

    uint32_t word() const { return cqe->byte_count.get(); }
    uint32_t hash() const { return cqe->rx_hash.get(); }
    uint32_t stride() const { return cqe->wqe_counter.get(); }
    CqeClass kind() const { return classes[cqe_class_index(cqe->header)]; }
    const Cqe* extras() const { return cqe; }
    void next(uint32_t) { ++cqe; }
};

// A session, whose packets follow one another.
struct SessionSource {
    const CqeClass common;
    const Cqe* title;
    const MiniCqe* mini;
    uint32_t at;

    uint32_t word() const { return mini->byte_count.get(); }
    uint32_t hash() const { return mini->rx_hash.get(); }
    uint32_t stride() const { return at; }
    CqeClass kind() const { return common; }
    const Cqe* extras() const { return title; }
    void next(uint32_t strides) {
        ++mini;
        at += strides;
    }
};

// In whole blocks: a stride goes on behind its packet, and so does an mbuf (choose_strides).
void copy_blocks(uint8_t* to, const uint8_t* from, uint32_t length) {
    for (uint32_t at = 0; at < length; at += kCopyBlock) {
        rte_mov64(to + at, from + at);
    }
}
static_assert(kCopyBlock == 64);

}  // namespace

template <typename Source>
uint32_t StrideRing::deliver_from(RxRing& ring, Source& source, rte_mbuf** mbufs, uint32_t count) {
    const uint32_t log_bytes = geometry_.log_bytes;
    const uint32_t last = geometry_.strides() - 1;
    const bool extras = ring.extras != 0;
    uint64_t bytes = 0;
    uint32_t done = 0;
    while (done < count) {
        if (!begun_) {
            begin(ring);
        }
        StrideBuffer& buffer = *buffers_[ring.consumer & ring.mask];
        const uint32_t most_copied = replacement_ != nullptr ? geometry_.most_copied : UINT32_MAX;
        uint32_t next_stride = 0;
        uint32_t word = 0;
        for (; done < count && next_stride <= last; ++done) {
            word = source.word();
            if (unlikely((word & kStrideFiller) != 0)) {
                break;
            }
            rte_mbuf* const mbuf = mbufs[done];
            const uint32_t length = word & kStrideBytesMask;
            const uint32_t stride = source.stride() & last;
            uint8_t* const window = buffer.windows + (size_t{stride} << log_bytes);
            const CqeClass kind = source.kind();
            memcpy(reinterpret_cast<uint8_t*>(mbuf) + offsetof(rte_mbuf, data_off), &kind,
                   sizeof(kind));
            if (length <= most_copied) {
                copy_blocks(static_cast<uint8_t*>(mbuf->buf_addr) + RTE_PKTMBUF_HEADROOM,
                            window + RTE_PKTMBUF_HEADROOM, length);
            } else {
                rte_mbuf_ext_shared_info* const shared = &buffer.shared()[stride];
                rte_mbuf_ext_refcnt_set(shared, 1);
                rte_pktmbuf_attach_extbuf(
                    mbuf, window, buffer.iova + static_cast<size_t>(window - buffer.windows),
                    static_cast<uint16_t>(geometry_.bytes()), shared);
                mbuf->data_off = RTE_PKTMBUF_HEADROOM;
                ++handed_out_;
            }
            mbuf->pkt_len = length;
            mbuf->data_len = static_cast<uint16_t>(length);
            mbuf->hash.rss = source.hash();
            if (unlikely(extras)) {
                rx_report_extras(ring, source.extras(), 1, &mbufs[done], 1);
            }
            bytes += length;
            const uint32_t strides = strides_of(word);
            next_stride = stride + strides;
            source.next(strides);
        }
        if (next_stride > last) {
            next_wqe(ring);
        }
        if (unlikely((word & kStrideFiller) != 0)) {
            break;
        }
    }
    ring.counters.bytes += bytes;
    return done;
}

uint32_t StrideRing::deliver(RxRing& ring, rte_mbuf** mbufs, uint32_t count) {
    PlainSource source{ring.classes, &ring.cqes[ring.cq_consumer & ring.cq_mask]};
    const uint32_t done = deliver_from(ring, source, mbufs, count);
    ring.cq_consumer += done;
    return done;
}

uint32_t StrideRing::deliver(RxRing& ring, CqeSession& session, rte_mbuf** mbufs, uint32_t count) {
    const Cqe& title = session.title();
    SessionSource source{ring.classes[cqe_class_index(title.header)], &title, session.minis(),
                         title.wqe_counter.get()};
    const uint32_t done = deliver_from(ring, source, mbufs, count);
    session.consume(done, source.at);
    return done;
}

bool StrideRing::skip(RxRing& ring, const Cqe& cqe) {
    const uint32_t word = cqe.byte_count.get();
    if (likely((word & kStrideFiller) == 0)) {
        return false;
    }
    if (!begun_) {
        begin(ring);
    }
    if (cqe.wqe_counter.get() + strides_of(word) >= geometry_.strides()) {
        next_wqe(ring);
    }
    return true;
}

void StrideRing::next_wqe(RxRing& ring) {
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
